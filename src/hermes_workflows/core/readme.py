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
from .names import run_component
from .receipts import Provenance, Receipt, ReviewReceipt
from .summary import RunSummary
from .usages import told

_SHOWN = 200

# What may be said of an answer, by who gave it.
_GIVEN_BY = {
    "human": "answered by the person",
    "agent": "answered by an agent, not a person:",
    "manual": "answered manually, not a verified person's approval, by",
    "test": "answered by a test, not a person:",
    "policy": "answered by a policy, not a person:",
}
_UNANSWERED = {"expired": "expired without an answer", "withdrawn": "withdrawn by the workflow"}


def render(summary: RunSummary, receipts: Sequence[Receipt]) -> bytes:
    """The README of a run that adds up to `summary`; of its receipts only run.json and the reviews are told."""
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
        "",
        _look_further(run_id),
    ]
    return ("\n".join(lines) + "\n").encode()


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
    if summary.error:
        return [f"- Error {code_span(str(summary.error.get('type')))}: {code_span(str(summary.error.get('message')))}"]
    if summary.status == "completed":
        return [f"- Result {_value(summary.result)}"]
    waiting = summary.waiting_on
    return [f"- Waiting on an answer to {code_span(waiting.key)}: {code_span(waiting.prompt)}"] if waiting else []


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
    return [f"- Review {code_span(receipt.key)}: {_response(receipt)}" for receipt in responses]


def _response(receipt: Receipt) -> str:
    provenance = receipt.execution.provenance
    if provenance is None or receipt.status in _UNANSWERED:
        return _UNANSWERED.get(receipt.status, receipt.status)
    adopted = f", adopted from {code_span(provenance.adopted_from)}" if provenance.adopted_from else ""
    return f"{_value(receipt.output)}, {given_by(provenance)}{adopted}"


def given_by(provenance: Provenance) -> str:
    """`answered manually, not a verified person's approval, by … through …`."""
    return f"{_GIVEN_BY[provenance.kind]} {code_span(provenance.by)} through {code_span(provenance.channel)}"


def _look_further(run_id: str) -> str:
    ref = f"runs/{run_component(run_id)}"
    return f"In the receipts repository: `git log {ref}` and `git diff main {ref}`."
