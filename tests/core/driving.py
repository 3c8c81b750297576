"""Drives a body by hand: answers its calls one at a time, in any order, and rebuilds it from the receipts.

Receipts go through their bytes, as in a ledger: a body sees nothing else, live or rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from hermes_workflows.authoring import Workflow
from hermes_workflows.authoring.step import Step
from hermes_workflows.core import layout
from hermes_workflows.core.calls import TIMEOUT, AnyCall, Call
from hermes_workflows.core.history import History, fold
from hermes_workflows.core.live import Decision, LiveRun, rebuild
from hermes_workflows.core.names import clean_key
from hermes_workflows.core.receipts import (
    Author,
    CallReceipt,
    ControlReceipt,
    Execution,
    Failure,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunRequest,
    RunStarted,
    SignalReceipt,
    SignalRequest,
    TimerReceipt,
    TimerRequest,
    draft,
    load,
)
from hermes_workflows.core.redaction import Redactor
from hermes_workflows.core.timestamps import parse_time
from hermes_workflows.errors import Divergence

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def run_step(call: Call[Any]) -> Any:
    """What a runner would record for a sync `@step`."""
    definition: Step[..., Any] = call.spec.options
    arguments: Any = call.spec.request["arguments"]
    return definition.output_codec.to_plain(definition.bind(arguments)())


def stored(receipt: Receipt) -> Receipt:
    """The receipt as it is read back from its bytes."""
    made = draft(receipt, Author("test"))
    return load(receipt.path, made.render(receipt.seq), made.blobs.__getitem__)


Moment = tuple[Any, ...]


def moment(live: LiveRun, decision: Decision) -> Moment:
    """All that must be the same again after one receipt."""
    calls = (decision.requested, decision.cancelled)
    asked = [sorted((call.kind, call.key, call.fingerprint) for call in some) for some in calls]
    # An exception that a test raises twice has a longer traceback the second time.
    end = decision.end and replace(decision.end, traceback=None)
    return decision.after, asked, end, decision.stuck, decision.logs, live.state()


def _moments(live: LiveRun, history: History) -> Iterator[Moment]:
    for note in history.notes:
        live.take(note)
    yield moment(live, live.start())
    live.expect(history.expected.get(0, ()))
    for receipt in history.deliveries:
        decision = live.take(receipt)
        assert decision is not None
        yield moment(live, decision)
        live.expect(history.expected.get(receipt.seq, ()))


class Driver:
    """One run in memory. `receipts` is all there is; `rebuilt()` makes a second body from it.

    At the end of the test all are decided again from their receipts, and taken down (conftest.py).
    """

    alive: ClassVar[list[LiveRun]] = []
    made: ClassVar[list[Driver]] = []

    def __init__(
        self,
        workflow: Workflow[Any],
        inputs: Any = None,
        *,
        seed: str = "seed",
        run_id: str = "run",
        redactor: Redactor | None = None,
        root: str | None = None,
    ) -> None:
        self.workflow = workflow
        self._surroundings: dict[str, Any] = {"redactor": redactor, "root": root}
        started = RunStarted(
            path=layout.RUN,
            key="",
            request=RunRequest(workflow=workflow.ref, input=inputs),
            execution=Execution(started_at=NOON, seed=seed),
        )
        self.started: Any = stored(started)
        self.receipts: list[Receipt] = [self.started]
        self.live = self._body(run_id, workflow)
        self.requested: list[str] = []
        self.logs: list[str] = []
        self.moments: list[Moment] = []
        self.diverged = False
        self.decision = self._saw(self.live.start())
        self.made.append(self)

    def _saw(self, decision: Decision) -> Decision:
        self.requested += [call.key for call in decision.requested]
        self.logs += decision.logs
        self._note(decision)
        self.moments.append(moment(self.live, decision))
        return decision

    def decide_again(self) -> None:
        """`always_replay`: at every await, a body that knows the receipts alone is where the living one was.

        One pass is enough for all awaits, since nothing in a body knows how many receipts are still to come.
        """
        moments: list[Moment] = []
        twin = self._body(self.live.run_id, self.workflow)
        try:
            for each in _moments(twin, fold(self.receipts)):
                moments.append(each)
        except Divergence:
            assert self.diverged, "it diverges from its own receipts"
        else:
            assert not self.diverged, "it diverged, and does so no more"
        for before, again in zip(self.moments, moments, strict=not self.diverged):
            assert before == again, f"it is not decided again as it was:\n{before}\n{again}"
        if twin.evict() == []:
            self.alive.remove(twin)

    def _note(self, decision: Decision) -> None:
        for call in decision.requested:
            if call.kind == "timer":
                self._take(self._timer(call, layout.timer_start(call.key), "started"))
            elif call.kind == "signal":
                self._take(self._wait(call, layout.start(call.key), "started"))
            elif call.kind == "review":
                request = ReviewRequest.model_validate(dict(call.request))
                self._take(self._review(call, layout.request(call.key), "requested", request=request))

    def _take(self, receipt: Receipt) -> Decision | None:
        self.receipts.append(stored(receipt))
        try:
            return self.live.take(self.receipts[-1])
        except Divergence:
            self.diverged = True
            raise

    def _execution(self, call: AnyCall | None, **fields: Any) -> Execution:
        seq = len(self.receipts)
        after = call.requested_after if call else None
        return Execution(
            **{"seq": seq, "requested_after": after, "finished_at": NOON + timedelta(seconds=seq), **fields}
        )

    def _timer(self, call: AnyCall, path: str, status: Any) -> TimerReceipt:
        request = TimerRequest.model_validate(dict(call.request))
        due = (self.live.now or NOON) + timedelta(seconds=request.seconds or 0)
        if request.until is not None:
            due = parse_time(request.until)
        if (started := self.live.noted.get(layout.timer_start(call.key))) is not None:
            due = started.execution.due_at or due
        return TimerReceipt(
            path=path,
            key=call.key,
            status=status,
            fingerprint=call.fingerprint,
            request=request,
            execution=self._execution(call, due_at=due, finished_at=due if status == "completed" else None),
        )

    def _wait(self, call: AnyCall, path: str, status: Any, error: Failure | None = None) -> SignalReceipt:
        return SignalReceipt(
            path=path, key=call.key, status=status, fingerprint=call.fingerprint, error=error,
            request=SignalRequest.model_validate(dict(call.request)), execution=self._execution(call),
        )  # fmt: skip

    def _review(self, call: AnyCall, path: str, status: Any, **fields: Any) -> ReviewReceipt:
        return ReviewReceipt(
            path=path, key=call.key, status=status, fingerprint=call.fingerprint,
            execution=self._execution(call), **fields,
        )  # fmt: skip

    # -- what happens to the run -----------------------------------------------------------------------------

    @property
    def open(self) -> list[str]:
        return list(self.live.outstanding)

    def call(self, key: str) -> AnyCall:
        return self.live.outstanding[key]

    def answer(self, key: str, output: Any = None, error: str | None = None) -> Decision:
        """Record the result of an open call; a step without an output is executed."""
        return self.record(self.receipt_for(self.call(key), output, error))

    def receipt_for(self, call: AnyCall, output: Any = None, error: str | None = None) -> Receipt:
        if call.kind == "timer":
            return self._timer(call, layout.timer_fired(call.key), "completed")
        if call.kind == "signal":
            return self._wait(call, layout.step(call.key), "failed", Failure(type=TIMEOUT, message="nobody sent it"))
        failure = Failure(type="Broken", message=error) if error else None
        if call.kind == "review":
            return self._review(call, layout.response(call.key), "completed", output=output, error=failure)
        if output is None and error is None and call.kind == "step":
            output = run_step(call)
        return CallReceipt(
            path=layout.step(call.key),
            kind=call.kind,  # type: ignore[arg-type]
            key=call.key,
            status="failed" if failure else "completed",
            fingerprint=call.fingerprint,
            request=dict(call.request),
            output=output,
            error=failure,
            execution=self._execution(call),
        )

    def signal(self, name: str, payload: Any = None) -> Decision:
        """Record a signal that came from outside."""
        number = sum((each.kind, each.key, each.status) == ("signal", name, "received") for each in self.receipts) + 1
        return self.record(
            SignalReceipt(
                path=layout.signal(clean_key(name), number),
                key=name,
                status="received",
                output=payload,
                execution=self._execution(None),
            )
        )

    def late(self, key: str, status: str = "completed") -> Decision:
        """Record a result for a call that the body has given up."""
        made = self.receipt_for(self.live.withdrawn[key], output="late")
        if made.kind == "review" and status != "completed":
            status = "withdrawn"
        if made.kind == "signal" and status == "completed":
            status = "failed"
        return self.record(made.model_copy(update={"status": status}) if made.kind != "timer" else made)

    def cancel(self, **more: Any) -> Decision:
        number = sum(receipt.kind == "control" for receipt in self.receipts) + 1
        return self.record(
            ControlReceipt(
                path=layout.control(number, "cancel"),
                key="",
                status="cancel",
                request={"reason": "enough", **more},
                execution=self._execution(None),
            )
        )

    def record(self, receipt: Receipt) -> Decision:
        decision = self._take(receipt)
        assert decision is not None
        self.decision = self._saw(decision)
        return self.decision

    def to_the_end(self, choose: Callable[[list[str]], str] = lambda keys: keys[0]) -> Decision:
        """Answer everything, in the order `choose` says, until the run ends or is stuck."""
        while self.decision.end is None and self.decision.stuck is None:
            self.answer(choose(self.open))
        return self.decision

    def rebuilt(self, workflow: Workflow[Any] | None = None) -> tuple[LiveRun, Decision]:
        """A new body at the same place, from the receipts alone; of other code, if given."""
        live = self._body(self.live.run_id, workflow or self.workflow)
        return live, rebuild(live, fold(self.receipts))

    def _body(self, run_id: str, workflow: Workflow[Any]) -> LiveRun:
        live = LiveRun(run_id, workflow, self.started, **self._surroundings)
        self.alive.append(live)
        return live

    def crash(self) -> None:
        """Lose the body and go on with a rebuilt one."""
        self.live.evict()
        self.live, self.decision = self.rebuilt()


def keys_of(workflow: Workflow[Any], inputs: Any = None) -> list[str]:
    """The keys a body requests when everything is answered in order, in the order of its requests."""
    driver = Driver(workflow, inputs)
    assert ended(driver.to_the_end()).status == "completed", driver.decision
    return driver.requested


def result_of(workflow: Workflow[Any], inputs: Any = None) -> Any:
    """What a body returns when everything is answered in order."""
    return ended(Driver(workflow, inputs).to_the_end()).output


def ended(decision: Decision) -> Any:
    """The end of a run that must have ended."""
    assert decision.end is not None, decision
    return decision.end


def open_keys(calls: Iterable[AnyCall]) -> list[str]:
    return [call.key for call in calls]
