"""One body, alive between its receipts: the heart of the project.

A `LiveRun` is given receipts, one at a time, and answers each with a `Decision`: the calls to make, the calls to
withdraw, the end. It reads no clock, no disk and no network. A body rebuilt from receipts decides the same as one
that stayed alive; `tests/core/test_rebuild.py` holds it to that with random programs.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any

from ..errors import AuthoringError, CallNeverAwaited, HermesError, UnstorableValue
from . import layout
from .acceptance import Accepted
from .body import Body
from .calls import AnyCall, Call, CallSpec, TimerCall
from .cleanup import Cleanup
from .decision import Decision, Definition
from .divergence import GIVEN_UP, Present, answers, not_requested, unreadable, was_given_up
from .encoding import Limits
from .ending import End, Endings, depends_on_machine
from .eviction import evict_tasks
from .history import History
from .layout import Role
from .loop import BodyLoop, keeping_generators
from .open_calls import OpenCalls, Written
from .receipts import Receipt, RunStarted
from .redaction import Counts, Redactor
from .run_time import RunTime
from .signals import Signals
from .sites import Site

__all__ = ["Decision", "Definition", "End", "LiveRun", "advance", "rebuild"]


class LiveRun:
    """`secret` gives the value of a variable that the body has named a secret, or None when there is none.

    Requests are redacted by what `redactor` knows and what this body itself has named so far. What other bodies name
    must not change them: a body that is rebuilt in another process has to ask for the same.
    """

    def __init__(
        self,
        run_id: str,
        definition: Definition,
        started: RunStarted,
        *,
        redactor: Redactor | None = None,
        limits: Limits | None = None,
        root: str | None = None,
        secret: Callable[[str], str | None] | None = None,
    ) -> None:
        self.run_id = run_id
        self.definition = definition
        self.started = started
        self.redactor = redactor or Redactor()
        self.limits = limits or Limits()
        self.root = root
        self.hidden: dict[str, str] = {}
        self._secret = secret
        self._named: set[str] = set()
        self.after = 0
        self.seq = started.seq
        self.evicting = False
        self.noted: dict[str, Receipt] = {}
        self.accepted = Accepted()
        seed = started.execution.seed or run_id
        self.random = random.Random(seed)
        # Multiples of a million keep the numbers of two runs apart in asyncio's registry of all tasks.
        salt = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:5], "big") << 20
        self.loop = BodyLoop(self, salt)  # type: ignore[abstract]  # the rest is generated, as refusals
        self._body = Body(self.loop)
        self._calls = OpenCalls()
        # What the body waits for, and what it has given up and may still get a receipt, by key.
        self.outstanding = self._calls.outstanding
        self.withdrawn = self._calls.withdrawn
        self._signals = Signals()
        self._cleanup = Cleanup()
        self._endings = Endings(self.redactor, root)
        self._timers: dict[int, TimerCall] = {}
        self._logs: list[str] = []
        self._fatal: HermesError | None = None
        self._end: End | None = None
        self._time = RunTime(started)
        self._last_key: str | None = None

    # -- what the runner does with it ------------------------------------------------------------------------

    @property
    def cancelling(self) -> bool:
        """Whether a cancel request was delivered and the body is cleaning up."""
        return self._cleanup.active and self._end is None

    @property
    def error(self) -> BaseException | None:
        """What ended the run, when that was an exception."""
        return self._fatal or (self._body.error if self._end is not None else None)

    def start(self) -> Decision:
        """The first decision. Raises InvalidInput when the recorded input no longer fits the input type."""
        arguments = self.definition.arguments(self.started.request.input)
        self._body.start(self.definition.fn(*arguments))
        return self._decide()

    def take(self, receipt: Receipt) -> Decision | None:
        """Deliver a result, or remember a note (which the body never sees; then there is no decision).

        Raises Divergence when the receipt does not answer what this body has outstanding.
        """
        if receipt.role is Role.RESULT:
            return self.deliver(receipt)
        self.seq = max(self.seq, receipt.seq)
        self.noted[receipt.path] = receipt
        self.accepted.learn(receipt)
        return None

    def deliver(self, receipt: Receipt) -> Decision:
        """The decision after a result. Raises Divergence when it answers nothing that this body has outstanding."""
        seq = receipt.seq
        self.seq = max(self.seq, seq)
        self._next_decision(seq)
        self._time.pass_to(receipt)
        self._deliver(receipt)
        decision = self._decide()
        self._last_key = receipt.key or self._last_key
        return decision

    def expect(self, receipts: Sequence[Receipt]) -> None:
        """Check that the last decision requested what these receipts, recorded for it, show. Raises Divergence."""
        for receipt in receipts:
            call = self._calls.requested.get(receipt.key)
            if call is None or call.kind != receipt.kind or not self.accepted.same(receipt, call):
                raise not_requested(receipt, call or self.outstanding.get(receipt.key), self._present())

    def cut_off(self, why: str) -> Decision:
        """End a cancelled run whose cleanup takes too long."""
        self._cleanup.cut_off = why
        self._next_decision(self.after)
        return self._decide()

    def state(self) -> tuple[Any, ...]:
        """What must be equal between a body that lived on and one that was rebuilt."""
        outstanding = tuple(sorted((key, call.fingerprint) for key, call in self.outstanding.items()))
        return outstanding, tuple(sorted(self.withdrawn)), self.after, self._body.done

    def evict(self) -> list[str]:
        """Take the body down without a decision; says which coroutines refused to end."""
        self.evicting = True
        refused = evict_tasks(self.loop)
        self.outstanding.clear()
        return refused

    # -- what calls and the loop tell it ---------------------------------------------------------------------

    def time(self) -> float:
        return self._time.elapsed()

    @property
    def now(self) -> datetime | None:
        return self._time.now

    def log(self, message: str) -> None:
        self._logs.append(message)

    def claim(self, spec: CallSpec[Any], site: Site, task: asyncio.Task[Any] | None) -> str:
        """The key of a call that `task` is writing. Raises KeyClash, InvalidInput."""
        if self.evicting:
            return spec.key or spec.name
        key = self.loop.scope_of(task).key(spec.name, key=spec.key, key_by=spec.key_by)
        self._claim(key, site)
        return key

    def hide(self, names: Sequence[str], values: Sequence[str] = ()) -> None:
        """Variables of these names, and these values, are secrets from now on."""
        found: dict[str, str] = {}
        for value in values:
            if value not in self.hidden.values():
                label = f"redact-{len(self.hidden) + 1}"
                self.hidden[label] = found[label] = value
        for name in names:
            if name not in self._named and self._secret is not None and (known := self._secret(name)):
                found[name] = known
            self._named.add(name)
        if found:
            self.redactor = self.redactor.extended(found)
            self._endings = Endings(self.redactor, self.root)

    def written(self, item: Written) -> None:
        self._calls.written(item)

    def looked_after(self, item: object) -> None:
        """A call (or anything else) is awaited, was handed to a task or a composition, or given up by one."""
        self._calls.looked_after(item)

    def request(self, call: AnyCall) -> bool:
        """Let a call go out; False when the run ends here and the call must wait for ever."""
        if not self._cleanup.admits(call, self.root):
            return False
        if isinstance(call, Call) and call.kind == "signal" and (early := self._signals.waits(call)) is not None:
            call.requested_after = self.after
            call.resolve(early)
        else:
            self._calls.request(call, self.after)
        return True

    def withdraw(self, call: AnyCall) -> None:
        """The body gave up a call: it is cancelled in this decision."""
        self._calls.withdraw(call)

    def timer_created(self, handle: asyncio.TimerHandle, seconds: float) -> None:
        call = TimerCall(self, handle, seconds)
        self._claim(call.key, call.site)
        if self.request(call):
            self._timers[id(handle)] = call

    def timer_cancelled(self, handle: asyncio.TimerHandle) -> None:
        call = self._timers.pop(id(handle), None)
        if call is not None and call.key in self.outstanding:
            self.withdraw(call)

    def suspend_for_ever(self) -> Generator[Any, None, None]:
        # Raising instead would turn `while True: try: await … except BaseException: pass` into a hang,
        # and so would a bare yield, after which a task is stepped again at once.
        yield from self.loop.create_future()

    # -- deciding --------------------------------------------------------------------------------------------

    def _next_decision(self, after: int) -> None:
        self.after = after
        self._calls.next_decision()
        self._logs = []

    def _claim(self, key: str, site: Site) -> None:
        if self._fatal is not None:
            # The run has failed already. A body that swallowed that must not go round in circles.
            raise asyncio.CancelledError(self._fatal.message)
        try:
            self._calls.claim(key, site, self.root)
        except AuthoringError as error:
            self._fatal = error
            raise

    def _deliver(self, receipt: Receipt) -> None:
        # Of these two kinds some answer no call; to look at every step's path takes as long as to resolve its call.
        place = layout.place(receipt.path) if receipt.kind in ("control", "signal") else None
        if place is not None and place.family == "cancel":
            self._cancel(at_once=(receipt.request or {}).get("now") is True)
            return
        if place is not None and place.family == "signal":
            if (waiting := self._signals.arrived(receipt)) is not None:
                del self.outstanding[waiting.key]
                self._resolve(waiting, receipt)
            return
        if was_given_up(receipt, self.withdrawn.get(receipt.key), self.accepted):
            del self.withdrawn[receipt.key]
            return
        call = self.outstanding.get(receipt.key)
        if call is None or not answers(receipt, call, self.accepted, cleaning=self._cleanup.active):
            raise not_requested(receipt, call or self.withdrawn.get(receipt.key), self._present())
        del self.outstanding[receipt.key]
        self._resolve(call, receipt)

    def _resolve(self, call: AnyCall, receipt: Receipt) -> None:
        if receipt.status in GIVEN_UP:
            # Nobody else gives up a call that the body waits for: a runner cut the cleanup off, and died.
            self._cleanup.cut_off = f"cleanup was cut off while {call.kind} {call.key} ran"
            return
        if isinstance(call, TimerCall):
            self._timers.pop(id(call.handle), None)
        try:
            call.resolve(receipt)
        except Exception as error:
            raise unreadable(receipt, call, error, self._present()) from error

    def _present(self) -> Present:
        return Present(
            self.run_id,
            self.started.execution.python,
            self._last_key,
            self._calls.requested or self.outstanding,
            self._body.waiting_sites(),
            self.root,
        )

    def _cancel(self, *, at_once: bool) -> None:
        if at_once:
            self._cleanup.skip()
        elif not self._cleanup.active and self._end is None:
            self._cleanup.active = True
            self._body.cancel()

    def _decide(self) -> Decision:
        end, stuck = self._end, None
        if end is None:
            end, stuck = self._step()
        if end is not None:
            # What is still open when the run ends is withdrawn; its receipts may still come and change nothing.
            self._end = end
            self._calls.withdraw_all()
        elif stuck is None and not self.outstanding:
            places = ", ".join(site.within(self.root) for site in self._body.waiting_sites())
            stuck = f"nothing can wake the body, which waits at {places or 'an unknown place'}"
        requested, dropped = tuple(self._calls.requested.values()), tuple(self._calls.dropped)
        return Decision(self.after, requested, dropped, end, stuck, tuple(self._logs))

    def _step(self) -> tuple[End | None, str | None]:
        """Let the body go on; how it ended, or why its end cannot be recorded."""
        ended = False
        try:
            if self._body.step():
                self._check_forgotten()
                ended = self._body.wind_down()
        except AuthoringError as fatal:
            self._fatal = self._fatal or fatal
        if self._cleanup.active and (self._fatal or self._cleanup.cut_off or ended):
            error = self._fatal or (self._body.error if ended else None)
            return self._endings.cancelled(self._cleanup.failure(self.outstanding), error), None
        if self._fatal is not None:
            return self._endings.failed(self._fatal), None
        return self._end_of_body() if ended else (None, None)

    def _end_of_body(self) -> tuple[End | None, str | None]:
        if (error := self._body.error) is not None:
            return self._failed(error)
        counts: Counts = Counter()
        try:
            output = self.definition.encode_result(self._body.result, self.redactor, counts)
            return End("completed", output, redactions=counts), None
        except UnstorableValue as refused:
            return self._failed(UnstorableValue(refused.path, f"the result cannot be stored: {refused.reason}"))
        except Exception as refused:  # by us, or by the author's own code that writes it
            return self._failed(refused)

    def _failed(self, error: BaseException) -> tuple[End | None, str | None]:
        if name := depends_on_machine(error):
            return None, f"the body ended in {name}, which depends on the machine"
        return self._endings.failed(error), None

    def _check_forgotten(self) -> None:
        if self._body.winding_down or self._body.error is not None:
            return
        for item in self._calls.forgotten():
            raise CallNeverAwaited(
                f"{item.kind} call {item.key} was written at {item.site.within(self.root)} and never awaited",
                hint="await it, hand it to parallel(), or take it out",
            )


def rebuild(live: LiveRun, history: History) -> Decision:
    """Bring a new body to the end of its recorded history; returns the last decision. Raises Divergence."""
    for note in history.notes:
        live.take(note)
    expected = history.expected
    with keeping_generators():
        decision = live.start()
        live.expect(expected.get(0, ()))
        for receipt in history.deliveries:
            decision = live.deliver(receipt)
            live.expect(expected.get(receipt.seq, ()))
    return decision


def advance(run_id: str, definition: Definition, history: History) -> Decision:
    """The pure function of DESIGN §1: what the present code decides after this history. Raises Divergence."""
    live = LiveRun(run_id, definition, history.started)
    try:
        return rebuild(live, history)
    finally:
        live.evict()
