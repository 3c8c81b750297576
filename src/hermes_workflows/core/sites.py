"""Places in the author's code: where a call was written, and where a task waits.

They stand in errors, some of which are recorded, so they are shown relative to the workspace: a run must read the
same wherever it is checked out.
"""

from __future__ import annotations

import asyncio
import sys
from functools import cache
from pathlib import PurePath
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

_PACKAGE = __name__.partition(".")[0]
_OWN_EXAMPLES = f"{_PACKAGE}.examples"


class Site(NamedTuple):
    """One line; formatted only when somebody reads it."""

    code: CodeType
    line: int

    def __str__(self) -> str:
        return f"{self.code.co_filename}:{self.line}"

    def within(self, root: str | None) -> str:
        """`file:line`, relative to `root` when it lies below."""
        path = PurePath(self.code.co_filename)
        shown = path.relative_to(root).as_posix() if root and path.is_relative_to(root) else str(path)
        return f"{shown}:{self.line}"


def caller_site() -> Site:
    """The innermost frame of the author's code (less than 1 µs)."""
    frame = sys._getframe(1)
    while not _is_the_authors(frame) and frame.f_back is not None:
        frame = frame.f_back
    return Site(frame.f_code, frame.f_lineno)


def waiting_site(task: asyncio.Task[Any]) -> Site | None:
    """The innermost line of the author's code at which a task is suspended."""
    found: Site | None = None
    awaiting: Any = task.get_coro()
    while (frame := _frame_of(awaiting)) is not None:
        if _is_the_authors(frame):
            found = Site(frame.f_code, frame.f_lineno)
        # `coro.get_stack()` knows the outermost frame of a suspended coroutine only.
        awaiting = getattr(awaiting, "cr_await", None) or getattr(awaiting, "gi_yieldfrom", None)
    return found


def raising_site(error: BaseException) -> Site | None:
    """The innermost line of the author's code that an exception went through."""
    found: Site | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if _is_the_authors(trace.tb_frame):
            found = Site(trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _frame_of(awaiting: object) -> FrameType | None:
    return getattr(awaiting, "cr_frame", None) or getattr(awaiting, "gi_frame", None)


def _is_the_authors(frame: FrameType) -> bool:
    return _are_the_authors(frame.f_globals.get("__name__", ""))


@cache
def _are_the_authors(module: str) -> bool:
    return module.partition(".")[0] not in (_PACKAGE, "asyncio") or module.startswith(_OWN_EXAMPLES)
