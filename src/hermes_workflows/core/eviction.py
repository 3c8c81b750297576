"""Taking a suspended body down, through one function.

Dropping references or `coro.close()` lets `finally` blocks run at the collector's whim, in foreign contexts and
inside other runs' slices, where their calls would be recorded. Here every task is thrown out of its awaits, newest
first and in its own context, while calls suspend instead of being requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loop import BodyLoop, BodyTask

# `while True: try: await call() except BaseException: pass` never ends; it is kept for ever instead.
MAX_THROWS = 200
_graveyard: list[Any] = []


class Evicted(BaseException):
    """Thrown into the awaits of a body that is taken down; nobody is meant to catch it."""


def evict_tasks(loop: BodyLoop) -> list[str]:
    """End every task and async generator of a loop; returns the lines of those that refused."""
    previous = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    refused: list[str] = []
    try:
        for task in reversed(loop.open_tasks()):
            if not _throw_out(task):
                refused.append(_line(task))
        for agen in loop.generators:
            closing = agen.aclose()
            if not _drive(closing.throw, closing):
                refused.append(f"async generator {agen.__qualname__}")
    finally:
        asyncio._set_running_loop(previous)
    loop.generators.clear()
    loop.tasks.clear()
    loop.clear()
    return refused


def _throw_out(task: BodyTask) -> bool:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coro = task.get_coro()
    return _drive(lambda error: task.context.run(coro.throw, error), task)  # type: ignore[union-attr]


def _drive(throw: Callable[[Evicted], object], what: object) -> bool:
    for _ in range(MAX_THROWS):
        try:
            throw(Evicted())
        except BaseException:
            # It ended: by Evicted, by StopIteration, or by whatever its `finally` raised. All are gone with it.
            return True
    _graveyard.append(what)
    return False


def _line(task: BodyTask) -> str:
    frames = task.get_stack(limit=1)
    return f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else task.get_name()
