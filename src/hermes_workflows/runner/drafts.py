"""From what a decision wants, and from how work ended, to receipts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..authoring.step import Step
from ..core import layout
from ..core.calls import TIMEOUT, Call
from ..core.divergence import AnyCall
from ..core.live import End
from ..core.receipts import (
    Author,
    CallReceipt,
    Draft,
    Execution,
    Failure,
    Provenance,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunEnded,
    SignalReceipt,
    TimerReceipt,
    TimerRequest,
    draft,
)
from ..core.timestamps import in_milliseconds, parse_time
from ..errors import UnstorableValue
from .failures import TRACEBACK, storable, storable_text

if TYPE_CHECKING:
    from .agents import AgentAttempt
    from .jobs import Executed, Job

WORKFLOW = Author("workflow")
_NEVER = datetime.max.replace(microsecond=0, tzinfo=UTC)


class Stamp:
    """What every receipt of one runner and one version of the code has in common."""

    def __init__(self, runner: str, code: str) -> None:
        self.runner = runner
        self.code = code

    def execution(self, call: AnyCall | None = None, **fields: Any) -> Execution:
        after = call.requested_after if call is not None else None
        return Execution(runner=self.runner, code=self.code, requested_after=after, **fields)


def review_requested(call: Call[Any], now: datetime, stamp: Stamp, **execution: Any) -> Draft:
    """A question; `execution` is what was read for it."""
    now = in_milliseconds(now)
    receipt = ReviewReceipt(
        path=layout.request(call.key),
        key=call.key,
        status="requested",
        fingerprint=call.fingerprint,
        request=ReviewRequest.model_validate(dict(call.request)),
        execution=stamp.execution(call, started_at=now, expires_at=_expiry(call, now), **execution),
    )
    return draft(receipt, WORKFLOW)


def timer_started(call: AnyCall, now: datetime, stamp: Stamp) -> Draft:
    request = TimerRequest.model_validate(dict(call.request))
    due = parse_time(request.until) if request.until else _later(in_milliseconds(now), request.seconds or 0.0)
    receipt = TimerReceipt(
        path=layout.timer_start(call.key),
        key=call.key,
        status="started",
        fingerprint=call.fingerprint,
        request=request,
        execution=stamp.execution(call, started_at=in_milliseconds(now), due_at=due),
    )
    return draft(receipt, WORKFLOW)


def _later(moment: datetime, seconds: float) -> datetime:
    """The end of the calendar for what is further away than that: asyncio knows no longest sleep."""
    try:
        return in_milliseconds(moment + timedelta(seconds=seconds))
    except OverflowError:
        return _NEVER


def _expiry(call: Call[Any], now: datetime) -> datetime | None:
    return None if call.spec.expires is None else _later(now, call.spec.expires)


def timer_fired(call: AnyCall, started: Receipt, now: datetime, stamp: Stamp) -> Draft:
    due = started.execution.due_at
    assert due is not None
    receipt = TimerReceipt(
        path=layout.timer_fired(call.key),
        key=call.key,
        status="completed",
        fingerprint=call.fingerprint,
        request=started.request,
        # Never before it was due, whatever this host's clock says.
        execution=stamp.execution(call, due_at=due, finished_at=max(in_milliseconds(now), due)),
    )
    return draft(receipt, WORKFLOW)


def child_started(call: Call[Any], child_id: str, now: datetime, stamp: Stamp) -> Draft:
    """Which run the child is, before it exists: whoever finds this note starts that one and no other."""
    return _noted(call, now, stamp, child=child_id)


def intent(call: Call[Any], number: int, now: datetime, stamp: Stamp, process: str) -> Draft:
    """The promise that an at-most-once body is about to run, for the `number`-th time."""
    if number == 1:
        return _noted(call, now, stamp, process=process)
    return _noted(call, now, stamp, path=layout.attempt(call.key, number), attempt=number, process=process)


def step_unknown(intent: Receipt, now: datetime, stamp: Stamp) -> Draft:
    """The end of an at-most-once step that was given up after its intent."""
    message = "given up after it was begun; whether its effect happened is not known"
    return _ended(intent, "unknown", Failure(type="Unknown", message=message), now, stamp)


def wait_started(call: Call[Any], now: datetime, stamp: Stamp) -> Draft:
    """That the run waits for a signal, and what its payload must fit."""
    return _noted(call, now, stamp)


def _noted(call: Call[Any], now: datetime, stamp: Stamp, path: str | None = None, **execution: Any) -> Draft:
    now = in_milliseconds(now)
    model = SignalReceipt if call.kind == "signal" else CallReceipt
    receipt = model(
        path=path or layout.start(call.key),
        kind=call.kind,  # type: ignore[arg-type]
        key=call.key,
        status="started",
        fingerprint=call.fingerprint,
        request=dict(call.request),  # type: ignore[arg-type]
        execution=stamp.execution(call, started_at=now, expires_at=_expiry(call, now), **execution),
    )
    return draft(receipt, WORKFLOW)


def ran_over(start: Receipt, now: datetime, stamp: Stamp) -> Draft:
    """The end of a child or a wait that its time ran out on."""
    execution = start.execution
    assert execution.started_at is not None
    assert execution.expires_at is not None
    seconds = (execution.expires_at - execution.started_at).total_seconds()
    said = f"no signal {start.request.name!r} came" if start.kind == "signal" else "the child run did not end"
    return _ended(start, "failed", Failure(type=TIMEOUT, message=f"{said} within {seconds:g} s"), now, stamp)


def wait_given_up(start: Receipt, now: datetime, stamp: Stamp) -> Draft:
    """The end of a wait that the body has dropped."""
    return _ended(start, "cancelled", Failure(type="Cancelled", message="the workflow no longer waits"), now, stamp)


def _ended(start: Receipt, status: str, failure: Failure, now: datetime, stamp: Stamp) -> Draft:
    """The result of what a start note began, but for its place and time."""
    noted = start.execution
    execution = stamp.execution(None, started_at=noted.started_at, finished_at=in_milliseconds(now), child=noted.child)
    execution = execution.model_copy(update={"requested_after": noted.requested_after})
    fields = {"path": layout.step(start.key), "status": status, "error": failure, "execution": execution}
    return draft(start.model_copy(update=fields), WORKFLOW)


def finished(job: Job, executed: Executed, started: datetime, ended: datetime, stamp: Stamp) -> Draft:
    """The result of an execution. A value that cannot be stored fails the call, once, and says where it is."""
    if executed.status != "completed":
        executed = replace(executed, status=_final(job, executed), error=_with_attempts(job, executed))
    made = _stored(_call_receipt(job, executed, started, ended, stamp, layout.step(job.call.key)), _author(job))
    return replace(made, blobs={**made.blobs, **executed.blobs}) if executed.blobs else made


def _final(job: Job, executed: Executed) -> str:
    # Stopped after its intent: nobody can know how far the effect has come, so it is never called cancelled.
    definition = job.call.spec.options
    promised = isinstance(definition, Step) and definition.at_most_once
    return "unknown" if promised and executed.status == "cancelled" else executed.status


def attempt_failed(job: Job, executed: Executed, started: datetime, ended: datetime, stamp: Stamp) -> Draft:
    """A failed attempt that will be tried again."""
    path = layout.attempt(job.call.key, executed.attempt or job.attempt)
    return _stored(_call_receipt(job, executed, started, ended, stamp, path), _author(job))


def _with_attempts(job: Job, executed: Executed) -> Failure | None:
    """The error of a call that has failed for good, with every attempt of it."""
    if executed.error is None or executed.status != "failed" or not (job.earlier or executed.attempts):
        return executed.error
    earlier = [
        {"attempt": each.execution.attempt, **(each.error.model_dump(exclude_none=True) if each.error else {})}
        | ({"usage": each.execution.usage.model_dump()} if each.execution.usage else {})
        for each in job.earlier
    ]
    details = {**(executed.error.details or {}), "attempts": [*earlier, *map(dict, executed.attempts)]}
    return executed.error.model_copy(update={"details": details})


def agent_attempt(job: Job, attempt: AgentAttempt, stamp: Stamp) -> Draft:
    """An agent's answer that was refused, before it is asked again."""
    call = job.call
    receipt = CallReceipt(
        path=layout.attempt(call.key, attempt.number),
        kind="agent",
        key=call.key,
        status="failed",
        fingerprint=call.fingerprint,
        request=dict(call.request),
        error=storable(attempt.failure),
        execution=stamp.execution(
            call,
            attempt=attempt.number,
            operation_id=job.operation_id,
            started_at=in_milliseconds(attempt.started_at),
            finished_at=in_milliseconds(attempt.finished_at),
            duration_seconds=round(attempt.duration_seconds, 3),
            usage=attempt.usage,
            redactions=dict(attempt.redactions) or None,
            transcript=dict(attempt.transcript),
            model=attempt.model,
            session=attempt.session,
        ),
    )
    return _stored(receipt, _author(job))


def _stored(receipt: CallReceipt, author: Author) -> Draft:
    try:
        return draft(receipt, author)
    except UnstorableValue as error:
        failure = Failure(type="UnstorableValue", message=f"the result cannot be stored: {error.message}")
        # Without a transcript too: that alone may be what is too large, and this one has to fit.
        bare = receipt.execution.model_copy(update={"transcript": None})
        changes = {"status": "failed", "output": None, "error": storable(failure), "execution": bare}
        return draft(receipt.model_copy(update=changes), author)


def _call_receipt(
    job: Job, executed: Executed, started: datetime, ended: datetime, stamp: Stamp, path: str
) -> CallReceipt:
    call = job.call
    return CallReceipt(
        path=path,
        kind=call.kind,  # type: ignore[arg-type]
        key=call.key,
        status=executed.status,  # type: ignore[arg-type]
        fingerprint=call.fingerprint,
        request=dict(call.request),
        output=executed.output,
        error=storable(executed.error),
        execution=stamp.execution(
            call,
            attempt=executed.attempt or job.attempt,
            operation_id=job.operation_id,
            started_at=in_milliseconds(started),
            finished_at=in_milliseconds(ended),
            duration_seconds=round(max((ended - started).total_seconds(), 0.0), 3),
            usage=executed.usage,
            redactions=dict(executed.redactions) or None,
            transcript=dict(executed.transcript) if executed.transcript else None,
            mock=executed.mock or None,
            **executed.noted,
        ),
    )


def _author(job: Job) -> Author:
    call = job.call
    return Author(f"agent {call.request['name']!s}") if call.kind == "agent" else Author(call.kind)


def child_ended(start: Receipt, child_end: RunEnded, tip: str, now: datetime, stamp: Stamp) -> Draft:
    """The parent's receipt of a child run; it pins the child's tip.

    The child's usage stays its own: a list of runs would count it twice.
    """
    error = child_end.error
    if child_end.status == "cancelled" and error is None:
        error = Failure(type="ChildCancelled", message="the child run was cancelled")
    receipt = CallReceipt(
        path=layout.step(start.key),
        kind="child",
        key=start.key,
        status="completed" if child_end.status == "completed" else "failed",
        fingerprint=start.fingerprint or "",
        request=start.request,
        output=child_end.output,
        error=error,
        execution=Execution(
            runner=stamp.runner,
            code=stamp.code,
            requested_after=start.execution.requested_after,
            started_at=start.execution.started_at,
            finished_at=in_milliseconds(now),
            tip=tip,
            child=start.execution.child,
        ),
    )
    return _stored(receipt, WORKFLOW)


def review_ended(request: Receipt, status: str, now: datetime, stamp: Stamp) -> Draft:
    """Nobody's answer: the request expired (with its default, if it has one) or the body dropped it."""
    by_default = status == "expired" and request.request.on_expiry != "raise"
    receipt = ReviewReceipt(
        path=layout.response(request.key),
        key=request.key,
        status=status,  # type: ignore[arg-type]
        fingerprint=request.fingerprint or "",
        output=request.request.on_expiry if by_default else None,
        error=None if by_default else Failure(type=status.capitalize(), message=_ENDED[status]),
        execution=stamp.execution(
            None,
            finished_at=in_milliseconds(now),
            provenance=Provenance(kind="policy", by="expiry rule", channel="runner") if by_default else None,
        ),
    )
    return draft(receipt, WORKFLOW)


_ENDED = {"expired": "nobody answered in time", "withdrawn": "the workflow no longer needs an answer"}


def run_ended(end: End, started_at: datetime | None, now: datetime, stamp: Stamp) -> Draft:
    """The last receipt of a run. A result that cannot be stored fails the run, and says where it is."""
    try:
        return _run_ended(end, started_at, now, stamp)
    except UnstorableValue as error:
        failure = Failure(type="UnstorableValue", message=f"the result cannot be stored: {error.message}")
        return _run_ended(End("failed", error=storable(failure)), started_at, now, stamp)


def _run_ended(end: End, started_at: datetime | None, now: datetime, stamp: Stamp) -> Draft:
    now = in_milliseconds(now)
    duration = (now - started_at).total_seconds() if started_at else None
    receipt = RunEnded(
        path=layout.RESULT,
        key="",
        status=end.status,  # type: ignore[arg-type]
        output=end.output,
        error=storable(end.error),
        execution=stamp.execution(
            None,
            finished_at=now,
            duration_seconds=round(max(duration, 0.0), 3) if duration is not None else None,
            redactions=dict(end.redactions or {}) or None,
            transcript={"traceback": storable_text(end.traceback, TRACEBACK)} if end.traceback else None,
        ),
    )
    return draft(receipt, WORKFLOW)
