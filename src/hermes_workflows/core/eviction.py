"""Taking a suspended body down, through one function.

Dropping references or `coro.close()` lets `finally` blocks run at the collector's whim, in foreign contexts and
inside other runs' slices, where their calls would be recorded. Here every task is thrown out of its awaits, newest
first and in its own context, while calls suspend instead of being requested.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .sites import waiting_site

if TYPE_CHECKING:
    from .loop import BodyLoop
    from .tasks import BodyTask

# `while True: try: await call() except BaseException: pass` never ends; it is kept for ever instead.
MAX_THROWS = 200
_graveyard: list[Any] = []


class Evicted(BaseException):
    """Thrown into the awaits of a body that is taken down; nobody is meant to catch it."""


def evict_tasks(loop: BodyLoop) -> list[str]:
    """End every task and async generator of a loop; returns the places of those that refused."""
    running = loop.current()
    if running is not None:
        # Another thread was left behind inside this body: its coroutines cannot be thrown out of anything, and its
        # slice may never end and let the collector work again.
        _graveyard.append(loop)
        gc.enable()
        return [f"{running.get_name()}, which is still being executed"]
    refused: list[str] = []
    with loop.running():
        for task in reversed(loop.open_tasks()):
            if not _throw_out(loop, task):
                refused.append(_place(task))
        while loop.generators:
            agen: Any = loop.generators.pop(0)
            closing = agen.aclose()
            if not _drive(closing.throw, agen):
                refused.append(f"async generator {agen.__qualname__}")
    loop.tasks.clear()
    loop.clear()
    return refused


def _throw_out(loop: BodyLoop, task: BodyTask) -> bool:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coro: Any = task.get_coro()
    # As the current task: `timeout` and `TaskGroup` in a `finally` raise without one, and a loop that swallows
    # what is raised would never reach an await again.
    asyncio.tasks._enter_task(loop, task)
    try:
        return _drive(lambda error: task.context.run(coro.throw, error), task)
    finally:
        asyncio.tasks._leave_task(loop, task)


def _drive(throw: Callable[[Evicted], object], what: object) -> bool:
    for _ in range(MAX_THROWS):
        try:
            throw(Evicted())
        except BaseException:
            # It ended: by Evicted, by StopIteration, or by whatever its `finally` raised. All are gone with it.
            return True
    _graveyard.append(what)
    return False


def _place(task: BodyTask) -> str:
    return str(waiting_site(task) or task.get_name())
