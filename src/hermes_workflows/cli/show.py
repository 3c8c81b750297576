"""How a run, a review and a workspace's runners look: as JSON documents, and as text for a person.

Light on purpose: the fast `status` imports this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.usages import added, told
from .seen import few, mark_document, pending_document, pending_line
from .writing import hanging, one_line, pretty

if TYPE_CHECKING:
    from ..core.summary import Event, OpenReview, RunSummary
    from ..facts import Child
    from ..store.queue_port import ReviewRow
    from .seen import Shown

# Lines of a result that are shown beside the rest of a screen.
_RESULT = 20


def run_document(summary: RunSummary) -> dict[str, Any]:
    """What callers of `run` have always read; `status` adds to it and changes none of it."""
    return {
        "workflow_id": summary.run_id,
        "status": summary.status,
        "waiting_on": _waiting(summary.waiting_on),
        "result": summary.result,
        "error": summary.error,
    }


def status_document(shown: Shown) -> dict[str, Any]:
    summary, state = shown.summary, shown.state
    return run_document(summary) | {
        "workflow": summary.workflow,
        "state": state.state,
        "label": state.label,
        "reason": state.reason,
        "next_action": state.next_action,
        "started_at": summary.started_at,
        "updated_at": summary.updated_at,
        "finished_at": summary.finished_at,
        "failed_at": shown.failed_at,
        "receipts": summary.receipts,
        "calls": dict(summary.calls),
        "pending_commands": [pending_document(each) for each in shown.pending],
        "recent_events": [event_document(event) for event in summary.recent],
        "stuck": [mark_document(mark) for mark in shown.marks],
        "usage": dict(summary.usage),
        "usage_by_call": dict(summary.usage_by_call),
        "reviews": [_waiting(review) for review in summary.open_reviews.values()],
        "waits": [dict(vars(wait)) for wait in summary.open_waits.values()],
        "children": {key: child._asdict() for key, child in shown.children.items()},
        "late": list(summary.late),
        "parent": summary.parent,
        "cancel_requested": summary.cancel_requested,
        "superseded_by": summary.superseded_by,
        "paused": summary.paused,
        "deadline_at": summary.deadline_at,
    }


def event_document(event: Event) -> dict[str, Any]:
    return dict(vars(event))


def status_text(shown: Shown) -> str:
    """One screen: why it is where it is, what to type, and what a person would ask next."""
    summary, state = shown.summary, shown.state
    lines = [f"{summary.run_id}: {state.label}", f"  {hanging(state.reason)}"]
    if state.next_action:
        lines.append(f"  next: {hanging(state.next_action)}")
    lines += ["", *_facts(summary)]
    lines += few("pending", shown.pending, pending_line)
    lines += few("stuck", shown.marks[1:], lambda mark: f"{mark.kind}: {one_line(mark.reason)}")
    lines += few("question", list(summary.open_reviews.values()), _question)
    lines += few("signal", list(summary.open_waits.values()), lambda wait: f"{one_line(wait.name)}, for {wait.key}")
    lines += few("child", list(shown.children.items()), _child)
    lines += few("late", summary.late, lambda key: f"{key}: a result came after it was decided")
    if shown.failed_at:
        lines.append(f"  at        {one_line(shown.failed_at)}")
    if summary.status == "completed":
        lines.append(f"  result    {_indented(summary.result)}")
    if summary.error:
        lines.append(f"  error     {_indented(summary.error)}")
    return "\n".join(lines)


def _facts(summary: RunSummary) -> list[str]:
    lines = [f"  workflow  {one_line(summary.workflow)}", f"  started   {summary.started_at}"]
    if summary.finished_at:
        lines.append(f"  ended     {summary.finished_at}")
    if summary.superseded_by:
        lines.append(f"  successor {one_line(summary.superseded_by)}")
    calls = ", ".join(f"{count} {status}" for status, count in sorted(summary.calls.items()))
    lines.append(f"  calls     {calls or ('none' if summary.finished_at else 'none yet')}")
    if used := told(summary.usage):
        lines.append(f"  usage     {used}")
    by_call = {key: used for key, each in summary.usage_by_call.items() if (used := told(each))}
    if len(by_call) > 1:
        width = max(map(len, by_call))
        lines += few("", list(by_call.items()), lambda call: f"{call[0].ljust(width)}  {call[1]}")
    if summary.cancel_requested and not summary.finished_at:
        lines.append(f"  cancel    asked for: {one_line(summary.cancel_requested)}")
    if summary.deadline_at and not summary.finished_at:
        lines.append(f"  deadline  {summary.deadline_at}")
    return lines


def _question(review: OpenReview) -> str:
    to = f", to {one_line(review.assignee)}" if review.assignee else ""
    until = f", until {review.expires_at}" if review.expires_at else ""
    return f"{review.key}{to}{until}: {one_line(review.prompt)}"


def _child(named: tuple[str, Child]) -> str:
    key, child = named
    return f"{key}: {child.workflow_id}: {child.label or 'open'}"


def event_line(event: Event) -> str:
    what = f"{event.kind} {event.key}".strip()
    return f"{event.at or ''}  {what}: {event.status}" + (f": {one_line(event.error)}" if event.error else "")


def run_row(shown: Shown) -> tuple[str, ...]:
    summary, state = shown.summary, shown.state
    used, why = told(summary.usage), one_line(state.reason, 50)
    return summary.run_id, state.label, summary.workflow, summary.started_at or "", used, why


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


def review_document(row: ReviewRow) -> dict[str, Any]:
    return {("workflow_id" if name == "run_id" else name): value for name, value in vars(row).items()}


def review_row(row: ReviewRow) -> tuple[str, ...]:
    who = row.assignee or ""
    if row.provenance:
        who = f"{row.provenance.get('by')} ({row.provenance.get('kind')})"
    return row.run_id, row.key, row.status, who, row.requested_at or "", one_line(row.prompt, 50)


def _waiting(review: OpenReview | None) -> dict[str, Any] | None:
    return None if review is None else dict(vars(review))


def _indented(value: Any) -> str:
    lines = pretty(value).split("\n")
    if len(lines) > _RESULT:
        lines = [*lines[:_RESULT], f"… {len(lines) - _RESULT} more lines: --json, or hermes-workflows show"]
    return "\n".join(lines).replace("\n", "\n            ")
