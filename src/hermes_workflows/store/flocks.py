"""Files that are opened to be locked, so that a lock ends with whoever took it.

A `flock` belongs to the open file, and a child that was forked has that file open as well: a step may fork while
another thread of its runner writes. So whoever lets go unlocks, since closing alone would leave the lock with the
child; and a child closes what it was born with, since it may outlive a parent that is killed in the middle.
"""

from __future__ import annotations

import fcntl
import os
from _thread import RLock  # `status`, which must start fast, has no use for the rest of `threading`

_OPEN: set[int] = set()
_GUARD = RLock()


def open_to_lock(path: str | os.PathLike[str], flags: int, mode: int = 0o644) -> int:
    """A descriptor that `let_go` closes. Raises OSError."""
    # Nobody forks between the two.
    with _GUARD:
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
        _OPEN.add(descriptor)
    return descriptor


def let_go(descriptor: int) -> None:
    """Unlock and close. Nothing in a child for what its parent has opened."""
    with _GUARD:
        if descriptor in _OPEN:
            _OPEN.remove(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _forked() -> None:
    # Closed and not unlocked: that would take the lock from the parent.
    for descriptor in _OPEN:
        os.close(descriptor)
    _OPEN.clear()
    _GUARD.release()


os.register_at_fork(before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forked)
