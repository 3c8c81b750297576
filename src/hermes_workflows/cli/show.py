"""How a run, a review and a workspace's runners look: as JSON documents, and as text for a person.

Light on purpose: the fast `status` imports this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.usages import added, told

if TYPE_CHECKING:
    from ..core.states import OperationalState
    from ..core.summary import OpenReview, RunSummary
    from ..facts import Child
    from ..store.queue_port import ReviewRow, RunnerRow, WorkRow

_LINE = 72


def run_document(summary: RunSummary) -> dict[str, Any]:
    """What callers of `run` have always read; `status` adds to it and changes none of it."""
    return {
        "workflow_id": summary.run_id,
        "status": summary.status,
        "waiting_on": _waiting(summary.waiting_on),
        "result": summary.result,
        "error": summary.error,
    }


def status_document(summary: RunSummary, state: OperationalState, children: Mapping[str, Child]) -> dict[str, Any]:
    return run_document(summary) | {
        "workflow": summary.workflow,
        "state": state.state,
        "label": state.label,
        "reason": state.reason,
        "next_action": state.next_action,
        "started_at": summary.started_at,
        "updated_at": summary.updated_at,
        "finished_at": summary.finished_at,
        "receipts": summary.receipts,
        "calls": dict(summary.calls),
        "usage": dict(summary.usage),
        "usage_by_call": dict(_by_call(summary)),
        "reviews": [_waiting(review) for review in summary.open_reviews.values()],
        "waits": [dict(vars(wait)) for wait in summary.open_waits.values()],
        "children": {key: child._asdict() for key, child in children.items()},
        "late": list(summary.late),
        "parent": summary.parent,
        "cancel_requested": summary.cancel_requested,
        "superseded_by": summary.superseded_by,
        "paused": summary.paused,
        "deadline_at": summary.deadline_at,
    }


def status_text(summary: RunSummary, state: OperationalState, children: Mapping[str, Child]) -> str:
    lines = [f"{summary.run_id}: {state.label}", f"  {state.reason}"]
    if state.next_action:
        lines.append(f"  next: {state.next_action}")
    lines += ["", f"  workflow  {summary.workflow}", f"  started   {summary.started_at}"]
    if summary.finished_at:
        lines.append(f"  ended     {summary.finished_at}")
    calls = ", ".join(f"{count} {status}" for status, count in sorted(summary.calls.items()))
    lines.append(f"  calls     {calls or 'none yet'}")
    if used := told(summary.usage):
        lines.append(f"  usage     {used}")
    if len(by_call := _by_call(summary)) > 1:
        width = max(map(len, by_call))
        lines += [f"            {key.ljust(width)}  {used}" for key, each in by_call.items() if (used := told(each))]
    if summary.deadline_at and not summary.finished_at:
        lines.append(f"  deadline  {summary.deadline_at}")
    lines += [f"  question  {review.key}: {one_line(review.prompt)}" for review in summary.open_reviews.values()]
    lines += [f"  signal    {wait.name}, for {wait.key}" for wait in summary.open_waits.values()]
    lines += [f"  child     {key}: {child.workflow_id}: {child.label or 'open'}" for key, child in children.items()]
    lines += [f"  late      {key}: a result came after it was decided" for key in summary.late]
    if summary.status == "completed":
        lines.append(f"  result    {_indented(summary.result)}")
    if summary.error:
        lines.append(f"  error     {_indented(summary.error)}")
    return "\n".join(lines)


def run_row(summary: RunSummary, state: OperationalState) -> tuple[str, ...]:
    used = told(summary.usage)
    return summary.run_id, state.label, summary.workflow, summary.started_at or "", used, one_line(state.reason, 50)


def workflow_totals(runs: Iterable[RunSummary]) -> list[dict[str, Any]]:
    """What the runs of each workflow add up to, by the workflow's name."""
    totals: dict[str, dict[str, Any]] = {}
    for run in runs:
        total = totals.setdefault(run.workflow, {"workflow": run.workflow, "runs": {}, "usage": {}})
        total["runs"][run.status] = total["runs"].get(run.status, 0) + 1
        total["usage"] = added(total["usage"], run.usage)
    return [totals[name] for name in sorted(totals)]


def total_row(total: Mapping[str, Any]) -> tuple[str, ...]:
    counts = ", ".join(f"{count} {status}" for status, count in sorted(total["runs"].items()))
    return total["workflow"], counts, told(total["usage"])


def _by_call(summary: RunSummary) -> Mapping[str, Mapping[str, float]]:
    # A row that was written before there was this field has none.
    return getattr(summary, "usage_by_call", {})


def review_document(row: ReviewRow) -> dict[str, Any]:
    return {("workflow_id" if name == "run_id" else name): value for name, value in vars(row).items()}


def review_row(row: ReviewRow) -> tuple[str, ...]:
    who = row.assignee or ""
    if row.provenance:
        who = f"{row.provenance.get('by')} ({row.provenance.get('kind')})"
    return row.run_id, row.key, row.status, who, row.requested_at or "", one_line(row.prompt, 50)


def runner_document(row: RunnerRow, healthy: bool) -> dict[str, Any]:
    return vars(row) | {"executing": list(row.executing), "healthy": healthy}


def work_document(row: WorkRow) -> dict[str, Any]:
    return {
        "workflow_id": row.work.run_id,
        "kind": row.work.kind,
        "key": row.work.key,
        "status": row.status,
        "visible_at": row.work.visible_at,
        "runner": row.runner,
        "claims": row.claims,
        "offered_at": row.offered_at,
        "claimed_at": row.claimed_at,
    }


def as_json(document: Any) -> bytes:
    """Compact, keys sorted: equal answers are equal bytes."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_jsonable)
    return text.encode("utf-8", "backslashreplace")


def one_line(text: str, length: int = _LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def pretty(value: Any) -> str:
    """A value as people read it: indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=_shown)


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Names and what stands beside them, aligned."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def _waiting(review: OpenReview | None) -> dict[str, Any] | None:
    return None if review is None else dict(vars(review))


def _indented(value: Any) -> str:
    return pretty(value).replace("\n", "\n            ")


def _jsonable(value: object) -> Any:
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def _shown(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
