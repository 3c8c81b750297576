"""When the calls of a run happened, as bars on one line of time. Pure: from receipts to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from ..core.durations import duration
from ..core.outline import Line, Ran, outcome
from ..core.receipts import Receipt
from .doing import Doing

# The width of the whole run; no bar is narrower than one can see.
WIDTH: Final = 1000
_NARROWEST: Final = 4
_ROW: Final = 22
# The width of one character of a label, at most.
_LETTER: Final = 8


@dataclass(frozen=True)
class Bar:
    """One call: from `x` on, `width` wide, in the row that begins at `y`."""

    label: str
    status: str
    about: str
    x: int
    y: int
    width: int

    @property
    def _around(self) -> Literal["within", "after", "before"]:
        """Where the label has room."""
        long = len(self.label) * _LETTER + 8
        if long <= self.width:
            return "within"
        return "after" if self.x + self.width + long <= WIDTH or self.x < WIDTH // 2 else "before"

    @property
    def anchor(self) -> Literal["start", "end"]:
        """Which end of the label stands at `text_x`."""
        return "end" if self._around == "before" else "start"

    @property
    def text_x(self) -> int:
        return {"within": self.x + 4, "after": self.x + self.width + 4, "before": self.x - 4}[self._around]

    @property
    def text_y(self) -> int:
        return self.y + _ROW - 7


@dataclass(frozen=True)
class Timeline:
    bars: tuple[Bar, ...]
    took: str
    width: int = WIDTH

    @property
    def height(self) -> int:
        return len(self.bars) * _ROW


def look_of(said: Ran | Line) -> str:
    """As what a call is marked: a command that failed has completed, and nobody would call that good."""
    return "failed" if said.exit_code else said.status


def timeline_of(
    receipts: Sequence[Receipt], calls: Iterable[Ran], now: datetime, doing: Iterable[Doing] = ()
) -> Timeline:
    """The bars of `calls`, in their order, and of what is being done; one that is open lasts until `now`."""
    spans = _spans(receipts)
    shown = [_Span.of(ran, *_ended(spans[ran.key], ran, now)) for ran in calls if ran.key in spans]
    # Clocks differ a little: nothing ends before it has begun.
    shown += [_Span(each.key, "open", each.told, each.since, max(now, each.since)) for each in doing if each.since]
    first = min((span.began for span in shown), default=now)
    whole = max((span.ended for span in shown), default=now) - first
    bars = (_bar(span, first, whole, row) for row, span in enumerate(shown))
    return Timeline(tuple(bars), duration(whole.total_seconds()))


@dataclass(frozen=True)
class _Span:
    key: str
    look: str
    outcome: str
    began: datetime
    ended: datetime

    @classmethod
    def of(cls, ran: Ran, began: datetime, ended: datetime) -> _Span:
        return cls(ran.key, look_of(ran), outcome(ran), began, ended)


def _spans(receipts: Iterable[Receipt]) -> Mapping[str, tuple[datetime, datetime]]:
    """The first and the last moment that the receipts of a key tell of."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for receipt in receipts:
        execution = receipt.execution
        for moment in (execution.started_at, execution.finished_at):
            if moment is not None:
                began, ended = found.get(receipt.key, (moment, moment))
                found[receipt.key] = min(began, moment), max(ended, moment)
    return found


def _ended(span: tuple[datetime, datetime], ran: Ran, now: datetime) -> tuple[datetime, datetime]:
    began, ended = span
    return began, max(ended, now) if ran.is_open else ended


def _bar(span: _Span, first: datetime, whole: timedelta, row: int) -> Bar:
    after, lasted = span.began - first, span.ended - span.began
    scale = WIDTH / max(whole.total_seconds(), 0.001)
    width = min(max(round(lasted.total_seconds() * scale), _NARROWEST), WIDTH)
    lasting, later = duration(lasted.total_seconds()), duration(after.total_seconds())
    about = f"{span.key}: {span.outcome}, {lasting}, {later} after the first"
    x = min(round(after.total_seconds() * scale), WIDTH - width)
    return Bar(span.key, span.look, about, x, row * _ROW, width)
