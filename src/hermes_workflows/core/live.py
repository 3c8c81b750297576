"""One body, alive between its receipts: the heart of the project.

A `LiveRun` is given receipts, one at a time, and answers each with a `Decision`: the calls to make, the calls to
withdraw, the end. It reads no clock, no disk and no network. A body rebuilt from receipts decides the same as one
that stayed alive; `tests/core/test_rebuild.py` holds it to that with random programs.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import traceback
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from ..errors import AuthoringError, CallNeverAwaited, HermesError, KeyClash, NotInAWorkflow
from . import layout
from .calls import Call, Site, TimerCall
from .divergence import AnyCall, Recorded, not_requested
from .encoding import Limits, Plain
from .eviction import evict_tasks
from .history import History
from .layout import Role
from .loop import BodyLoop, BodyTask
from .receipts import Failure, Receipt, RunStarted, time_of
from .redaction import Redactor

# SEMANTICS §5: what a cancelled body may still do.
CLEANUP_CALLS = 20
_CLEANUP_KINDS = frozenset({"bash", "step", "timer"})


class Definition(Protocol):
    """What the core needs to know of a workflow; `authoring.workflow.Workflow` is one."""

    @property
    def fn(self) -> Callable[..., Coroutine[Any, Any, Any]]: ...
    def arguments(self, value: Plain) -> tuple[Any, ...]:
        """The recorded input as the body's arguments."""

    def encode_result(self, value: Any) -> Plain:
        """The body's return value; raises UnstorableValue or InvalidInput when no receipt can hold it."""


@dataclass(frozen=True)
class End:
    """How a run ends. `traceback` is for people and stands in `execution`."""

    status: str
    output: Plain = None
    error: Failure | None = None
    traceback: str | None = None


@dataclass(frozen=True)
class Decision:
    """What the body wants after the receipt `after`; `stuck` says why no receipt can ever wake it."""

    after: int
    requested: tuple[AnyCall, ...] = ()
    cancelled: tuple[AnyCall, ...] = ()
    end: End | None = None
    stuck: str | None = None
    logs: tuple[str, ...] = ()


@dataclass
class _Slice:
    """What happened since the last receipt."""

    requested: dict[str, AnyCall] = field(default_factory=dict)
    cancelled: list[AnyCall] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


class LiveRun:
    def __init__(
        self,
        run_id: str,
        definition: Definition,
        started: RunStarted,
        *,
        redactor: Redactor | None = None,
        limits: Limits | None = None,
        root: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.definition = definition
        self.started = started
        self.redactor = redactor or Redactor()
        self.limits = limits or Limits()
        self.root = root
        self.after = 0
        self.seq = started.seq
        self.evicting = False
        self.outstanding: dict[str, AnyCall] = {}
        self.withdrawn: dict[str, AnyCall] = {}
        self.noted: dict[str, Receipt] = {}
        seed = started.execution.seed or run_id
        self.random = random.Random(seed)
        # Multiples of a million keep the numbers of two runs apart in asyncio's registry of all tasks.
        salt = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:5], "big") << 20
        self.loop = BodyLoop(self, salt)
        self._main: BodyTask | None = None
        self._slice = _Slice()
        self._claimed: dict[str, Site] = {}
        self._unawaited: dict[int, Call[Any]] = {}
        self._timers: dict[int, TimerCall] = {}
        self._fatal: HermesError | None = None
        self._ending = False
        self._cancelling = False
        self._cleanup_calls = 0
        self._cut_off: str | None = None
        self._end: End | None = None
        self._origin = started.execution.started_at
        self._now = self._origin
        self._last_key: str | None = None

    # -- what the runner does with it ------------------------------------------------------------------------

    def start(self) -> Decision:
        """The first decision. Raises InvalidInput when the recorded input no longer fits the input type."""
        arguments = self.definition.arguments(self.started.request.input)
        coro = self.definition.fn(*arguments)
        self._main = self.loop.spawn(coro, self.loop.root)  # type: ignore[assignment]
        return self._decide()

    def take(self, receipt: Receipt) -> Decision | None:
        """Deliver a result, or remember a note (which the body never sees; then there is no decision).

        Raises Divergence when the receipt does not answer what this body has outstanding.
        """
        self.seq = max(self.seq, receipt.seq)
        if receipt.role is not Role.RESULT:
            self.noted[receipt.path] = receipt
            return None
        self._slice = _Slice()
        self.after = receipt.seq
        if (moment := time_of(receipt)) is not None and (self._now is None or moment > self._now):
            self._now = moment
        self._deliver(receipt)
        self._last_key = receipt.key or self._last_key
        return self._decide()

    def expect(self, receipts: tuple[Receipt, ...] | list[Receipt]) -> None:
        """Check that the last decision requested what these receipts, recorded for it, show. Raises Divergence."""
        for receipt in receipts:
            call = self._slice.requested.get(receipt.key)
            if call is None or call.kind != receipt.kind or call.fingerprint != receipt.fingerprint:
                raise not_requested(receipt, self._slice.requested, self.outstanding.get(receipt.key), self._recorded())

    def cut_off(self, why: str) -> Decision:
        """End a cancelled run whose cleanup takes too long."""
        self._cut_off = why
        self._slice = _Slice()
        return self._decide()

    def state(self) -> tuple[Any, ...]:
        """What must be equal between a body that lived on and one that was rebuilt."""
        outstanding = tuple(sorted((key, call.fingerprint) for key, call in self.outstanding.items()))
        done = self._main is not None and self._main.done()
        return outstanding, tuple(sorted(self.withdrawn)), self.after, done

    def evict(self) -> list[str]:
        """Take the body down without a decision; says which coroutines refused to end."""
        self.evicting = True
        refused = evict_tasks(self.loop)
        self.outstanding.clear()
        return refused

    # -- what calls and the loop tell it ---------------------------------------------------------------------

    def time(self) -> float:
        if self._now is None or self._origin is None:
            return 0.0
        return (self._now - self._origin).total_seconds()

    @property
    def cancelling(self) -> bool:
        """Whether a cancel request was delivered and the body is cleaning up."""
        return self._cancelling and self._end is None

    @property
    def now(self) -> datetime | None:
        return self._now

    def log(self, message: str) -> None:
        self._slice.logs.append(message)

    def claimed(self, call: Call[Any]) -> None:
        self._claim(call.key, call.site)
        self._unawaited[call.number] = call

    def excuse(self, call: Call[Any]) -> None:
        """A composition gives up a call it never started; that is no mistake of the author."""
        self._unawaited.pop(call.number, None)

    def awaited(self, call: Call[Any]) -> None:
        self._unawaited.pop(call.number, None)
        if call.cancelled:
            raise asyncio.CancelledError(f"{call.kind} call {call.key} was cancelled before")
        if call.requested_after is None and call.outcome is None and call.refused is None:
            self._request(call)

    def withdraw(self, call: AnyCall) -> None:
        """The body gave up a call: it is cancelled in this decision."""
        call.cancelled = True
        self.outstanding.pop(call.key, None)
        if self._slice.requested.pop(call.key, None) is None:
            self.withdrawn[call.key] = call
            self._slice.cancelled.append(call)

    def timer_created(self, handle: asyncio.TimerHandle, seconds: float) -> None:
        call = TimerCall(self, handle, seconds)
        self._claim(call.key, call.site)
        self._timers[id(handle)] = call
        self._request(call)

    def timer_cancelled(self, handle: asyncio.TimerHandle) -> None:
        call = self._timers.pop(id(handle), None)
        if call is not None and call.key in self.outstanding:
            self.withdraw(call)

    def suspend_for_ever(self) -> Generator[Any, None, None]:
        # Raising instead would turn `while True: try: await … except BaseException: pass` into a hang.
        while True:
            yield None

    # -- deciding --------------------------------------------------------------------------------------------

    def _claim(self, key: str, site: Site) -> None:
        other = self._claimed.get(key)
        if other is not None:
            self._fatal = KeyClash(
                f"two calls claim the key {key!r}: {other} and {site}",
                hint="give one of them another key=, name= or key_by=",
            )
            raise self._fatal
        self._claimed[key] = site

    def _request(self, call: AnyCall) -> None:
        if self._cancelling:
            self._allow_cleanup(call)
        call.requested_after = self.after
        self.outstanding[call.key] = call
        self._slice.requested[call.key] = call

    def _allow_cleanup(self, call: AnyCall) -> None:
        if call.kind not in _CLEANUP_KINDS:
            raise NotInAWorkflow(
                f"{call.kind} call {call.key}: a cancelled run may clean up with bash and @step only ({call.site})"
            )
        self._cleanup_calls += 1
        if self._cleanup_calls > CLEANUP_CALLS:
            self._cut_off = f"cleanup was cut off after {CLEANUP_CALLS} calls"
            raise asyncio.CancelledError(self._cut_off)

    def _deliver(self, receipt: Receipt) -> None:
        place = layout.place(receipt.path)
        if place is not None and place.family == "cancel":
            self._cancel()
            return
        if place is not None and place.family == "signal":
            return
        if (spent := self.withdrawn.get(receipt.key)) is not None and spent.fingerprint == receipt.fingerprint:
            del self.withdrawn[receipt.key]
            return
        call = self.outstanding.get(receipt.key)
        if call is None or not self._answers(receipt, call):
            raise not_requested(receipt, self.outstanding, spent or call, self._recorded())
        del self.outstanding[receipt.key]
        if isinstance(call, TimerCall):
            self._timers.pop(id(call.handle), None)
        call.resolve(receipt)

    def _answers(self, receipt: Receipt, call: AnyCall) -> bool:
        requested = receipt.execution.requested_after
        return (
            call.kind == receipt.kind
            and call.fingerprint == receipt.fingerprint
            and requested in (None, call.requested_after)
            and receipt.status not in ("cancelled", "withdrawn")
        )

    def _recorded(self) -> Recorded:
        return Recorded(self.run_id, self.started.execution.python, self._last_key)

    def _cancel(self) -> None:
        if self._cancelling or self._main is None or self._main.done():
            return
        self._cancelling = True
        self._main.cancel("the run was cancelled")

    def _decide(self) -> Decision:
        end, stuck = self._end, None
        try:
            if end is None:
                self.loop.drain()
                end = self._wind_down()
        except AuthoringError as error:
            self._fatal = self._fatal or error
            end = self._failed(self._fatal)
        except (RecursionError, MemoryError) as error:
            stuck = f"the body ended in {type(error).__name__}, which depends on the machine"
        if end is not None:
            self._close_all(end)
        elif stuck is None and not self.outstanding:
            stuck = f"nothing can wake the body, which waits at {', '.join(self._waiting_lines())}"
        made = self._slice
        return Decision(
            self.after, tuple(made.requested.values()), tuple(made.cancelled), end, stuck, tuple(made.logs)
        )

    def _close_all(self, end: End) -> None:
        """What is still open when the run ends is withdrawn; its receipts may still come and change nothing."""
        self._end = end
        for call in list(self.outstanding.values()):
            self.withdraw(call)

    def _wind_down(self) -> End | None:
        """The end of the body, as `asyncio.run` does it: leftover tasks, then async generators, then the end."""
        assert self._main is not None
        if self._fatal is not None:
            return self._failed(self._fatal)
        if self.loop.escaped is not None:
            return self._failed(self.loop.escaped)
        if self._cut_off is not None:
            return self._cancelled_end()
        if not self._main.done():
            return None
        if not self._ending:
            self._ending = True
            self._check_unawaited()
            for task in self.loop.open_tasks():
                task.cancel()
            self.loop.drain()
        for agen in self._take_generators():
            self.loop.spawn(_close(agen), self.loop.root)
            self.loop.drain()
        return None if self.loop.open_tasks() else self._end_of_main()

    def _take_generators(self) -> Iterator[Any]:
        if not self.loop.open_tasks():
            while self.loop.generators:
                yield self.loop.generators.pop(0)

    def _check_unawaited(self) -> None:
        assert self._main is not None
        if self._main.cancelled() or self._main.exception() is not None:
            return
        # A call of a leftover task may still be on its way to its await; that task is about to be cancelled.
        forgotten = [call for call in self._unawaited.values() if call.task is None or call.task.done()]
        if forgotten:
            call = forgotten[0]
            raise CallNeverAwaited(
                f"{call.kind} call {call.key} was written at {call.site} and never awaited",
                hint="await it, hand it to parallel(), or take it out",
            )

    def _end_of_main(self) -> End:
        assert self._main is not None
        if self._cancelling:
            return self._cancelled_end()
        if self._main.cancelled():
            return self._failed(asyncio.CancelledError("the body cancelled itself"))
        error = self._main.exception()
        if error is not None:
            if isinstance(error, RecursionError | MemoryError):
                raise error
            return self._failed(error)
        return self._completed(self._main.result())

    def _completed(self, value: Any) -> End:
        try:
            return End("completed", self.definition.encode_result(value))
        except HermesError as error:
            return self._failed(error)

    def _cancelled_end(self) -> End:
        error = Failure(type="CleanupCutOff", message=self._cut_off) if self._cut_off else None
        return End("cancelled", error=error)

    def _failed(self, error: BaseException) -> End:
        name = type(error).__name__
        message = str(error) or name
        if isinstance(error, SystemExit | KeyboardInterrupt):
            message = f"the body raised {name}({', '.join(map(repr, error.args))})"
        lines = "".join(traceback.format_exception(error))
        details = {"key": key} if (key := getattr(error, "key", "")) else None
        failure = Failure(type=name, message=self.redactor.text(message), details=details)
        return End("failed", error=failure, traceback=self.redactor.text(lines))

    def _waiting_lines(self) -> list[str]:
        frames = [frame for task in self.loop.open_tasks() for frame in task.get_stack(limit=1)]
        return [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames] or ["an unknown place"]


async def _close(agen: Any) -> None:
    await agen.aclose()


def rebuild(live: LiveRun, history: History) -> Decision:
    """Bring a new body to the end of its recorded history; returns the last decision. Raises Divergence."""
    for note in history.notes:
        live.take(note)
    decision = live.start()
    live.expect(list(history.expected.get(0, ())))
    for receipt in history.deliveries:
        made = live.take(receipt)
        assert made is not None
        decision = made
        live.expect(list(history.expected.get(receipt.seq, ())))
    return decision


def advance(run_id: str, definition: Definition, history: History) -> Decision:
    """The pure function of DESIGN §1: what the present code decides after this history. Raises Divergence."""
    live = LiveRun(run_id, definition, history.started)
    try:
        return rebuild(live, history)
    finally:
        live.evict()
