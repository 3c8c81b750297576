"""`parallel` and `pipeline`: many at once, with results in order and keys that do not depend on who is first."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from ..core.calls import Call, current_run
from ..core.live import LiveRun
from ..core.scopes import Scope
from ..errors import AuthoringError

T = TypeVar("T")
K = TypeVar("K")


class Composed(Generic[T]):
    """An awaitable whose scope is claimed where it is written, like a call's key."""

    def __init__(self, name: str, work: Callable[[LiveRun, Scope], Coroutine[Any, Any, T]]) -> None:
        self._run = current_run(f"{name}()")
        self._number = self._run.loop.next_number()
        self._scope = self._run.loop.scope.open(name)
        self._work = work

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other

    def __await__(self) -> Generator[Any, None, T]:
        return (yield from self._work(self._run, self._scope).__await__())


@dataclass(frozen=True)
class Branch:
    """One of many: `start` makes its coroutine in `scope`; `drop` is called when it is never started."""

    start: Callable[[], Coroutine[Any, Any, Any]]
    scope: Scope
    drop: Callable[[], None]


@overload
def parallel(
    calls: Mapping[K, Awaitable[T]], *, limit: int | None = None, return_exceptions: bool = False
) -> Composed[dict[K, T]]: ...
@overload
def parallel(
    calls: Iterable[Awaitable[T]], *, limit: int | None = None, return_exceptions: bool = False
) -> Composed[list[T]]: ...
def parallel(calls: Any, *, limit: int | None = None, return_exceptions: bool = False) -> Composed[Any]:
    """Wait for many calls or coroutines at once; results in the order, or under the keys, they were given.

    At most `limit` run at a time. After a failure no new branch starts, started ones run to their end, then the
    first failure in call order is raised; with `return_exceptions=True` exceptions stand among the results.
    Branches that are coroutines may hold several steps; their keys begin with `parallel/<index or key>`.
    """
    named = isinstance(calls, Mapping)
    items: dict[Any, Any] = dict(calls) if named else dict(enumerate(calls))
    _check_limit("parallel", limit)

    async def work(run: LiveRun, scope: Scope) -> Any:
        branches = [_branch(run, scope.inside(str(name)), item) for name, item in items.items()]
        results = await _fan_out(run, branches, limit, return_exceptions)
        return dict(zip(items, results, strict=True)) if named else results

    return Composed("parallel", work)


def pipeline(items: Sequence[Any], *stages: Callable[[Any], Any], limit: int | None = None) -> Composed[list[Any]]:
    """Send each item through the stages; an item may be in stage 2 while another is in stage 1.

    A stage is `f(value) -> call | coroutine | value`. At most `limit` items are under way at a time.
    Keys begin with `pipeline/<index>`. Failures behave as in `parallel`.
    """
    values = list(items)
    _check_limit("pipeline", limit)

    async def through(value: Any) -> Any:
        for stage in stages:
            value = stage(value)
            if inspect.isawaitable(value):
                value = await value
        return value

    async def work(run: LiveRun, scope: Scope) -> list[Any]:
        branches = [
            Branch(lambda value=value: through(value), scope.inside(str(index)), _nothing)  # type: ignore[misc]
            for index, value in enumerate(values)
        ]
        return await _fan_out(run, branches, limit, return_exceptions=False)

    return Composed("pipeline", work)


def _check_limit(name: str, limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise AuthoringError(f"{name}(limit={limit}): a limit is at least 1")


def _nothing() -> None:
    pass


def _branch(run: LiveRun, scope: Scope, item: Any) -> Branch:
    if isinstance(item, Call):
        return Branch(lambda: _await(item), scope, lambda: run.excuse(item))
    if asyncio.iscoroutine(item):
        return Branch(lambda: item, scope, item.close)
    if inspect.isawaitable(item):
        return Branch(lambda: _await(item), scope, _nothing)
    raise AuthoringError(
        f"parallel() got {type(item).__name__} as a branch", hint="give it calls or coroutines: bash(…), review(doc)"
    )


async def _await(item: Awaitable[Any]) -> Any:
    return await item


class _FanOut:
    """Branches on their way. Done ones announce themselves: waiting on all again after each would be quadratic."""

    def __init__(self, run: LiveRun, branches: Sequence[Branch], limit: int | None, return_exceptions: bool) -> None:
        self._run = run
        self._waiting = deque(enumerate(branches))
        self._active: dict[asyncio.Future[Any], int] = {}
        self._done: deque[asyncio.Future[Any]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._limit = limit or max(len(branches), 1)
        self._return_exceptions = return_exceptions
        self.results: list[Any] = [None] * len(branches)
        self.failures: dict[int, BaseException] = {}

    async def run(self) -> None:
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
        finally:
            while self._waiting:
                self._waiting.popleft()[1].drop()

    def _start(self) -> None:
        while self._waiting and len(self._active) < self._limit and not self.failures:
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
                self.results[index] = task.result()
            elif self._return_exceptions and isinstance(error, Exception):
                self.results[index] = error
            else:
                self.failures[index] = error


async def _fan_out(run: LiveRun, branches: Sequence[Branch], limit: int | None, return_exceptions: bool) -> list[Any]:
    fan = _FanOut(run, branches, limit, return_exceptions)
    await fan.run()
    if fan.failures:
        raise fan.failures[min(fan.failures)]
    return fan.results
