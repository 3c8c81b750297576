"""The time a body lives in (SEMANTICS §7): that of its receipts, monotonic whatever the hosts' clocks do."""

from __future__ import annotations

from datetime import datetime

from .receipts import Receipt, time_of
from .timestamps import parse_time


class RunTime:
    """`now` is the largest time among the start and the receipts delivered so far."""

    def __init__(self, started: Receipt) -> None:
        # A run that goes on from another one has that one's time: what it adopts was requested in it.
        clock = (started.execution.source or {}).get("clock")
        self._origin = parse_time(clock) if clock else started.execution.started_at
        self.now: datetime | None = self._origin

    def pass_to(self, receipt: Receipt) -> None:
        moment = time_of(receipt)
        if moment is not None and (self.now is None or moment > self.now):
            self.now = moment

    def elapsed(self) -> float:
        """Seconds since the start of the run."""
        if self.now is None or self._origin is None:
            return 0.0
        return (self.now - self._origin).total_seconds()
