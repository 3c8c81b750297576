"""Time in a test: it stands still, and jumps to whatever is due next when nothing is left to do before.

With freezegun the frozen time is the clock, and jumps with the run: a step that asks for the time sees it pass.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol, cast

from ..clock import SystemClock
from ..core.clock import Clock
from ..core.timestamps import in_milliseconds
from ..errors import InvalidInput
from .frozen_time import Freezer, active_freezer, teach_pydantic


class MovableClock(Clock, Protocol):
    """A clock that the driver of a run may move on."""

    def move_to(self, moment: datetime) -> None:
        """Let time pass until `moment`; an earlier one changes nothing."""


class TestClock:
    """A clock that stands at `start` until it is moved; a time without a zone is UTC.

    Given to several runs, it goes on where the last one left it.
    """

    __test__ = False  # it is no test, whatever pytest makes of the name
    boot_id = "test"

    def __init__(self, start: datetime | None = None) -> None:
        self._now = _in_utc(start) if start else in_milliseconds(SystemClock().now())
        self._origin = self._now

    def now(self) -> datetime:
        return self._now

    def elapsed(self) -> float:
        return (self._now - self._origin).total_seconds()

    def move_to(self, moment: datetime) -> None:
        self._now = max(self._now, _in_utc(moment))

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.move_to(self._now + timedelta(seconds=seconds))


class FrozenTime:
    """The time that freezegun has frozen for the whole process; `freezer` is what `freeze_time` gives to a test."""

    boot_id = "test"

    def __init__(self, freezer: Freezer) -> None:
        self._freezer = freezer
        self._origin = self.now()

    def now(self) -> datetime:
        return SystemClock().now()

    def elapsed(self) -> float:
        return (self.now() - self._origin).total_seconds()

    def move_to(self, moment: datetime) -> None:
        if moment > self.now():
            self._freezer.move_to(moment)


def clock_of(given: MovableClock | Freezer | datetime | None) -> MovableClock:
    """The clock that `clock=` means: one that was made before, one that begins at a given time, or now.

    Raises InvalidInput for anything else.
    """
    teach_pydantic()
    if isinstance(given, datetime):
        return TestClock(given)
    if given is None:
        freezer = active_freezer()
        return FrozenTime(freezer) if freezer is not None else TestClock()
    if hasattr(given, "elapsed"):
        return cast(MovableClock, given)
    if hasattr(given, "time_to_freeze"):
        return FrozenTime(given)
    raise InvalidInput(
        f"clock={given!r} is no clock", hint="give a TestClock, a datetime to begin at, or what freeze_time gave you"
    )


def _in_utc(moment: datetime) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
