"""The clock of an export: it stands at the last thing that has happened, so the same receipts make the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ...core.clock import Clock
from ...core.summary import RunSummary
from ...core.timestamps import parse_time


class Then:
    """`core.clock.Clock` at one moment, of the boot that `clock` counts from."""

    def __init__(self, clock: Clock) -> None:
        self.moment = clock.now()
        self.boot_id = clock.boot_id

    def now(self) -> datetime:
        return self.moment

    def elapsed(self) -> float:
        return 0.0

    def stop_after(self, runs: Iterable[RunSummary]) -> None:
        """Let it be the moment of the last receipt of `runs`."""
        told = (run.updated_at or run.started_at for run in runs)
        self.moment = max((parse_time(each) for each in told if each), default=self.moment)
