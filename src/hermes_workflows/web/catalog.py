"""How the runs of a workflow have gone: counts, durations and cost of the newest ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from ..core.durations import duration
from ..core.summary import RunSummary
from ..core.timestamps import parse_time
from ..core.usages import Sum, added, told


@dataclass
class Record:
    """Of the runs that were looked at: how many there are by status, how long those that have ended took."""

    runs: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    usage: Sum = field(default_factory=dict)

    def add(self, run: RunSummary) -> None:
        self.runs += 1
        self.statuses[run.status] = self.statuses.get(run.status, 0) + 1
        self.usage = added(self.usage, run.usage)
        if run.started_at and run.finished_at:
            self.seconds.append((parse_time(run.finished_at) - parse_time(run.started_at)).total_seconds())

    @property
    def facts(self) -> tuple[str, ...]:
        """As people read it: `3 runs`, `67 % completed`, `half within 2 min`, `12 tokens in, …`."""
        ended = sum(self.statuses.get(status, 0) for status in ("completed", "failed", "cancelled"))
        good = self.statuses.get("completed", 0)
        told_of = (
            f"{self.runs:,} {'run' if self.runs == 1 else 'runs'}",
            f"{100 * good // ended} % of {ended:,} ended as completed" if ended else "",
            f"half of them within {duration(median(self.seconds))}" if self.seconds else "",
            told(self.usage),
        )
        return tuple(filter(None, told_of))


def records_of(runs: Iterable[RunSummary]) -> dict[str, Record]:
    """By the name that runs record for their workflow."""
    found: dict[str, Record] = {}
    for run in runs:
        found.setdefault(run.workflow, Record()).add(run)
    return found
