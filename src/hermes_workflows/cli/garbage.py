"""Garbage in a process that is nothing but one command, and reads much: what it makes lives until its end, mostly."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from .session import Session

_OBJECTS = 200_000


@contextmanager
def left_lying(session: Session) -> Iterator[None]:
    """Look for garbage seldom in this block, and not at the end of the process. A quarter of a long replay is that.

    By itself Python looks at every 700 objects, and once more at all of them before it ends. Whoever needs what an
    object does when it is collected, as an open file in a cycle, may not use this.
    """
    if not session.own_process:
        yield
        return
    gc.set_threshold(_OBJECTS, 20, 100)
    try:
        yield
    finally:
        gc.freeze()
