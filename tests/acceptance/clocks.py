"""A machine's clock that can be set: every process of one test reads it from a file, as processes share a machine's.

Only what the clock says is moved, never how fast it goes: wall time jumps both ways, time since boot only onwards,
as it does while a machine is suspended.
"""

from __future__ import annotations

import os
import struct
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from hermes_workflows.clock import SystemClock

VARIABLE = "HERMES_TEST_CLOCK"
_FORM = struct.Struct("dd")
_elapsed = SystemClock.elapsed


class ShiftedClock(SystemClock):
    """This machine's clock, moved by what stands in a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def _file(self) -> int:
        return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def shift(self) -> tuple[float, float]:
        """By how many seconds wall time and time since boot are off."""
        wall, boot = _FORM.unpack(os.pread(self._file, _FORM.size, 0))
        return wall, boot

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.shift[0])

    def elapsed(self) -> float:
        return _elapsed(self) + self.shift[1]


def set_clock(path: Path, wall: float = 0.0, boot: float = 0.0) -> None:
    with open(path, "r+b" if path.exists() else "wb", buffering=0) as file:
        file.write(_FORM.pack(wall, boot))


def install(path: str) -> None:
    """Let this process, one of the command line, live by the clock in that file."""
    clock = ShiftedClock(path)
    SystemClock.now = lambda self: clock.now()  # type: ignore[method-assign]
    SystemClock.elapsed = lambda self: clock.elapsed()  # type: ignore[method-assign]
