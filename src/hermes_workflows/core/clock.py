"""The clock is an argument: nothing below the command line asks the machine for the time by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time in UTC: for receipts and people. It may jump."""

    def elapsed(self) -> float:
        """Seconds since boot, suspend included (CLOCK_BOOTTIME): for leases and heartbeats. It never jumps."""

    @property
    def boot_id(self) -> str:
        """Which boot `elapsed` counts from; leases of another boot have expired."""
