"""At-most-once steps: an intent in git before each execution, and what is said when nobody can know how it ended.

    steps/<key>.start.json        the intent of the first execution
    steps/<key>.attempt-<n>.json  status started: that of the n-th, which a person allowed by saying "it did not happen"
    steps/<key>.json              the result; `unknown` when it was given up between an intent and a result

An intent that has neither a result nor a person's decision is open. While it is, nobody executes the step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..authoring.step import Step
from ..core import layout
from ..core.plain import command_line
from ..core.receipts import Draft, Receipt
from . import drafts
from .bodies import CannotAdvance, Held

if TYPE_CHECKING:
    from ..core.calls import Call
    from ..store.ports import Ledger
    from .records import Records

# What a stuck mark says of a step whose effect may have happened.
NEEDS_DECISION = "needs-decision"
_TOLD = frozenset({"completed", "failed"})
_MAX_LATE = 100


def promise(records: Records, held: Held, call: Call[Any]) -> bool:
    """Commit the intent of an at-most-once step before it may run; False when the run has moved on.

    Raises CannotAdvance while there is one already: then nobody but a person can know whether the effect happened.
    """
    definition = call.spec.options
    if not isinstance(definition, Step) or not definition.at_most_once:
        return True
    if call.key in held.summary.open_intents:
        raise CannotAdvance(
            NEEDS_DECISION,
            f"step {call.key} may run at most once and was begun, but left no result",
            f"find out whether its effect happened, then `{command_line('resolve', held.run_id, call.key)}` "
            "with `--happened RESULT` or `--did-not-happen`",
            key=call.key,
            code=held.loaded.code,
        )
    now, stamp = records.workspace.clock.now(), records.stamp(held)
    intent = drafts.intent(call, executions(held, call.key) + 1, now, stamp, records.process.to_text())
    return records.decide(held, [intent]) and call.key in held.live.outstanding


def executions(held: Held, key: str) -> int:
    """How often an at-most-once step has been begun."""
    number = 0
    while _path(key, number + 1) in held.live.noted:
        number += 1
    return number


def given_up(records: Records, held: Held) -> list[Draft]:
    """What is said at the end of a run of the steps that were begun and left nothing: that it is not known."""
    now, stamp = records.workspace.clock.now(), records.stamp(held)
    return [drafts.step_unknown(held.live.noted[layout.start(key)], now, stamp) for key in held.summary.open_intents]


def kept_late(ledger: Ledger, run_id: str, lost: Draft, winner: Receipt) -> Draft | None:
    """A result of an at-most-once step that came second, as a note: its effect may have happened as well.

    None for anything else, and for the same execution recorded twice.
    """
    receipt = lost.receipt
    if receipt.kind != "step" or receipt.status not in _TOLD or _same(receipt, winner):
        return None
    if ledger.file(run_id, layout.start(receipt.key)) is None:
        return None
    for number in range(1, _MAX_LATE):
        path = layout.late(receipt.key, number)
        if ledger.file(run_id, path) is None:
            return replace(lost, receipt=receipt.model_copy(update={"path": path}))
    return None


def _path(key: str, number: int) -> str:
    return layout.start(key) if number == 1 else layout.attempt(key, number)


def _same(one: Receipt, other: Receipt) -> bool:
    ours, theirs = one.execution, other.execution
    return (ours.runner, ours.started_at, ours.finished_at) == (theirs.runner, theirs.started_at, theirs.finished_at)
