"""The README of a run: ten lines for somebody who opens its folder in a forge.

All text of users and agents goes through `code_span`, where Markdown, HTML, mentions and closing keywords are inert.
An answer is called a person's approval only when its provenance says `human`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from . import layout
from .artifacts import artifacts_of
from .names import run_component
from .receipts import Provenance, Receipt, ReviewReceipt
from .states import DEADLINE_PASSED, is_deadline
from .summary import RunSummary
from .usages import told

_SHOWN = 200
_MOST = 20
_ARTIFACTS = 50

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


def render(summary: RunSummary, receipts: Sequence[Receipt]) -> bytes:
    """The README of a run that adds up to `summary`; of its receipts only those are needed that it `tells`."""
    run_id = summary.run_id
    lines = [
        f"# Run {code_span(run_id)}: {summary.status}",
        "",
        f"- Workflow {code_span(summary.workflow)}, started {summary.started_at or 'at an unknown time'}"
        + (f", ended {summary.finished_at}" if summary.finished_at else ""),
        f"- Input {_value(_input(receipts))}",
        *_end(summary),
        f"- {_work(summary)}",
        *_usage(summary),
        *_reviews(receipts),
        *_signals(receipts),
        *_decisions(receipts),
        *_artifacts(receipts),
        "",
        _look_further(run_id),
    ]
    return ("\n".join(lines) + "\n").encode()


def tells(receipt: Receipt) -> bool:
    """Whether the README says something of a receipt that its summary does not."""
    return receipt.kind in ("run", "review", "signal", "control", "artifact") or _is_late(receipt)


def code_span(text: str, limit: int = _SHOWN) -> str:
    """`text` as one line of inert Markdown, cut to `limit` characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split()) or " "
    line = line if len(line) <= limit else f"{line[: limit - 1]}…"
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _value(value: Any) -> str:
    return code_span(json.dumps(value, ensure_ascii=False, sort_keys=True, default=_bytes))


def _bytes(value: object) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)


def _input(receipts: Sequence[Receipt]) -> Any:
    return next((receipt.request.input for receipt in receipts if receipt.path == layout.RUN), None)


def _end(summary: RunSummary) -> list[str]:
    lines = [f"- Cancelled: {_cancelled(summary)}"] if summary.status == "cancelled" else []
    if summary.error:
        kind, message = code_span(str(summary.error.get("type"))), code_span(str(summary.error.get("message")))
        return [*lines, f"- Error {kind}: {message}"]
    if summary.status == "completed":
        return [f"- Result {_value(summary.result)}"]
    waiting = summary.waiting_on
    return [f"- Waiting on an answer to {code_span(waiting.key)}: {code_span(waiting.prompt)}"] if waiting else lines


def _cancelled(summary: RunSummary) -> str:
    reason, by = summary.cancel_requested, summary.cancel_by
    if reason is None:
        return "no receipt says why"
    if is_deadline(reason, by):
        return DEADLINE_PASSED
    return code_span(reason) + (f", {_DECIDED_BY[by['kind']]} {code_span(by['by'])}" if by else "")


def _work(summary: RunSummary) -> str:
    calls = ", ".join(f"{count} {status}" for status, count in sorted(summary.calls.items())) or "none"
    used = told(summary.usage)
    return f"Calls: {calls}; {used}" if used else f"Calls: {calls}"


def _usage(summary: RunSummary) -> list[str]:
    """Call by call, where the sum above does not say it already."""
    if len(summary.usage_by_call) < 2:
        return []
    return [f"  - {code_span(key)}: {used}" for key, each in summary.usage_by_call.items() if (used := told(each))]


def _reviews(receipts: Sequence[Receipt]) -> list[str]:
    responses = [
        receipt for receipt in receipts if isinstance(receipt, ReviewReceipt) and receipt.status != "requested"
    ]
    kept = {each["key"] for receipt in receipts if _is(receipt, "accept") for each in receipt.request["accepted"]}
    return [
        f"- Review {code_span(receipt.key)}: {_response(receipt)}"
        + (", to the question as it was then; kept for another one" if receipt.key in kept else "")
        for receipt in responses
    ]


def _signals(receipts: Sequence[Receipt]) -> list[str]:
    came = [receipt for receipt in receipts if receipt.kind == "signal" and receipt.status == "received"]
    lines = [f"- Signal {code_span(each.key)}: {_value(each.output)}, {_sender(each)}" for each in came[-_MOST:]]
    return [f"- {len(came) - _MOST:,} earlier signals", *lines] if len(came) > _MOST else lines


def _sender(receipt: Receipt) -> str:
    by = receipt.execution.provenance
    return f"{_SENT_BY[by.kind]} {code_span(by.by)} through {code_span(by.channel)}" if by else "sent by nobody knows"


def _response(receipt: Receipt) -> str:
    provenance = receipt.execution.provenance
    if receipt.status == "expired" and provenance is not None:
        return f"expired; default {_value(receipt.output)} by rule"
    if provenance is None or receipt.status in _UNANSWERED:
        return _UNANSWERED.get(receipt.status, receipt.status)
    adopted = f", adopted from {code_span(provenance.adopted_from)}" if provenance.adopted_from else ""
    return f"{_value(receipt.output)}, {given_by(provenance)}{adopted}"


def given_by(provenance: Provenance) -> str:
    """`answered manually, not a verified person's approval, by … through …`."""
    return f"{_GIVEN_BY[provenance.kind]} {code_span(provenance.by)} through {code_span(provenance.channel)}"


def _decisions(receipts: Sequence[Receipt]) -> list[str]:
    """What people have decided about the run, and what came after they had."""
    lines = []
    for receipt in receipts:
        if _is(receipt, "resolve"):
            became = receipt.request["decision"].replace("-", " ")
            lines.append(f"- Step {code_span(receipt.key)} was interrupted and {became}, {_said(receipt)}")
        elif _is(receipt, "accept"):
            kept = ", ".join(f"{each['kind']} {code_span(each['key'])}" for each in receipt.request["accepted"])
            lines.append(f"- Recorded answers kept for changed requests: {kept}, {_said(receipt)}")
        elif _is_late(receipt):
            lines.append(f"- A result of {code_span(receipt.key)} came after the decision: {code_span(receipt.path)}")
    return lines


def _said(receipt: Receipt) -> str:
    by, why = receipt.execution.provenance, receipt.request.get("why")
    who = f"{_DECIDED_BY[by.kind]} {code_span(by.by)} through {code_span(by.channel)}" if by else "said somebody"
    return f"{who}: {code_span(why)}" if why else who


def _artifacts(receipts: Sequence[Receipt]) -> list[str]:
    kept = artifacts_of(receipts)
    lines = [
        f"- Artifact {code_span(each.name)}: {each.size:,} bytes, {code_span(each.media_type)}, "
        # Nothing but hex digits comes from outside here.
        f"[{each.sha256[:12]}]({layout.artifact(each.sha256)})"
        for each in kept[:_ARTIFACTS]
    ]
    return [*lines, f"- and {len(kept) - _ARTIFACTS} more artifacts"] if len(kept) > _ARTIFACTS else lines


def _is(receipt: Receipt, decision: str) -> bool:
    return receipt.kind == "control" and receipt.status == decision


def _is_late(receipt: Receipt) -> bool:
    place = layout.place(receipt.path)
    return place is not None and place.family == "late"


def _look_further(run_id: str) -> str:
    ref = f"runs/{run_component(run_id)}"
    return f"In the receipts repository: `git log {ref}` and `git diff main {ref}`."
