"""Tasks and futures of a body.

`TaskGroup._tasks` and the results of `asyncio.wait` are sets, ordered by hash, which asyncio takes from the address.
These hash by `salt + creation number` instead, so that sets of them iterate in one order in every process.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, Protocol

from .scopes import Scope

# Default names come from a counter of the whole process; a task gets the path of its scope when it starts.
UNNAMED = "hermes:unnamed"


class Numbering(Protocol):
    """The loop: it counts what is created within one run."""

    def next_number(self) -> int: ...


class BodyFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: Numbering) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)  # type: ignore[arg-type]  # a BodyLoop, which is made of these

    def __hash__(self) -> int:
        return self.number


class BodyTask(asyncio.Task[Any]):
    """A task that knows its scope: a stack, since `goal` opens folders within a task.

    Not a contextvar, because two tasks may be given one Context. `context` is kept because 3.11 has no
    `Task.get_context`.
    """

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: Numbering, context: contextvars.Context) -> None:
        # Before super(): asyncio puts the task into a weak set, which asks for its hash.
        self.number = loop.next_number()
        self.context = context
        self.scopes: list[Scope] = []
        super().__init__(coro, loop=loop, name=UNNAMED, context=context)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return self.number


class InertTask(BodyFuture):
    """What `create_task` returns in a body that is taken down: it looks like a task and never ends."""

    def get_name(self) -> str:
        return UNNAMED

    def set_name(self, name: object) -> None:
        pass

    def get_coro(self) -> None:
        return None

    def cancelling(self) -> int:
        return 0

    def uncancel(self) -> int:
        return 0
