"""What a run's receipts add up to: the status index is this fold, kept in SQLite.

`apply` takes receipts in seq order, one at a time or all at once: a rebuilt index equals a living one because
both are made here. No pydantic in this module's output: `to_json`/`from_json` are what the fast `status` reads.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

from . import layout
from .names import clean_key
from .timestamps import render_time
from .tracebacks import place_in
from .usages import Sum, added, added_for

if TYPE_CHECKING:
    from datetime import datetime

    from .receipts import Receipt, Usage

# How many of its newest receipts a run's row tells by itself, and characters of an error among them.
EVENTS = 10
_ERROR = 200
# Characters of its input that a run's row keeps, to be searched.
_GIVEN = 300
_IN_ONE = json.JSONEncoder(ensure_ascii=False, default=repr)

Status = Literal["running", "waiting", "completed", "failed", "cancelled"]
ENDED: Collection[Status] = ("completed", "failed", "cancelled")


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
class OpenWait:
    """A wait for a signal that has not come; `returns` is what its payload must fit."""

    key: str
    name: str
    since: str | None
    expires_at: str | None
    returns: Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """One receipt in a line: what became of which call, and when."""

    seq: int
    at: str | None
    kind: str
    key: str
    status: str
    error: str | None = None


@dataclass(frozen=True)
class RunSummary:
    """All that is known of a run without reading its receipts again."""

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
    usage: Sum = field(default_factory=dict)
    usage_by_call: Mapping[str, Sum] = field(default_factory=dict)
    open_reviews: Mapping[str, OpenReview] = field(default_factory=dict)
    open_waits: Mapping[str, OpenWait] = field(default_factory=dict)
    open_children: Mapping[str, str] = field(default_factory=dict)
    open_intents: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    cancel_requested: str | None = None
    cancel_by: Mapping[str, str] | None = None
    cancel_now: bool = False
    superseded_by: str | None = None
    paused: Mapping[str, str] | None = None
    deadline_at: str | None = None
    python: str | None = None
    failed_at: str | None = None
    recent: tuple[Event, ...] = ()
    parent: Mapping[str, str] | None = None
    source: Mapping[str, str] | None = None
    given: str = ""

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def waiting_on(self) -> OpenReview | None:
        """The oldest open question; a run waits for people only, never for work or time."""
        return next(iter(self.open_reviews.values()), None) if not self.ended else None

    def apply(self, receipts: Iterable[Receipt]) -> RunSummary:
        """The sum with these receipts, in seq order."""
        # A copy that nobody else has yet takes all of them; a new one for each was half of the time.
        summary = _copy(self)
        facts = vars(summary)
        newest: deque[Receipt] = deque(maxlen=EVENTS)
        latest = receipt = None
        for receipt in receipts:
            _take(summary, facts, receipt)
            newest.append(receipt)
            if (moment := _moment(receipt)) and (latest is None or moment > latest):
                latest = moment
        if receipt is None:
            return summary
        facts["seq"] = receipt.seq
        # What is rendered is cut to milliseconds, and still is in the order of the moments.
        facts["updated_at"] = max(_text(latest) or "", self.updated_at or "") or None
        facts["recent"] = (*self.recent, *map(event_of, newest))[-EVENTS:]
        if not summary.ended:
            facts["status"] = "waiting" if summary.open_reviews else "running"
        return summary

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSummary:
        reviews = {key: OpenReview(**value) for key, value in data["open_reviews"].items()}
        waits = {key: OpenWait(**value) for key, value in data["open_waits"].items()}
        listed = {name: tuple(data[name]) for name in ("open_intents", "late")}
        recent = tuple(Event(**event) for event in data["recent"])
        return cls(**{**data, **listed, "open_reviews": reviews, "open_waits": waits, "recent": recent})


def summarize(run_id: str, receipts: Iterable[Receipt]) -> RunSummary:
    # Copied, which takes a third of the time of making one with all its defaults.
    nothing = _copy(_NOTHING)
    vars(nothing)["run_id"] = run_id
    return nothing.apply(receipts)


_NOTHING = RunSummary("")


def _copy(summary: RunSummary) -> RunSummary:
    """One that nobody else has yet: its attributes, none of which is ever changed, may be exchanged."""
    copied = object.__new__(RunSummary)
    vars(copied).update(vars(summary))
    return copied


def _take(summary: RunSummary, facts: _Changes, receipt: Receipt) -> None:
    """Add one receipt to `facts`, the attributes of `summary`; what only the last one decides is left to `apply`."""
    place = layout.place(receipt.path)
    assert place is not None  # a receipt is only made for a path of the table
    if handler := _HANDLERS.get(place.family):
        facts.update(handler(summary, receipt))
    if (used := receipt.execution.usage) is not None:
        facts.update(_usage(summary, receipt.key, used))
    facts["receipts"] += 1


def event_of(receipt: Receipt) -> Event:
    error = " ".join(receipt.error.message.split())[:_ERROR] if receipt.error else None
    return Event(receipt.seq, _text(_moment(receipt)), receipt.kind, receipt.key, receipt.status, error)


def _moment(receipt: Receipt) -> datetime | None:
    return receipt.execution.finished_at or receipt.execution.started_at


def _text(moment: datetime | None) -> str | None:
    """As `render_time` says it; a row has a dozen of them, and the writer of JSON takes a third of the time."""
    if moment is None:
        return None
    try:
        text = orjson.dumps(moment, option=orjson.OPT_UTC_Z).decode()
    except TypeError:
        text = ""  # it refuses subclasses, such as those of a clock that stands still
    if not text.endswith('Z"'):
        return render_time(moment)
    # Microseconds are left out when there are none.
    return f"{text[1:24]}Z" if text[20] == "." else f"{text[1:20]}.000Z"


def _usage(summary: RunSummary, key: str, usage: Usage) -> _Changes:
    used = usage.model_dump()
    return {"usage": added(summary.usage, used), "usage_by_call": added_for(summary.usage_by_call, key, used)}


# What one receipt of a family changes, besides what every receipt does.

_Changes = dict[str, Any]


def _run(summary: RunSummary, receipt: Receipt) -> _Changes:
    execution = receipt.execution
    return {
        "workflow": receipt.request.workflow,
        "home": execution.workspace or "",
        "started_at": _text(execution.started_at),
        "deadline_at": _text(execution.deadline_at),
        "python": execution.python,
        "parent": execution.parent,
        "source": execution.source,
        "given": _given(receipt.request.input),
    }


def _given(value: Any) -> str:
    """The beginning of an input as text."""
    if value is None:
        return ""
    # All of it, though only its beginning is wanted: piece by piece is Python's own way, and ten times as slow for a
    # usual input. Reading the receipt has cost more than a large one costs here.
    return _IN_ONE.encode(value)[:_GIVEN]


def _end(summary: RunSummary, receipt: Receipt) -> _Changes:
    return {
        "status": receipt.status,
        "result": receipt.output,
        "error": receipt.error.model_dump(exclude_none=True) if receipt.error else None,
        "finished_at": _text(receipt.execution.finished_at),
        "failed_at": place_in((receipt.execution.transcript or {}).get("traceback")),
        "open_reviews": {},
        "open_waits": {},
        "open_children": {},
        "open_intents": (),
    }


def _step(summary: RunSummary, receipt: Receipt) -> _Changes:
    if receipt.kind == "signal":
        return {"open_waits": _ended_wait(summary, receipt)}
    return {
        "calls": {**summary.calls, receipt.status: summary.calls.get(receipt.status, 0) + 1},
        "open_children": _without(summary.open_children, receipt.key),
        "open_intents": _but(summary.open_intents, receipt.key),
    }


def _start(summary: RunSummary, receipt: Receipt) -> _Changes:
    if receipt.kind == "child":
        return {"open_children": {**summary.open_children, receipt.key: receipt.execution.child or ""}}
    if receipt.kind == "signal":
        return {"open_waits": {**summary.open_waits, receipt.key: _wait(receipt)}}
    return {"open_intents": (*summary.open_intents, receipt.key)}


def _wait(receipt: Receipt) -> OpenWait:
    execution, request = receipt.execution, receipt.request
    since, expires_at = _text(execution.started_at), _text(execution.expires_at)
    return OpenWait(receipt.key, request.name, since, expires_at, request.returns)


def _signal(summary: RunSummary, receipt: Receipt) -> _Changes:
    """It ends the oldest wait for its name, as in the body."""
    return {"open_waits": _without(summary.open_waits, _oldest_wait(summary, receipt.key))}


def _ended_wait(summary: RunSummary, receipt: Receipt) -> Mapping[str, Any]:
    # The body had dropped it before a signal came that seemed to end it: that one went to the next wait.
    ended = receipt.key if receipt.key in summary.open_waits else _oldest_wait(summary, receipt.request.name)
    return _without(summary.open_waits, ended)


def _oldest_wait(summary: RunSummary, name: str) -> str:
    wanted = clean_key(name)
    return next((key for key, wait in summary.open_waits.items() if clean_key(wait.name) == wanted), "")


def _attempt(summary: RunSummary, receipt: Receipt) -> _Changes:
    # One that was begun and not ended: an at-most-once step that a person let run once more.
    return {"open_intents": (*summary.open_intents, receipt.key)} if receipt.status == "started" else {}


def _late(summary: RunSummary, receipt: Receipt) -> _Changes:
    return {"late": (*_but(summary.late, receipt.key), receipt.key)}


def _control(summary: RunSummary, receipt: Receipt) -> _Changes:
    if receipt.status in ("pause", "resume"):
        return {"paused": _pause(receipt) if receipt.status == "pause" else None}
    if receipt.status != "resolve":
        return {}
    # Whoever said that it happened has given the result, too, which is a receipt of its own.
    return {"open_intents": _but(summary.open_intents, receipt.request["key"])}


def _pause(receipt: Receipt) -> Mapping[str, str]:
    by = receipt.execution.provenance
    since = _text(receipt.execution.finished_at) or ""
    return {"reason": (receipt.request or {}).get("reason") or "", "by": by.by if by else "", "since": since}


def _but(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    return tuple(each for each in keys if each != key) if key in keys else keys


def _request(summary: RunSummary, receipt: Receipt) -> _Changes:
    execution, request = receipt.execution, receipt.request
    review = OpenReview(
        key=receipt.key,
        prompt=request.prompt,
        assignee=request.assignee,
        requested_at=_text(execution.started_at),
        expires_at=_text(execution.expires_at),
        returns=request.returns,
    )
    return {"open_reviews": {**summary.open_reviews, receipt.key: review}}


def _response(summary: RunSummary, receipt: Receipt) -> _Changes:
    return {"open_reviews": _without(summary.open_reviews, receipt.key)}


def _cancel(summary: RunSummary, receipt: Receipt) -> _Changes:
    # A run that was fetched may have anything there.
    request = receipt.request if isinstance(receipt.request, Mapping) else {}
    by, instead = receipt.execution.provenance, request.get("superseded_by")
    # The first request says why; a later one may want the end at once, or name what has taken the run's place.
    changes = {
        "cancel_now": summary.cancel_now or request.get("now") is True,
        "superseded_by": summary.superseded_by or (instead if isinstance(instead, str) else None),
    }
    if summary.cancel_requested:
        return changes
    unsaid = f"superseded by {changes['superseded_by']}" if changes["superseded_by"] else "no reason given"
    changes["cancel_requested"] = request.get("reason") or unsaid
    # Whoever cancels a paused run wants its end, and its cleanup first.
    return {**changes, "cancel_by": {"kind": by.kind, "by": by.by} if by else None, "paused": None}


def _without(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != key} if key in values else values


_HANDLERS: Mapping[str, Callable[[RunSummary, Receipt], _Changes]] = {
    "run": _run,
    "end": _end,
    "step": _step,
    "start": _start,
    "attempt": _attempt,
    "late": _late,
    "control": _control,
    "request": _request,
    "response": _response,
    "signal": _signal,
    "cancel": _cancel,
}
