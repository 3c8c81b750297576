"""A call: durable work as a value. One mechanism for every kind: requested, then answered, failed or cancelled.

A new kind of call is one function that makes a `Call` and one executor; nothing here asks for the kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ..errors import CallFailed, NotInAWorkflow, UnstorableValue
from .encoding import Plain
from .identity import identify, request_fingerprint
from .loop import BodyLoop
from .sites import caller_site

if TYPE_CHECKING:
    from .live import LiveRun
    from .receipts import Receipt

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# What a receipt says of a call that ran over its time; the second is what a step raised.
TIMEOUT = "Timeout"
_OVER_TIME = frozenset({TIMEOUT, "TimeoutError"})


def current_run(what: str) -> LiveRun:
    """The run whose body is being stepped; raises NotInAWorkflow elsewhere."""
    loop = asyncio._get_running_loop()
    if not isinstance(loop, BodyLoop):
        raise NotInAWorkflow(
            f"{what} was called outside a workflow body",
            hint="call it inside an `@workflow async def`, and start that with `hermes-workflows run`",
        )
    return loop.owner  # type: ignore[return-value]  # the owner of a BodyLoop is always its LiveRun


class CallSpec(NamedTuple, Generic[T_co]):
    """What a primitive says about a call before it has a key.

    `request` stands in the receipt and in the fingerprint; `refused` says why it cannot. `options` stand in neither:
    timeouts, retries, mocks, and whatever an executor needs in clear. `decode` turns a completed receipt into the
    body's value; `failure` is raised for a failed one, `timed_out` for one that ran over its time. `expires` is for
    calls that are answered from outside: seconds after which a runner ends them. `secrets` are names of variables, and
    `hidden` values, that are secret from this call on.
    """

    kind: str
    name: str
    request: Mapping[str, Plain]
    decode: Callable[[Receipt], T_co]
    failure: type[CallFailed] = CallFailed
    timed_out: type[CallFailed] | None = None
    expires: float | None = None
    options: Any = None
    key: str | None = None
    key_by: object = None
    refused: UnstorableValue | None = None
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


class Call(Generic[T_co]):
    """An awaitable value. Its key is claimed where it is written; its request goes out at the first await.

    Awaiting it again gives the same outcome.
    """

    __slots__ = (
        "_ready",
        "_run",
        "_waiters",
        "cancelled",
        "fingerprint",
        "key",
        "kind",
        "number",
        "outcome",
        "refused",
        "request",
        "requested_after",
        "site",
        "spec",
        "task",
    )

    def __init__(self, spec: CallSpec[T_co]) -> None:
        run = current_run(f"{spec.kind}()")
        self.spec = spec
        self.kind = spec.kind
        self.site = caller_site()
        self._run = run
        self.number = run.loop.next_number()
        self.task = run.loop.current()
        self.outcome: Receipt | None = None
        self.cancelled = False
        self.requested_after: int | None = None
        self._waiters: list[asyncio.Future[Any]] = []
        self._ready: tuple[T_co] | None = None
        self.refused = spec.refused
        # First of all: a key is made of what the author says, too.
        if spec.secrets or spec.hidden:
            run.hide(spec.secrets, spec.hidden)
        self.key = run.claim(spec, self.site, self.task)
        self.request: Mapping[str, Plain] = run.redactor.plain(dict(spec.request))  # type: ignore[assignment]
        self.fingerprint = self._fingerprint()
        run.written(self)

    def _fingerprint(self) -> str:
        if self.refused is None:
            try:
                return identify(self.kind, self.request, self._run.limits)
            except UnstorableValue as error:
                self.refused = error
        return ""

    def __hash__(self) -> int:
        # Calls in sets must iterate in one order in every process (tasks.py).
        return self.number

    def __repr__(self) -> str:
        return f"<{self.kind} call {self.key}>"

    def __await__(self) -> Generator[Any, None, T_co]:
        run = self._run
        if run.evicting:
            yield from run.suspend_for_ever()
        run.looked_after(self)
        if self.cancelled:
            raise asyncio.CancelledError(f"{self.kind} call {self.key} was cancelled before")
        if self.refused is not None:
            message = f"{self.kind} call {self.key}: its request cannot be stored: {self.refused.message}"
            raise self.spec.failure(message, key=self.key)
        if self.requested_after is None and not run.request(self):
            yield from run.suspend_for_ever()
        if self.outcome is None:
            yield from self._wait()
        return self._value()

    def _wait(self) -> Generator[Any, None, None]:
        waiter = self._run.loop.create_future()
        self._waiters.append(waiter)
        try:
            yield from waiter
        finally:
            self._waiters.remove(waiter)
            # The last awaiter was cancelled: so is the call, in this very decision. A result that was delivered
            # in the same slice is spent, which replay repeats.
            if self.outcome is None and not self._waiters and not self._run.evicting:
                self._run.withdraw(self)

    def drop(self) -> None:
        """It will never be awaited, and nobody is to blame."""
        self._run.looked_after(self)

    def resolve(self, receipt: Receipt) -> None:
        """Give a delivered result to everybody who waits for it.

        Raises whatever `decode` raises for an output that the present code cannot read; a CallFailed is an outcome
        like any other, and waits for the await.
        """
        if receipt.error is None:
            try:
                self._ready = (self.spec.decode(receipt),)
            except CallFailed:
                self._ready = None
        self.outcome = receipt
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _value(self) -> T_co:
        assert self.outcome is not None
        # An expired request with a default answer is an answer; what failed always says why.
        if self.outcome.error is not None:
            raise self._failure(self.outcome)
        if self._ready is not None:
            value, self._ready = self._ready[0], None
            return value
        # Decoded anew for each further awaiter, so that none sees what another one did to its value.
        return self.spec.decode(self.outcome)

    def _failure(self, receipt: Receipt) -> CallFailed:
        error = receipt.error
        message = error.message if error else f"ended as {receipt.status}"
        details = error.model_dump(exclude_none=True) if error else {}
        late = receipt.status == "expired" or (error is not None and error.type in _OVER_TIME)
        failure = (self.spec.timed_out if late else None) or self.spec.failure
        # A new exception for each awaiter: a shared one would collect all their tracebacks.
        return failure(f"{self.kind} call {self.key}: {message}", key=self.key, details=details)


class TimerCall:
    """A timer of the loop as a call: same table of outstanding work, resolved by queueing its callback."""

    __slots__ = ("cancelled", "fingerprint", "handle", "key", "kind", "number", "request", "requested_after", "site")

    def __init__(self, run: LiveRun, handle: asyncio.TimerHandle, seconds: float) -> None:
        self.kind = "timer"
        self.handle = handle
        self.site = caller_site()
        self.number = run.loop.next_number()
        self.key = run.loop.scope.key("timer")
        self.request: Mapping[str, Plain] = {"seconds": seconds, "until": None}
        self.fingerprint = request_fingerprint("timer", self.request)
        self.cancelled = False
        self.requested_after: int | None = None

    def resolve(self, receipt: Receipt) -> None:
        self.handle._loop.fire(self.handle)  # type: ignore[attr-defined]


AnyCall = Call[Any] | TimerCall
