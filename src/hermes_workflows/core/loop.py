"""The deterministic event loop a body runs on: FIFO, no selector, no threads, no clock of its own.

It implements the eleven methods that asyncio's tasks, futures, locks, queues, timeouts and task groups use
(checked on 3.11 to 3.13); every other method of `AbstractEventLoop` says that such work belongs in a `@step`.

Three traps it closes, each met by a prototype that ran thousands of random bodies:
- `TaskGroup._tasks` and the results of `asyncio.wait` are sets ordered by address. Tasks, futures and calls
  hash by `salt + creation number` instead, so sets of them iterate in one order.
- asyncio's registry of all tasks is one process-wide weak set: the salt keeps runs apart in it.
- Default task names come from a process-wide counter: every task gets the path of its scope as its name.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from types import CodeType, FrameType
from typing import Any, Protocol

from ..errors import AuthoringError, NotInAWorkflow
from .scopes import Scope

# A slice that runs more handles than this never leaves the drain (`while True: await asyncio.sleep(0)`).
MAX_HANDLES = 1_000_000

_UNNAMED = "hermes:unnamed"


class Owner(Protocol):
    """The live run a loop belongs to."""

    evicting: bool

    def time(self) -> float: ...
    def timer_created(self, handle: asyncio.TimerHandle, seconds: float) -> None: ...
    def timer_cancelled(self, handle: asyncio.TimerHandle) -> None: ...


class BodyFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: BodyLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class BodyTask(asyncio.Task[Any]):
    """A task that knows its scope. `context` is kept because 3.11 has no `Task.get_context`."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: BodyLoop, context: contextvars.Context) -> None:
        # Before super(): asyncio puts the task into a weak set, which asks for its hash.
        self.number = loop.next_number()
        self.context = context
        self.scopes: list[Scope] = []
        super().__init__(coro, loop=loop, name=_UNNAMED, context=context)

    def __hash__(self) -> int:
        return self.number


class BodyLoop(asyncio.AbstractEventLoop):
    def __init__(self, owner: Owner, salt: int) -> None:
        self.owner = owner
        self.tasks: dict[int, BodyTask] = {}
        self.escaped: BaseException | None = None
        self.diagnostics: list[str] = []
        self.root = Scope()
        self.generators: list[AsyncGenerator[Any, Any]] = []
        self._ready: deque[asyncio.Handle] = deque()
        self._salt = salt
        self._created = 0

    # -- what asyncio asks for -------------------------------------------------------------------------------

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def time(self) -> float:
        return self.owner.time()

    def create_future(self) -> BodyFuture:
        return BodyFuture(loop=self)

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_after(delay, callback, args, context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_after(when - self.time(), callback, args, context)

    def _call_after(
        self, delay: float, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> asyncio.TimerHandle:
        # Microseconds: `(t + d) - t` is not exactly d, and the delay stands in the fingerprint.
        delay = round(delay, 6)
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        if self.owner.evicting:
            return handle
        if delay <= 0:
            self._ready.append(handle)
        else:
            handle._scheduled = True
            self.owner.timer_created(handle, delay)
        return handle

    def fire(self, handle: asyncio.TimerHandle) -> None:
        """Queue a timer's callback; its fired receipt was delivered."""
        handle._scheduled = False
        self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self.owner.timer_cancelled(handle)

    def create_task(
        self, coro: Any, *, name: Any = None, context: contextvars.Context | None = None, **options: Any
    ) -> Any:
        if options.get("eager_start"):
            raise NotInAWorkflow("eager tasks have no place in the order of a workflow; leave eager_start out")
        if self.owner.evicting:
            return self._inert(coro)
        callers = tuple(_asyncio_callers(sys._getframe(1)))
        if not asyncio.iscoroutine(coro):
            coro = _await(coro)
        _refuse_as_completed(coro, callers)
        parent = self.scope
        # `wait_for` makes a task on 3.11 and none on 3.12: the keys inside must not depend on that.
        shares = "wait_for" in callers or getattr(coro, "cr_code", None) in _WRAPPERS or not hasattr(coro, "cr_code")
        return self._spawn(coro, parent, context, shares=shares, name=name)

    def spawn(self, coro: Coroutine[Any, Any, Any], scope: Scope) -> asyncio.Future[Any]:
        """A task in a scope that its maker has named (`parallel/<index>`)."""
        if self.owner.evicting:
            return self._inert(coro)
        return self._spawn(coro, scope, None, shares=True, name=None)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        # Called from `__del__` at garbage-collection time: it must never change a decision.
        error = context.get("exception")
        self.diagnostics.append(f"{context.get('message')}: {type(error).__name__ if error else ''}")

    # -- our side --------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        self._created += 1
        return self._salt + self._created

    @property
    def scope(self) -> Scope:
        """The scope of the running task; callbacks without a task stand at the root."""
        task = self.current()
        return task.scopes[-1] if isinstance(task, BodyTask) and task.scopes else self.root

    def current(self) -> asyncio.Task[Any] | None:
        return asyncio.current_task(self)

    def drain(self) -> None:
        """Run until nothing is ready: one slice.

        SystemExit and KeyboardInterrupt escape asyncio's handles; they are kept and the drain goes on,
        so that the order of everything else does not depend on them.
        """
        previous = asyncio._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        collecting = gc.isenabled()
        # Nobody's `finally`, `__del__` or weakref callback may run in a slice by chance of the collector.
        gc.disable()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=self.generators.append, finalizer=None)
        try:
            self._run_handles()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(previous)
            if collecting:
                gc.enable()
        if self.generators:
            self.generators[:] = [each for each in self.generators if each.ag_frame is not None]

    def _run_handles(self) -> None:
        ready = self._ready
        for _ in range(MAX_HANDLES):
            if not ready:
                return
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._run()
            except (SystemExit, KeyboardInterrupt) as error:
                self.escaped = self.escaped or error
        raise AuthoringError(
            f"the body ran {MAX_HANDLES:,} callbacks without waiting for anything{self._busy_line()}",
            hint="a loop around `await asyncio.sleep(0)` never ends; await a call instead",
        )

    def _busy_line(self) -> str:
        frames = [frame for task in self.open_tasks() for frame in task.get_stack(limit=1)]
        return f", last at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""

    def clear(self) -> None:
        self._ready.clear()

    def open_tasks(self) -> list[BodyTask]:
        """Tasks that are not done, in creation order; done ones are forgotten."""
        self.tasks = {number: task for number, task in self.tasks.items() if not task.done()}
        return list(self.tasks.values())

    def _spawn(
        self,
        coro: Coroutine[Any, Any, Any],
        parent: Scope,
        context: contextvars.Context | None,
        *,
        shares: bool,
        name: str | None,
    ) -> BodyTask:
        cell: list[BodyTask] = []
        # Queued before the task's own first step: TaskGroup of 3.11 and 3.12 names a task after making it,
        # and repeats are counted in the order in which tasks start.
        self.call_soon(self._enter_scope, cell, parent, shares)
        task = BodyTask(coro, loop=self, context=context or contextvars.copy_context())
        if name is not None:
            task.set_name(name)
        cell.append(task)
        self.tasks[task.number] = task
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self.tasks.pop(task.number, None)  # type: ignore[attr-defined]

    def _enter_scope(self, cell: list[BodyTask], parent: Scope, shares: bool) -> None:
        task = cell[0]
        explicit = task.get_name() if task.get_name() != _UNNAMED else None
        if shares:
            task.scopes.append(parent)
        else:
            coro = task.get_coro()
            task.scopes.append(parent.open(explicit or getattr(coro, "__name__", "task")))
        if explicit is None:
            task.set_name("/".join(task.scopes[-1].path) or "body")

    def _inert(self, coro: Any) -> BodyFuture:
        if hasattr(coro, "close"):
            coro.close()
        return self.create_future()


async def _await(awaitable: Any) -> Any:
    return await awaitable


_WRAPPERS: frozenset[CodeType] = frozenset(
    code
    for function in (_await, getattr(asyncio.tasks, "_wrap_awaitable", None))
    if isinstance(code := getattr(function, "__code__", None), CodeType)
)


def _asyncio_callers(frame: FrameType | None) -> Iterator[str]:
    """Names of the asyncio functions between a call of ours and the author's code."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("asyncio"):
        yield frame.f_code.co_name
        if frame.f_code.co_qualname.startswith("_AsCompletedIterator"):
            yield "as_completed"
        frame = frame.f_back


def _refuse_as_completed(coro: Any, callers: tuple[str, ...]) -> None:
    # It puts what it is given into a set before it starts it, so bare coroutines start in address order.
    if "as_completed" in callers and getattr(coro, "cr_code", None) not in _WRAPPERS:
        coro.close()
        raise NotInAWorkflow(
            "as_completed() starts bare coroutines in an order that cannot be repeated",
            hint="pass tasks or calls: asyncio.as_completed([asyncio.create_task(c) for c in …])",
        )


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(self: BodyLoop, *args: Any, **options: Any) -> Any:
        raise NotInAWorkflow(
            f"loop.{name}() cannot run inside a workflow body, whose decisions must be repeatable",
            hint="sockets, threads, processes and signals belong in a @step",
        )

    refuse.__name__ = name
    return refuse


for _name in dir(asyncio.AbstractEventLoop):
    if not _name.startswith("_") and _name not in BodyLoop.__dict__:
        setattr(BodyLoop, _name, _refusal(_name))
# ABCMeta computed the abstract set before the refusals were there (3.11 has none, later versions may).
BodyLoop.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
