"""What `parallel`, `pipeline` and `goal` return: an awaitable value, as a call is one."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

from ..core.calls import Call, current_run
from ..core.live import LiveRun
from ..core.scopes import Scope
from ..core.sites import caller_site
from ..errors import AuthoringError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Work(Protocol[T_co]):
    def run(self) -> Coroutine[Any, Any, T_co]: ...
    def drop(self) -> None:
        """Give up what was handed to it and never started."""


class Composed(Generic[T_co]):
    """An awaitable whose scope is claimed where it is written, like a call's key.

    Awaiting it again gives the same outcome.
    """

    def __init__(self, kind: str, prepare: Callable[[LiveRun, Scope], Work[T_co]]) -> None:
        run = current_run(f"{kind}()")
        self.kind = kind
        self.site = caller_site()
        self.number = run.loop.next_number()
        self.task = run.loop.current()
        scope = run.loop.scope.open(kind)
        self.key = "/".join(scope.path)
        self._run = run
        self._work = prepare(run, scope)
        self._begun = False
        self._value: tuple[T_co] | None = None
        self._error: BaseException | None = None
        run.written(self)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<{self.key}>"

    def __await__(self) -> Generator[Any, None, T_co]:
        run = self._run
        if run.evicting:
            yield from run.suspend_for_ever()
        run.looked_after(self)
        if self._error is not None:
            raise self._error
        if self._value is None:
            self._value = ((yield from self._first()),)
        return self._value[0]

    def _first(self) -> Generator[Any, None, T_co]:
        if self._begun:
            raise AuthoringError(
                f"{self.key} is being awaited already ({self.site.within(self._run.root)})",
                hint="make a task of it, which several may await: asyncio.create_task(…)",
            )
        self._begun = True
        try:
            value: T_co = yield from _inline(self._work.run())
        except BaseException as error:
            self._error = error
            raise
        return value

    def drop(self) -> None:
        """A composition around this one never started it."""
        self._run.looked_after(self)
        self._work.drop()


@types.coroutine
def _inline(coro: Coroutine[Any, Any, T]) -> Generator[Any, None, T]:
    # `coro.__await__()` would do, and would hide from the stack where inside the author's code it waits.
    value: T = yield from coro
    return value


def give_up(item: Any) -> None:
    """Close what a composition was given and never started: it is no mistake of the author."""
    if isinstance(item, Call | Composed):
        item.drop()
    elif inspect.iscoroutine(item):
        # Calls that were written as its arguments go with it.
        for each in inspect.getcoroutinelocals(item).values():
            give_up(each)
        item.close()
