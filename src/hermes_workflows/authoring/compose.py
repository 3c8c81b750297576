"""`parallel` and `pipeline`: many at once, with results in order and keys that do not depend on who is first."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from ..core.live import LiveRun
from ..core.scopes import Scope
from ..errors import AuthoringError
from .composed import Composed, give_up

T = TypeVar("T")
K = TypeVar("K")
Results = list[Any]


@dataclass(frozen=True)
class Branch:
    """One of many: `start` makes its coroutine in `scope`; `item` is given up when it is never started."""

    start: Callable[[], Coroutine[Any, Any, Any]]
    scope: Scope
    item: Any = None


# A mapping is also an iterable of its keys: it comes first, hence the ignores.
@overload
def parallel(  # type: ignore[overload-overlap]
    calls: Mapping[K, Awaitable[T]], *, limit: int | None = None, return_exceptions: Literal[False] = False
) -> Composed[dict[K, T]]: ...
@overload
def parallel(  # type: ignore[overload-overlap]
    calls: Iterable[Awaitable[T]], *, limit: int | None = None, return_exceptions: Literal[False] = False
) -> Composed[list[T]]: ...
@overload
def parallel(  # type: ignore[overload-overlap]
    calls: Mapping[K, Awaitable[T]], *, limit: int | None = None, return_exceptions: bool
) -> Composed[dict[K, T | Exception]]: ...
@overload
def parallel(
    calls: Iterable[Awaitable[T]], *, limit: int | None = None, return_exceptions: bool
) -> Composed[list[T | Exception]]: ...
@overload
def parallel(
    calls: Mapping[K, Any] | Iterable[Any], *, limit: int | None = None, return_exceptions: bool = False
) -> Composed[Any]: ...
def parallel(calls: Any, *, limit: int | None = None, return_exceptions: bool = False) -> Composed[Any]:
    """Wait for many calls or coroutines at once; results in the order, or under the keys, they were given.

    Lists and dicts may stand inside each other; the results have the same form. At most `limit` branches run at a
    time. After a failure no new branch starts, started ones run to their end, then the first failure in call order
    is raised; with `return_exceptions=True` exceptions stand among the results.
    Branches that are coroutines may hold several steps; their keys begin with `parallel/<index or key>`.
    Raises AuthoringError for anything that cannot be awaited.
    """
    _check_limit("parallel", limit)
    given = calls if isinstance(calls, Mapping) else list(calls)

    def prepare(run: LiveRun, scope: Scope) -> _FanOut:
        branches: list[Branch] = []
        form = _form(given, scope, branches)
        for branch in branches:
            # Whether they are awaited is the composition's business, and whether it is, is the author's.
            run.looked_after(branch.item)
        return _FanOut(run, branches, form, limit, return_exceptions)

    return Composed("parallel", prepare)


def pipeline(items: Iterable[Any], *stages: Callable[[Any], Any], limit: int | None = None) -> Composed[list[Any]]:
    """Send each item through the stages; an item may be in stage 2 while another is in stage 1.

    A stage is `f(value) -> call | coroutine | value`. At most `limit` items are under way at a time.
    Keys begin with `pipeline/<index>`. Failures behave as in `parallel`.
    """
    _check_limit("pipeline", limit)
    values = list(items)

    async def through(value: Any) -> Any:
        for stage in stages:
            value = stage(value)
            if inspect.isawaitable(value):
                value = await value
        return value

    def prepare(run: LiveRun, scope: Scope) -> _FanOut:
        branches = [
            Branch(lambda value=value: through(value), scope.inside(index))  # type: ignore[misc]
            for index, value in enumerate(values)
        ]
        return _FanOut(run, branches, lambda results: results, limit, return_exceptions=False)

    return Composed("pipeline", prepare)


def _check_limit(name: str, limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise AuthoringError(f"{name}(limit={limit}): a limit is at least 1")


def _form(given: Any, scope: Scope, branches: list[Branch]) -> Callable[[Results], Any]:
    """Adds the branches of nested lists and dicts; returns what puts their results into the same form."""
    if isinstance(given, Mapping):
        named = {name: _form(item, scope.inside(name), branches) for name, item in given.items()}
        return lambda results: {name: make(results) for name, make in named.items()}
    if isinstance(given, list | tuple):
        numbered = [_form(item, scope.inside(index), branches) for index, item in enumerate(given)]
        return lambda results: [make(results) for make in numbered]
    if not inspect.isawaitable(given):
        raise AuthoringError(
            f"parallel() got {type(given).__name__} as a branch",
            hint="give it calls or coroutines: bash(…), review(doc)",
        )
    index = len(branches)
    start = (lambda: given) if asyncio.iscoroutine(given) else (lambda: _await(given))
    branches.append(Branch(start, scope, given))
    return lambda results: results[index]


async def _await(item: Awaitable[Any]) -> Any:
    return await item


class _FanOut:
    """Branches on their way. Done ones announce themselves: waiting on all again after each would be quadratic."""

    def __init__(
        self,
        run: LiveRun,
        branches: Sequence[Branch],
        form: Callable[[Results], Any],
        limit: int | None,
        return_exceptions: bool,
    ) -> None:
        self._run = run
        self._form = form
        self._waiting = deque(enumerate(branches))
        self._active: dict[asyncio.Future[Any], int] = {}
        self._done: deque[asyncio.Future[Any]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._limit = limit or max(len(branches), 1)
        self._return_exceptions = return_exceptions
        self._results: Results = [None] * len(branches)
        self._failures: dict[int, BaseException] = {}

    async def run(self) -> Any:
        try:
            await self._run_all()
        finally:
            self.drop()
        if self._failures:
            raise self._failures[min(self._failures)]
        return self._form(self._results)

    def drop(self) -> None:
        while self._waiting:
            give_up(self._waiting.popleft()[1].item)

    async def _run_all(self) -> None:
        try:
            self._start()
            while self._active:
                await self._next_done()
                self._collect()
                self._start()
        except BaseException:
            for task in self._active:
                task.cancel()
            while self._active:
                await self._next_done()
                self._collect()
            raise

    def _start(self) -> None:
        while self._waiting and len(self._active) < self._limit and not self._failures:
            index, branch = self._waiting.popleft()
            task = self._run.loop.spawn(branch.start(), branch.scope)
            self._active[task] = index
            task.add_done_callback(self._announce)

    def _announce(self, task: asyncio.Future[Any]) -> None:
        self._done.append(task)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _next_done(self) -> None:
        if not self._done:
            self._wake = self._run.loop.create_future()
            await self._wake

    def _collect(self) -> None:
        while self._done:
            task = self._done.popleft()
            index = self._active.pop(task)
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                self._results[index] = task.result()
            elif self._return_exceptions and isinstance(error, Exception):
                self._results[index] = error
            else:
                self._failures[index] = error
