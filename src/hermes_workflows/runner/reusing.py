"""Results that a reproduction takes from the run it reproduces, instead of executing the calls (SEMANTICS §6).

They are looked up by key and fingerprint: a call that asks otherwise than it did then is executed. What is recorded
says whose result it is; nothing was consumed for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core import layout
from ..core.divergence import AnyCall
from ..core.receipts import Author, Draft, Execution, Provenance, Receipt, RunStarted, draft
from ..starting import following

if TYPE_CHECKING:
    from ..store.ports import Ledger
    from .bodies import Held
    from .records import Records

_AT_ONCE = 100

KINDS: Mapping[str, str] = {"agent": "agent", "ask": "review", "bash": "bash", "step": "step"}
"""What `--reuse` may name, and the kinds of receipts it means. Timers and signals belong to the time of a run."""


@dataclass(frozen=True)
class Then:
    """What a reproduction knows of the run it reproduces: results to take over, and child runs, both by key."""

    results: Mapping[str, Receipt] = field(default_factory=dict)
    children: Mapping[str, Receipt] = field(default_factory=dict)


def recorded_then(ledger: Ledger, started: RunStarted) -> Then:
    """Nothing for a run that reproduces none. Raises NotFound when the one it reproduces is gone."""
    source = started.execution.source or {}
    if source.get("how") != "reproduce":
        return Then()
    kinds = {KINDS[word] for word in source.get("reuse", "").split(",") if word in KINDS}
    _, receipts = ledger.at(source["commit"])
    answers = [receipt for receipt in receipts if _is_answer(receipt)]
    return Then(
        {receipt.key: receipt for receipt in answers if receipt.kind in kinds},
        {receipt.key: receipt for receipt in receipts if receipt.kind == "child" and receipt.execution.tip},
    )


def child_of_then(records: Records, held: Held, key: str, began: RunStarted) -> RunStarted:
    """The start of a child: in a reproduction it reproduces the child that the call had then."""
    then, source = held.then.children.get(key), held.live.started.execution.source or {}
    if then is None:
        return began
    child, commit = str(then.execution.child), str(then.execution.tip)
    _, receipts = records.workspace.ledger.at(commit)
    there = next(receipt for receipt in receipts if isinstance(receipt, RunStarted))
    return following(began, there, {**source, "run": child, "commit": commit})


def next_results(records: Records, held: Held) -> tuple[list[Draft], Mapping[str, bytes]] | None:
    """Results that stand in for calls of the last decisions, in the order they came then.

    An answer of a person has a commit of its own, with the README, as everywhere.
    """
    if not held.then.results:
        return None
    open_calls = [call for call in held.unoffered.values() if _recorded(held, call)]
    made: list[Draft] = []
    for call in sorted(open_calls, key=lambda call: held.then.results[call.key].seq):
        result = _taken_over(records, held, call)
        if call.kind == "review":
            return ([result], records.readme(held, result)) if not made else (made, {})
        made.append(result)
    return (made[:_AT_ONCE], {}) if made else None


def _is_answer(receipt: Receipt) -> bool:
    return receipt.role is layout.Role.RESULT and receipt.status == "completed"


def _recorded(held: Held, call: AnyCall) -> bool:
    receipt = held.then.results.get(call.key)
    return receipt is not None and (receipt.kind, receipt.fingerprint) == (call.kind, call.fingerprint)


def _taken_over(records: Records, held: Held, call: AnyCall) -> Draft:
    receipt = held.then.results[call.key]
    source = (held.live.started.execution.source or {})["run"]
    execution = Execution(
        runner=records.runner_id,
        code=held.loaded.code,
        requested_after=call.requested_after,
        finished_at=records.workspace.clock.now(),
        model=receipt.execution.model,
        adopted_from=source,
        provenance=_said_then(receipt, source),
        redactions=receipt.execution.redactions,
    )
    return draft(receipt.model_copy(update={"execution": execution}), _author(receipt), records.workspace.limits)


def _said_then(receipt: Receipt, source: str) -> Provenance | None:
    by = receipt.execution.provenance
    return by.model_copy(update={"adopted_from": source}) if by else None


def _author(receipt: Receipt) -> Author:
    if (by := receipt.execution.provenance) is not None:
        return Author(by.by)
    return Author(f"agent {receipt.request['name']}" if receipt.kind == "agent" else receipt.kind)
