"""What a run's README says of people: answers, signals, decisions of operators, each with its provenance.

An answer is called a person's approval only when its provenance says `human`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import layout
from .adoption import source_of
from .markdown import code_span
from .receipts import Provenance, Receipt, ReviewReceipt
from .states import DEADLINE_PASSED, is_deadline
from .summary import RunSummary

_MOST = 20

# What may be said of an answer, by who gave it.
_GIVEN_BY = {
    "human": "answered by the person",
    "agent": "answered by an agent, not a person:",
    "manual": "answered manually, not a verified person's approval, by",
    "test": "answered by a test, not a person:",
    "policy": "answered by a policy, not a person:",
}
# The same of a signal.
_SENT_BY = {
    "human": "sent by the person",
    "agent": "sent by an agent, not a person:",
    "manual": "sent manually, not verified as a person, by",
    "test": "sent by a test, not a person:",
    "policy": "sent by a policy, not a person:",
}
# And of what an operator has decided.
_DECIDED_BY = {
    "human": "said the person",
    "agent": "said an agent, not a person:",
    "manual": "said manually, not verified as a person:",
    "test": "said a test, not a person:",
    "policy": "said a policy, not a person:",
}
_UNANSWERED = {"expired": "expired without an answer", "withdrawn": "withdrawn by the workflow"}


def reviews(receipts: Sequence[Receipt]) -> list[str]:
    responses = [
        receipt for receipt in receipts if isinstance(receipt, ReviewReceipt) and receipt.status != "requested"
    ]
    kept = {each["key"] for receipt in receipts if _is(receipt, "accept") for each in receipt.request["accepted"]}
    return [
        f"- Review {code_span(receipt.key)}: {response(receipt)}"
        + (", to the question as it was then; kept for another one" if receipt.key in kept else "")
        for receipt in responses
    ]


def started_from(receipts: Sequence[Receipt]) -> list[str]:
    """Of a fork or a reproduction, the run it began with, and what was taken over from it."""
    source = source_of(receipts)
    if source is None:
        return []
    run_id, commit = code_span(source.get("run", "")), code_span(source.get("commit", "")[:12])
    if source.get("how") == "reproduce":
        reused = source.get("reuse", "").replace(",", ", ")
        return [f"- Reproduces {run_id} at commit {commit}" + (f", reusing its {code_span(reused)}" if reused else "")]
    what = f"receipts up to seq {code_span(source['seq'])}" if "seq" in source else "nothing"
    by_hand = f", and results given by hand: {code_span(source['set'])}" if "set" in source else ""
    return [f"- Forked from {run_id} at commit {commit}, with {what} adopted{by_hand}"]


def signals(receipts: Sequence[Receipt]) -> list[str]:
    came = [receipt for receipt in receipts if receipt.kind == "signal" and receipt.status == "received"]
    lines = [f"- Signal {code_span(each.key)}: {as_value(each.output)}, {_sender(each)}" for each in came[-_MOST:]]
    return [f"- {len(came) - _MOST:,} earlier signals", *lines] if len(came) > _MOST else lines


def _sender(receipt: Receipt) -> str:
    by = receipt.execution.provenance
    return f"{_SENT_BY[by.kind]} {code_span(by.by)} through {code_span(by.channel)}" if by else "sent by nobody knows"


def response(receipt: Receipt) -> str:
    provenance = receipt.execution.provenance
    if receipt.status == "expired" and provenance is not None:
        return f"expired; default {as_value(receipt.output)} by rule"
    if provenance is None or receipt.status in _UNANSWERED:
        return _UNANSWERED.get(receipt.status, receipt.status)
    adopted = f", adopted from {code_span(provenance.adopted_from)}" if provenance.adopted_from else ""
    return f"{as_value(receipt.output)}, {given_by(provenance)}{adopted}"


def given_by(provenance: Provenance) -> str:
    """`answered manually, not a verified person's approval, by … through …`."""
    told = f"{_GIVEN_BY[provenance.kind]} {code_span(provenance.by)} through {code_span(provenance.channel)}"
    origin = provenance.origin or {}
    where = origin.get("url") or origin.get("commit")
    return f"{told}, {code_span(where)}" if where else told


def decisions(receipts: Sequence[Receipt]) -> list[str]:
    """What people have decided about the run, and what came after they had."""
    lines = []
    for receipt in receipts:
        if _is(receipt, "resolve"):
            became = receipt.request["decision"].replace("-", " ")
            lines.append(f"- Step {code_span(receipt.key)} was interrupted and {became}, {_said(receipt)}")
        elif _is(receipt, "accept"):
            kept = ", ".join(f"{each['kind']} {code_span(each['key'])}" for each in receipt.request["accepted"])
            lines.append(f"- Recorded answers kept for changed requests: {kept}, {_said(receipt)}")
        elif is_late(receipt):
            lines.append(f"- A result of {code_span(receipt.key)} came after the decision: {code_span(receipt.path)}")
    return lines


def _said(receipt: Receipt) -> str:
    by, why = receipt.execution.provenance, receipt.request.get("why")
    who = f"{_DECIDED_BY[by.kind]} {code_span(by.by)} through {code_span(by.channel)}" if by else "said somebody"
    return f"{who}: {code_span(why)}" if why else who


def why_cancelled(summary: RunSummary) -> str:
    reason, by = summary.cancel_requested, summary.cancel_by
    if reason is None:
        return "no receipt says why"
    if is_deadline(reason, by):
        return DEADLINE_PASSED
    who = f", {_DECIDED_BY[by['kind']]} {code_span(by['by'])}" if by else ""
    instead = summary.superseded_by
    return code_span(reason) + who + (f"; {code_span(instead)} takes its place" if instead else "")


def _is(receipt: Receipt, decision: str) -> bool:
    return receipt.kind == "control" and receipt.status == decision


def is_late(receipt: Receipt) -> bool:
    place = layout.place(receipt.path)
    return place is not None and place.family == "late"


def as_value(value: Any) -> str:
    return code_span(json.dumps(value, ensure_ascii=False, sort_keys=True, default=_bytes))


def _bytes(value: object) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
