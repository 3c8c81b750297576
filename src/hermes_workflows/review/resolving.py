"""What a person says about an at-most-once step that was begun and left no result: its effect happened, or it did not.

Whoever says that it happened gives the result in the step's stead. Whoever says that it did not lets a runner execute
the step once more, behind an intent of its own. Either way the decision is a receipt, with who made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..authoring.step import Step
from ..core import layout
from ..core.encoding import Plain
from ..core.names import clean_key
from ..core.readme import render
from ..core.receipts import (
    Author,
    CallReceipt,
    ControlReceipt,
    Draft,
    Execution,
    Provenance,
    Receipt,
    RunStarted,
    draft,
)
from ..core.spelling import suggestion
from ..core.summary import summarize
from ..core.timestamps import parse_time
from ..core.values import TypeCodec, ValueMismatch
from ..errors import Conflict, HermesError, InvalidInput, NotFound, TemporarilyLocked
from ..lives import is_healthy
from ..store.liveness import Process, this_host
from ..store.ports import Appended, Entry

if TYPE_CHECKING:
    from ..workspace import Workspace

HAPPENED = "happened"
DID_NOT_HAPPEN = "did-not-happen"
_ATTEMPTS = 20


@dataclass(frozen=True)
class Resolution:
    """A decision about step `key` of a run. `output` is the step's result, if it happened; `at` the decider's clock."""

    run_id: str
    key: str
    happened: bool
    by: Provenance
    at: datetime
    output: Plain = None
    why: str = ""

    @property
    def decision(self) -> str:
        return HAPPENED if self.happened else DID_NOT_HAPPEN


def resolve(workspace: Workspace, given: Resolution) -> ControlReceipt:
    """Record a decision; the note that says so.

    Raises NotFound for a step that nobody has to decide about, Conflict while the runner that began it lives, when
    the step's own result has come, or the run has ended, and InvalidInput for a result of another type.
    """
    for _ in range(_ATTEMPTS):
        _, receipts = workspace.ledger.read(given.run_id)
        intent = open_intent(given.run_id, given.key, receipts)
        _refuse_while_executing(workspace, intent)
        drafts = _drafts(workspace, given, intent, receipts)
        told = [*receipts, *(each.receipt for each in drafts)]
        seq = receipts[-1].seq
        after = summarize(given.run_id, receipts).apply(
            each.receipt.at(seq + number) for number, each in enumerate(drafts, 1)
        )
        # At the seq it was decided at: the step's own result, or another person, may come first.
        entry = Entry(given.run_id, drafts, decided_at=seq, files={layout.README: render(after, told)})
        outcome = workspace.ledger.append([entry])[0]
        if isinstance(outcome, Appended):
            note = outcome.receipts[0]
            assert isinstance(note, ControlReceipt)  # the first of the drafts
            return note
    raise TemporarilyLocked(f"{given.run_id} changes faster than a decision can be recorded", hint="try again")


def open_intent(run_id: str, key: str, receipts: Sequence[Receipt]) -> CallReceipt:
    """The newest intent of the step `key`, which waits for a decision. Raises NotFound, Conflict."""
    summary, key = summarize(run_id, receipts), clean_key(key)
    if summary.ended:
        raise Conflict(f"{run_id} is {summary.status}; there is nothing left to decide")
    result = next((each for each in receipts if each.path == layout.step(key)), None)
    if result is not None:
        raise Conflict(f"step {key} of {run_id} has its result: {result.status}", hint="nothing was recorded")
    if key not in summary.open_intents:
        hint = suggestion(key, summary.open_intents, "steps that wait for a decision")
        raise NotFound(f"no decision is needed about {key!r} of {run_id}", hint=hint)
    intents = [each for each in receipts if isinstance(each, CallReceipt) and _is_intent(each, key)]
    return intents[-1]


def next_control(receipts: Sequence[Receipt]) -> int:
    """The number that the next control receipt of a run gets."""
    places = filter(None, (layout.place(receipt.path) for receipt in receipts))
    return 1 + max((place.number for place in places if place.family in ("cancel", "control")), default=0)


def _is_intent(receipt: Receipt, key: str) -> bool:
    return receipt.key == key and receipt.status == "started" and receipt.kind == "step"


def _refuse_while_executing(workspace: Workspace, intent: CallReceipt) -> None:
    """A runner of the same name that was started after the intent is another process."""
    begun = intent.execution.started_at
    for row in workspace.queue.runners():
        older = begun is None or parse_time(row.started_at) <= begun
        if row.runner_id == intent.execution.runner and older and is_healthy(row, workspace.clock):
            raise _still_up(row.runner_id, row.pid, intent)
    # Heartbeats go with the SQLite file; the intent names its process by itself.
    process = _process_of(intent)
    if process is not None and process.host == this_host() and not process.gone():
        raise _still_up(intent.execution.runner, process.pid, intent)


def _process_of(intent: CallReceipt) -> Process | None:
    """None when the intent names none, or what cannot be one: then the heartbeats are all that is known."""
    try:
        return Process.from_text(intent.execution.process or "")
    except ValueError:
        return None


def _still_up(runner: str | None, pid: int, intent: CallReceipt) -> Conflict:
    return Conflict(
        f"runner {runner} (process {pid}) is up and may still be executing {intent.key}",
        hint="wait for its result, or stop that runner first",
    )


def _drafts(
    workspace: Workspace, given: Resolution, intent: CallReceipt, receipts: Sequence[Receipt]
) -> tuple[Draft, ...]:
    given = replace(given, by=workspace.without_secrets(given.by))
    author = Author(given.by.by)
    note = ControlReceipt(
        path=layout.control(next_control(receipts), "resolve"),
        key=intent.key,
        status="resolve",
        request={"key": intent.key, "decision": given.decision, "why": workspace.redactor.text(given.why)},
        execution=Execution(finished_at=given.at, provenance=given.by),
    )
    if not given.happened:
        return (draft(note, author),)
    return draft(note, author), draft(_result(workspace, given, intent, _codec(workspace, receipts, intent)), author)


def _codec(workspace: Workspace, receipts: Sequence[Receipt], intent: CallReceipt) -> TypeCodec[Any] | None:
    """How the step writes its result; None when its code cannot be found here: then the body will judge."""
    started = next(each for each in receipts if isinstance(each, RunStarted))
    module, _, name = str(intent.request["function"]).partition(":")
    try:
        found = workspace.loader.load(started.request.workflow).find(module, name)
    except HermesError:
        return None
    return found.output_codec if isinstance(found, Step) else None


def _fitting(key: str, codec: TypeCodec[Any] | None, output: Plain) -> Plain:
    try:
        return codec.to_plain(codec.from_plain(output)) if codec else output
    except ValueMismatch as error:
        raise InvalidInput(f"the result of {key} {error.message}", hint="nothing was recorded") from None


def _result(workspace: Workspace, given: Resolution, intent: CallReceipt, codec: TypeCodec[Any] | None) -> CallReceipt:
    counts: Counter[str] = Counter()
    output = workspace.redactor.plain(_fitting(intent.key, codec, given.output), counts)
    if counts:
        # What redaction has made invalid must not reach the body.
        _fitting(intent.key, codec, output)
    return intent.model_copy(
        update={
            "path": layout.step(intent.key),
            "status": "completed",
            "output": output,
            "execution": Execution(
                requested_after=intent.execution.requested_after,
                operation_id=f"{given.run_id}/{intent.key}",
                started_at=intent.execution.started_at,
                finished_at=given.at,
                provenance=given.by,
                redactions=dict(counts) or None,
            ),
        }
    )
