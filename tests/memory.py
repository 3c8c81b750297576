"""Tests write into memory where there is enough of it: what they write is removed at once, and no disk is waited for.

What the store does depends on the file system: there it does what it would do on the disk, which tests marked `syncs`
are on. `PYTEST_DEBUG_TEMPROOT=/tmp` leaves all of them there, as `make soak` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import gettempdir

from hermes_workflows.store import durability

_ROOT = "/dev/shm"
_PLACE = "PYTEST_DEBUG_TEMPROOT"
# In bytes. A tenth is what two workers have there at a time.
_ENOUGH = 2 << 30


def use() -> None:
    if _PLACE not in os.environ and _has_room():
        os.environ[_PLACE] = _ROOT


def is_used() -> bool:
    return os.environ.get(_PLACE) == _ROOT


def folder() -> str | None:
    """For `tempfile`: where its folders are made, None for the usual place."""
    return _ROOT if is_used() else None


def is_ordered_on_disk(*_: Path) -> bool:
    """In the place of `has_ordered_journal`."""
    return _ORDERED


_ORDERED = durability.has_ordered_journal(Path(gettempdir()))


def _has_room() -> bool:
    try:
        found = os.statvfs(_ROOT)
    except OSError:
        return False
    # Tests write programs as well.
    may_execute = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    return may_execute and os.access(_ROOT, os.W_OK) and found.f_bavail * found.f_frsize >= _ENOUGH
