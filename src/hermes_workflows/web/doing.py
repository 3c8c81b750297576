"""What a run has in the queue: calls in a runner's hands, with the last line they printed, and calls that wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..core.timestamps import parse_time
from ..facts import Observed, becomes, last_line
from ..store.queue_port import WorkRow

# Calls of a body that somebody executes; others have a receipt that says that they are open.
_KINDS: Final = ("step", "agent", "bash", "artifact", "timer")
# Rows that are shown; a list says how many there are.
_MOST: Final = 50


@dataclass(frozen=True)
class Doing:
    """One call. `told` is like `executing on ada for 3 min`, `since` is when it was claimed, where somebody has it."""

    key: str
    what: str
    status: str
    told: str
    said: str
    since: datetime | None


@dataclass(frozen=True)
class InQueue:
    """The calls that are shown, those in hand first, and how many there are besides."""

    calls: tuple[Doing, ...] = ()
    more: int = 0


def in_queue(seen: Observed, now: datetime) -> InQueue:
    rows = sorted(_rows(seen), key=lambda row: (row.status == "queued", row.work.visible_at, row.claimed_at or ""))
    calls = (_doing(row, seen, now) for row in rows[:_MOST])
    return InQueue(tuple(calls), max(len(rows) - _MOST, 0))


def _rows(seen: Observed) -> Iterator[WorkRow]:
    """A key with a `$` is a limit of the run's, and no call."""
    return (row for row in seen.work if row.work.kind in _KINDS and "$" not in row.work.key)


def _doing(row: WorkRow, seen: Observed, now: datetime) -> Doing:
    work, held = row.work, row.status in ("leased", "withdrawn")
    what = " ".join(filter(None, (work.kind, work.name)))
    since = parse_time(row.claimed_at) if held and row.claimed_at else None
    return Doing(work.key, what, row.status, becomes(row, now.timestamp()), last_line(row, seen.runners), since)
