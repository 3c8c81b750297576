"""How the runs of a workflow have gone: all are counted, the newest say how long they took and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from ..core.durations import duration
from ..core.timestamps import parse_time
from ..core.usages import Sum, added, told
from ..store.queue_port import Counts, Took
from ..workspace import Workspace

# So many of the newest runs of a workflow are looked at in each database.
NEWEST: Final = 100


@dataclass(frozen=True)
class Record:
    """What the index knows of a workflow's runs, in all databases together."""

    counts: tuple[Counts, ...] = ()
    newest: tuple[Took, ...] = ()

    @property
    def runs(self) -> int:
        return sum(each.runs for each in self.counts)

    @property
    def facts(self) -> tuple[str, ...]:
        """As people read it: `67 % of 3 ended as completed`, `half of the newest 3 within 2 min`, `… USD`."""
        good = sum(each.completed for each in self.counts)
        ended = good + sum(each.failed + each.cancelled for each in self.counts)
        seconds = [_seconds(each.started_at, each.finished_at) for each in self.newest if each.finished_at]
        used: Sum = {}
        for each in self.newest:
            used = added(used, each.usage)
        told_of = (
            f"{100 * good // ended} % of {ended:,} ended as completed" if ended else "",
            f"{self.runs - ended:,} not ended" if self.runs > ended else "",
            f"half of the newest {len(seconds)} within {duration(median(seconds))}" if seconds else "",
            f"the newest {len(self.newest)} used {told(used)}" if told(used) else "",
        )
        return tuple(filter(None, told_of))


def records_of(every: Sequence[Workspace]) -> Mapping[str, Record]:
    """By the name that runs record for their workflow."""
    found: dict[str, list[Counts]] = {}
    for workspace in every:
        for counts in workspace.queue.counts():
            found.setdefault(counts.workflow, []).append(counts)
    return {name: Record(tuple(counts), _newest(every, name)) for name, counts in found.items()}


def record_of(every: Sequence[Workspace], name: str) -> Record:
    counts = [each for workspace in every for each in workspace.queue.counts() if each.workflow == name]
    return Record(tuple(counts), _newest(every, name))


def _newest(every: Sequence[Workspace], name: str) -> tuple[Took, ...]:
    return tuple(took for workspace in every for took in workspace.queue.lately(name, NEWEST))


def _seconds(began: str, ended: str | None) -> float:
    return (parse_time(ended) - parse_time(began)).total_seconds() if began and ended else 0.0
