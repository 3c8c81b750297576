"""The deterministic event loop a body runs on: FIFO, no selector, no threads, no clock of its own.

It implements the eleven methods that asyncio's tasks, futures, locks, queues, timeouts and task groups use
(checked on 3.11 to 3.13); every other method of `AbstractEventLoop` says that such work belongs in a `@step`.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import math
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVarTuple

from ..errors import AuthoringError, NotInAWorkflow
from .redaction import Redactor
from .scopes import Scope
from .sites import waiting_site
from .tasks import UNNAMED, BodyFuture, BodyTask, InertTask

# A slice that runs more handles than this never leaves the drain (`while True: await asyncio.sleep(0)`).
MAX_HANDLES = 1_000_000

# A hundred years, in seconds: what a date can still be told of, whatever day it is added to.
MAX_DELAY = 36_525 * 86_400.0

Ts = TypeVarTuple("Ts")


class Owner(Protocol):
    """The live run a loop belongs to."""

    evicting: bool
    root: str | None
    redactor: Redactor

    def time(self) -> float: ...
    def timer_created(self, handle: asyncio.TimerHandle, seconds: float) -> None: ...
    def timer_cancelled(self, handle: asyncio.TimerHandle) -> None: ...
    def looked_after(self, item: object) -> None:
        """A task was made of an awaitable: from now on it is the task's business whether it is awaited."""


# What a slice finds, and leaves: the running loop, whether garbage is collected, the hooks of async generators.
_Hooks = tuple[Any, Any]
_Before = tuple["asyncio.AbstractEventLoop | None", bool, _Hooks]

# Names of calls that are remembered without their secrets.
_NAMES = 256


class BodyLoop(asyncio.AbstractEventLoop):
    def __init__(self, owner: Owner, salt: int) -> None:
        self.owner = owner
        self.tasks: dict[int, BodyTask] = {}
        self.escaped: BaseException | None = None
        self.diagnostics: list[str] = []
        self.root = Scope(clean=self._without_secrets)
        self.generators: list[AsyncGenerator[Any, Any]] = []
        self._ready: deque[asyncio.Handle] = deque()
        self._salt = salt
        self._created = 0
        self._clean: tuple[object, dict[str, str]] = (None, {})

    def _without_secrets(self, text: str) -> str:
        # The same few names come again and again; one that is a key by itself comes once and must not be kept.
        redactor, known = self.owner.redactor, self._clean[1]
        if redactor is not self._clean[0] or len(known) > _NAMES:
            known = {}
            self._clean = (redactor, known)
        if (clean := known.get(text)) is None:
            clean = known[text] = redactor.text(text)
        return clean

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
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_after(delay, callback, args, context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_after(when - self.time(), callback, args, context)

    def _call_after(
        self, delay: float, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> asyncio.TimerHandle:
        if self.owner.evicting:
            return asyncio.TimerHandle(0.0, callback, args, self, context)
        if not math.isfinite(delay) or delay > MAX_DELAY:
            raise AuthoringError(f"a timer of {delay:g} seconds is never due", hint="wait for a hundred years at most")
        # Microseconds: `(t + d) - t` is not exactly d, and the delay stands in the fingerprint.
        delay = round(float(delay), 6)
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        if delay <= 0:
            self._ready.append(handle)
        else:
            handle._scheduled = True  # type: ignore[attr-defined]  # asyncio then tells us when it is cancelled
            self.owner.timer_created(handle, delay)
        return handle

    def fire(self, handle: asyncio.TimerHandle) -> None:
        """Queue a timer's callback; its fired receipt was delivered."""
        handle._scheduled = False  # type: ignore[attr-defined]
        self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self.owner.timer_cancelled(handle)

    def create_task(
        self, coro: Any, *, name: Any = None, context: contextvars.Context | None = None, **options: Any
    ) -> Any:
        if self.owner.evicting:
            return self._inert(coro)
        if options.get("eager_start"):
            raise NotInAWorkflow("eager tasks have no place in the order of a workflow; leave eager_start out")
        callers = tuple(_asyncio_callers(sys._getframe(1)))
        if not asyncio.iscoroutine(coro):
            coro = _await(coro)
        _refuse_as_completed(coro, callers)
        parent = self.scope
        wraps = _is_wrapper(coro)
        if wraps:
            self.owner.looked_after(_wrapped_by(coro))
        # `wait_for` makes a task on 3.11 and none on 3.12: the keys inside must not depend on that.
        shares = wraps or "wait_for" in callers or not hasattr(coro, "cr_code")
        return self._spawn(coro, parent, context, shares=shares, name=name)

    def spawn(self, coro: Coroutine[Any, Any, Any], scope: Scope) -> asyncio.Future[Any]:
        """A task in a scope that its maker has named (`parallel/<index>`); nobody makes one while a body is evicted."""
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
        """The scope of the running task."""
        return self.scope_of(self.current())

    def scope_of(self, task: asyncio.Task[Any] | None) -> Scope:
        """Callbacks without a task stand at the root."""
        if task is None:
            return self.root
        if not isinstance(task, BodyTask):
            raise NotInAWorkflow(
                "a task made with asyncio.Task() has no place in the order of a workflow",
                hint="use asyncio.create_task() or a TaskGroup",
            )
        return task.scopes[-1] if task.scopes else self.root

    def current(self) -> asyncio.Task[Any] | None:
        return asyncio.current_task(self)

    def drain(self) -> None:
        """Run until nothing is ready: one slice.

        SystemExit and KeyboardInterrupt escape asyncio's handles; they are kept and the drain goes on,
        so that the order of everything else does not depend on them.
        """
        # Not by `running`, which takes longer than all the rest of a slice that lets one step go on.
        before = self._begin()
        try:
            self._run_handles()
        finally:
            self._finish(*before)
        if self.generators:
            self.generators[:] = [each for each in self.generators if _is_open(each)]

    @contextmanager
    def running(self) -> Iterator[None]:
        """This loop is the running one, and nothing else of the process gets a word in."""
        before = self._begin()
        try:
            yield
        finally:
            self._finish(*before)

    def _begin(self) -> _Before:
        hooks = sys.get_asyncgen_hooks()
        before = (asyncio._get_running_loop(), gc.isenabled(), hooks)
        # Nobody's `finally`, `__del__` or weakref callback may run in a slice by chance of the collector.
        gc.disable()
        asyncio._set_running_loop(self)
        # An abandoned generator is held and closed in order: the stock hook closes it whenever it is collected,
        # possibly inside another run's slice, where its calls would be recorded.
        if hooks != _KEEPING:
            _set_hooks(_KEEPING, instead_of=hooks)
        return before

    def _finish(self, previous: asyncio.AbstractEventLoop | None, collecting: bool, hooks: _Hooks) -> None:
        if (present := sys.get_asyncgen_hooks()) != hooks:
            _set_hooks(hooks, instead_of=present)
        asyncio._set_running_loop(previous)
        if collecting:
            gc.enable()

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
            f"the body ran {MAX_HANDLES:,} callbacks without waiting for anything{self._busy_place(handle)}",
            hint="a loop around `await asyncio.sleep(0)` never ends; await a call instead",
        )

    def _busy_place(self, handle: asyncio.Handle) -> str:
        task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
        site = waiting_site(task) if isinstance(task, BodyTask) else None
        return f", last at {site.within(self.owner.root)}" if site else ""

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
        explicit = task.get_name() if task.get_name() != UNNAMED else None
        if shares:
            task.scopes.append(parent)
        else:
            coro = task.get_coro()
            task.scopes.append(parent.open(explicit or str(getattr(coro, "__name__", "task"))))
        if explicit is None:
            task.set_name("/".join(task.scopes[-1].path) or "body")

    def _inert(self, coro: Any) -> InertTask:
        if hasattr(coro, "close"):
            coro.close()
        return InertTask(loop=self)


@contextmanager
def keeping_generators() -> Iterator[None]:
    """Around many slices of one body, which then have no hooks to set."""
    before = sys.get_asyncgen_hooks()
    _set_hooks(_KEEPING, instead_of=before)
    try:
        yield
    finally:
        _set_hooks(before, instead_of=sys.get_asyncgen_hooks())


def _set_hooks(hooks: _Hooks, *, instead_of: _Hooks) -> None:
    # Each hook that is set is an event for a runner's audit hook to look at, which takes longer than to compare.
    if hooks[0] is not instead_of[0]:
        sys.set_asyncgen_hooks(firstiter=hooks[0])
    if hooks[1] is not instead_of[1]:
        sys.set_asyncgen_hooks(finalizer=hooks[1])


def _keep(agen: AsyncGenerator[Any, Any]) -> None:
    """What a slice does with an async generator that begins; between slices there is nobody to keep it."""
    loop = asyncio._get_running_loop()
    if isinstance(loop, BodyLoop):
        loop.generators.append(agen)


_KEEPING: _Hooks = (_keep, None)


def _is_open(agen: Any) -> bool:
    return agen.ag_frame is not None


async def _await(awaitable: Any) -> Any:
    return await awaitable


_ASYNCIO_TASKS = asyncio.ensure_future.__code__.co_filename


def _is_wrapper(coro: Any) -> bool:
    """Whether a coroutine only awaits what the author wrote: ours, or the one of `ensure_future`."""
    code = _code_of(coro)
    if code is None or code is _await.__code__:
        return code is not None
    # A function of its module on 3.11, made anew in each call from 3.12 on.
    return code.co_name == "_wrap_awaitable" and code.co_filename == _ASYNCIO_TASKS


def _wrapped_by(coro: Any) -> object:
    frame: FrameType = getattr(coro, "cr_frame", None) or coro.gi_frame
    return frame.f_locals.get("awaitable")


def _code_of(coro: Any) -> CodeType | None:
    # On 3.11 the wrapper that asyncio puts around a call is a generator.
    return getattr(coro, "cr_code", None) or getattr(coro, "gi_code", None)


def _asyncio_callers(frame: FrameType | None) -> Iterator[str]:
    """Names of the asyncio functions between a call of ours and the author's code."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "asyncio":
        yield frame.f_code.co_name
        if frame.f_code.co_qualname.startswith("_AsCompletedIterator"):
            yield "as_completed"  # pragma: no cover  # a class on 3.13 and newer, a function before
        frame = frame.f_back


def _refuse_as_completed(coro: Any, callers: tuple[str, ...]) -> None:
    # It puts what it is given into a set before it starts it, so bare coroutines start in address order.
    if "as_completed" in callers and not _is_wrapper(coro):
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
