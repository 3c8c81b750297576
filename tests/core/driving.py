"""Drives a body by hand: answers its calls one at a time, in any order, and rebuilds it from the receipts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_workflows.authoring import Workflow
from hermes_workflows.authoring.step import Step
from hermes_workflows.core import layout
from hermes_workflows.core.calls import Call, TimerCall
from hermes_workflows.core.divergence import AnyCall
from hermes_workflows.core.history import fold
from hermes_workflows.core.live import Decision, LiveRun, rebuild
from hermes_workflows.core.receipts import (
    CallReceipt,
    ControlReceipt,
    Execution,
    Failure,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunRequest,
    RunStarted,
    TimerReceipt,
    TimerRequest,
)

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def run_step(call: Call[Any]) -> Any:
    """What a runner would record for a sync `@step`."""
    definition: Step[..., Any] = call.spec.options
    arguments: Any = call.spec.request["arguments"]
    return definition.output_codec.to_plain(definition.bind(arguments)())


class Driver:
    """One run in memory. `receipts` is all there is; `rebuilt()` makes a second body from it."""

    def __init__(self, workflow: Workflow[Any], inputs: Any = None, *, seed: str = "seed", run_id: str = "run") -> None:
        self.workflow = workflow
        self.started = RunStarted(
            path=layout.RUN,
            key="",
            request=RunRequest(workflow=workflow.ref, input=inputs),
            execution=Execution(started_at=NOON, seed=seed),
        )
        self.receipts: list[Receipt] = [self.started]
        self.live = LiveRun(run_id, workflow, self.started)
        self.requested: list[str] = []
        self.decision = self._saw(self.live.start())

    def _saw(self, decision: Decision) -> Decision:
        self.requested += [call.key for call in decision.requested]
        self._note(decision)
        return decision

    def _note(self, decision: Decision) -> None:
        for call in decision.requested:
            if isinstance(call, TimerCall):
                self._take(self._timer(call, layout.timer_start(call.key), "started"))
            elif call.kind == "review":
                request = ReviewRequest.model_validate(dict(call.request))
                self._take(self._review(call, layout.request(call.key), "requested", request=request))

    def _take(self, receipt: Receipt) -> Decision | None:
        self.receipts.append(receipt)
        return self.live.take(receipt)

    def _execution(self, call: AnyCall | None, **fields: Any) -> Execution:
        seq = len(self.receipts)
        after = call.requested_after if call else None
        return Execution(seq=seq, requested_after=after, finished_at=NOON + timedelta(seconds=seq), **fields)

    def _timer(self, call: TimerCall, path: str, status: Any) -> TimerReceipt:
        seconds: Any = call.request["seconds"]
        due = NOON + timedelta(seconds=seconds)
        return TimerReceipt(
            path=path,
            key=call.key,
            status=status,
            fingerprint=call.fingerprint,
            request=TimerRequest(seconds=seconds),
            execution=self._execution(call, due_at=due),
        )

    def _review(self, call: AnyCall, path: str, status: Any, **fields: Any) -> ReviewReceipt:
        return ReviewReceipt(
            path=path, key=call.key, status=status, fingerprint=call.fingerprint,
            execution=self._execution(call), **fields,
        )  # fmt: skip

    # -- what happens to the run -----------------------------------------------------------------------------

    @property
    def open(self) -> list[str]:
        return list(self.live.outstanding)

    def answer(self, key: str, output: Any = None, error: str | None = None) -> Decision:
        """Record the result of an open call; a step without an output is executed."""
        return self._deliver(self.receipt_for(self.live.outstanding[key], output, error))

    def receipt_for(self, call: AnyCall, output: Any = None, error: str | None = None) -> Receipt:
        if isinstance(call, TimerCall):
            return self._timer(call, layout.timer_fired(call.key), "completed")
        failure = Failure(type="Broken", message=error) if error else None
        if call.kind == "review":
            return self._review(call, layout.response(call.key), "completed", output=output)
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

    def late(self, key: str) -> Decision:
        """Record a result for a call that the body has given up."""
        return self._deliver(self.receipt_for(self.live.withdrawn[key], output="late"))

    def cancel(self) -> Decision:
        return self._deliver(
            ControlReceipt(
                path=layout.control(1, "cancel"), key="", status="cancel", request={"reason": "enough"},
                execution=self._execution(None),
            )  # fmt: skip
        )

    def _deliver(self, receipt: Receipt) -> Decision:
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
        """A new body at the same place, from the receipts alone."""
        live = LiveRun(self.live.run_id, workflow or self.workflow, self.started)
        return live, rebuild(live, fold(self.receipts))

    def crash(self) -> None:
        """Lose the body and go on with a rebuilt one."""
        self.live.evict()
        self.live, self.decision = self.rebuilt()
