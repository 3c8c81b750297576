"""The machine's clock: wall time for receipts and people, time since boot for leases (core/clock.py says why)."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from functools import cached_property

_LINUX_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# CLOCK_MONOTONIC stands still while a Linux machine sleeps: a lease would outlive a suspend of an hour.
# macOS has no CLOCK_BOOTTIME, but its CLOCK_MONOTONIC counts sleep.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """`core.clock.Clock`, asked of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed(self) -> float:
        return time.clock_gettime(_BOOT_CLOCK)

    @cached_property
    def boot_id(self) -> str:
        try:
            # Without `pathlib`, which costs `--help` more than all else of ours.
            with open(_LINUX_BOOT_ID, encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return _darwin_boot_id() if sys.platform == "darwin" else "unknown"


def _darwin_boot_id() -> str:
    import ctypes  # noqa: PLC0415  # on Linux, where `status` must start fast, nobody asks for it

    libc = ctypes.CDLL(None)
    size = ctypes.c_size_t(64)
    value = ctypes.create_string_buffer(size.value)
    failed = libc.sysctlbyname(b"kern.bootsessionuuid", value, ctypes.byref(size), None, 0)
    return "unknown" if failed else value.value.decode("ascii")
