"""What a run's receipts add up to: the status index is this fold, kept in SQLite.

`apply` takes receipts in seq order, one at a time or all at once: a rebuilt index equals a living one because
both are made here. No pydantic in this module's output: `to_json`/`from_json` are what the fast `status` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from . import layout
from .timestamps import render_time

if TYPE_CHECKING:
    from .receipts import Receipt

Status = Literal["running", "waiting", "completed", "failed", "cancelled"]


@dataclass(frozen=True)
class OpenReview:
    """A question nobody has answered; what `waiting_on` shows."""

    key: str
    prompt: str
    assignee: str | None
    requested_at: str | None
    expires_at: str | None
    returns: Mapping[str, Any]


@dataclass(frozen=True)
class RunSummary:
    run_id: str
    workflow: str = ""
    home: str = ""
    status: Status = "running"
    result: Any = None
    error: Any = None
    started_at: str | None = None
    updated_at: str | None = None
    finished_at: str | None = None
    seq: int = -1
    receipts: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    open_reviews: Mapping[str, OpenReview] = field(default_factory=dict)
    open_timers: Mapping[str, str] = field(default_factory=dict)
    open_children: Mapping[str, str] = field(default_factory=dict)
    open_intents: tuple[str, ...] = ()
    cancel_requested: str | None = None
    parent: Mapping[str, str] | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    @property
    def waiting_on(self) -> OpenReview | None:
        """The oldest open question; a run waits for people only, never for work or time."""
        return next(iter(self.open_reviews.values()), None) if not self.ended else None

    def apply(self, receipts: Iterable[Receipt]) -> RunSummary:
        summary = self
        for receipt in receipts:
            summary = _apply(summary, receipt)
        return summary

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSummary:
        reviews = {key: OpenReview(**value) for key, value in data["open_reviews"].items()}
        return cls(**{**data, "open_reviews": reviews, "open_intents": tuple(data["open_intents"])})


def summarize(run_id: str, receipts: Iterable[Receipt]) -> RunSummary:
    return RunSummary(run_id).apply(receipts)


def _apply(summary: RunSummary, receipt: Receipt) -> RunSummary:
    place = layout.place(receipt.path)
    assert place is not None
    moment = receipt.execution.finished_at or receipt.execution.started_at
    counted = replace(
        summary,
        seq=receipt.seq,
        receipts=summary.receipts + 1,
        updated_at=max(filter(None, (summary.updated_at, render_time(moment) if moment else None)), default=None),
        usage=_add_usage(summary.usage, receipt),
    )
    handler = _HANDLERS.get(place.family)
    return _with_status(handler(counted, receipt)) if handler else counted


def _add_usage(usage: Mapping[str, float], receipt: Receipt) -> Mapping[str, float]:
    used = receipt.execution.usage
    if used is None:
        return usage
    return {name: round(usage.get(name, 0) + value, 10) for name, value in used.model_dump().items()}


def _with_status(summary: RunSummary) -> RunSummary:
    if summary.ended:
        return summary
    return replace(summary, status="waiting" if summary.open_reviews else "running")


def _run(summary: RunSummary, receipt: Receipt) -> RunSummary:
    execution = receipt.execution
    started = render_time(execution.started_at) if execution.started_at else None
    return replace(
        summary,
        workflow=receipt.request.workflow,
        home=execution.workspace or "",
        started_at=started,
        parent=execution.parent,
    )


def _end(summary: RunSummary, receipt: Receipt) -> RunSummary:
    finished = receipt.execution.finished_at
    return replace(
        summary,
        status=receipt.status,  # type: ignore[arg-type]  # the model allows exactly these three
        result=receipt.output,
        error=receipt.error.model_dump(exclude_none=True) if receipt.error else None,
        finished_at=render_time(finished) if finished else None,
        open_reviews={},
        open_timers={},
        open_children={},
        open_intents=(),
    )


def _step(summary: RunSummary, receipt: Receipt) -> RunSummary:
    calls = {**summary.calls, receipt.status: summary.calls.get(receipt.status, 0) + 1}
    return replace(
        summary,
        calls=calls,
        open_children=_without(summary.open_children, receipt.key),
        open_intents=tuple(key for key in summary.open_intents if key != receipt.key),
    )


def _start(summary: RunSummary, receipt: Receipt) -> RunSummary:
    if receipt.kind == "child":
        return replace(summary, open_children={**summary.open_children, receipt.key: str(receipt.output)})
    return replace(summary, open_intents=(*summary.open_intents, receipt.key))


def _request(summary: RunSummary, receipt: Receipt) -> RunSummary:
    execution, request = receipt.execution, receipt.request
    review = OpenReview(
        key=receipt.key,
        prompt=request.prompt,
        assignee=request.assignee,
        requested_at=render_time(execution.started_at) if execution.started_at else None,
        expires_at=render_time(execution.expires_at) if execution.expires_at else None,
        returns=request.returns,
    )
    return replace(summary, open_reviews={**summary.open_reviews, receipt.key: review})


def _response(summary: RunSummary, receipt: Receipt) -> RunSummary:
    return replace(summary, open_reviews=_without(summary.open_reviews, receipt.key))


def _timer_start(summary: RunSummary, receipt: Receipt) -> RunSummary:
    due = receipt.execution.due_at
    assert due is not None
    return replace(summary, open_timers={**summary.open_timers, receipt.key: render_time(due)})


def _timer(summary: RunSummary, receipt: Receipt) -> RunSummary:
    return replace(summary, open_timers=_without(summary.open_timers, receipt.key))


def _cancel(summary: RunSummary, receipt: Receipt) -> RunSummary:
    reason = (receipt.request or {}).get("reason") or "no reason given"
    return replace(summary, cancel_requested=summary.cancel_requested or reason)


def _without(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != key} if key in values else values


_HANDLERS = {
    "run": _run,
    "end": _end,
    "step": _step,
    "start": _start,
    "request": _request,
    "response": _response,
    "timer-start": _timer_start,
    "timer": _timer,
    "cancel": _cancel,
}
