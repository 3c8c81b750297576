"""How the values of the queue port look as SQLite rows; used by the queue and by the fast reader alike.

Light on purpose: the fast `status` imports this, so neither pydantic nor dulwich may come in.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from sqlite3 import Row
from typing import Any, cast

from ..core.summary import RunSummary
from .database import DatabaseGone
from .queue_port import Indexed, Kind, ReviewRow, RunnerRow, Stuck, Work, WorkRow

# No JSON document starts with this, so it can say that bytes were escaped without touching the common case.
_ESCAPED = "$"

# The status of a review nobody has answered; the others are those of its response.
OPEN = "open"


def dump(value: Any) -> str:
    """JSON text of decoded receipt values, which may hold bytes and integers of any size."""
    try:
        return json.dumps(value, separators=(",", ":"), default=_as_dict)
    except _HasBytes:
        return _ESCAPED + json.dumps(_escape(value), separators=(",", ":"), default=_as_dict)


def load(text: str) -> Any:
    """The inverse of `dump`; raises DatabaseGone for what `dump` did not write: damage that SQLite cannot see."""
    try:
        return _unescape(json.loads(text[1:])) if text.startswith(_ESCAPED) else json.loads(text)
    except ValueError as error:
        raise DatabaseGone(f"a damaged row: {error}") from None


class _HasBytes(TypeError):
    pass


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        raise _HasBytes
    raise TypeError(f"{type(value).__name__} is no value of a receipt")


def _escape(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_ESCAPED: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {_ESCAPED + name if name.startswith(_ESCAPED) else name: _escape(part) for name, part in value.items()}
    return [_escape(part) for part in value] if isinstance(value, list | tuple) else value


def _unescape(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ESCAPED}:
            return base64.b64decode(value[_ESCAPED])
        return {name[1:] if name.startswith(_ESCAPED) else name: _unescape(part) for name, part in value.items()}
    return [_unescape(part) for part in value] if isinstance(value, list) else value


def run_values(indexed: Indexed) -> dict[str, Any]:
    summary = indexed.summary
    # `asdict` copies every value deeply; a shallow look is enough to write it down.
    fields = {**vars(summary), "open_reviews": {key: vars(review) for key, review in summary.open_reviews.items()}}
    return {
        "run_id": summary.run_id,
        "status": summary.status,
        "started_at": summary.started_at or "",
        "seq": summary.seq,
        "tip": indexed.tip,
        "folder": indexed.folder,
        "sealed": indexed.sealed,
        "summary": dump(fields),
    }


def indexed_of(row: Row) -> Indexed:
    summary = RunSummary.from_json(load(row["summary"]))
    return Indexed(summary, row["tip"], row["folder"], bool(row["sealed"]))


def review_values(review: ReviewRow) -> dict[str, Any]:
    return {
        "run_id": review.run_id,
        "key": review.key,
        "status": review.status,
        "requested_at": review.requested_at or "",
        "review": dump(vars(review)),
    }


def review_of(row: Row) -> ReviewRow:
    return ReviewRow(**load(row["review"]))


def merged(old: ReviewRow | None, new: ReviewRow) -> ReviewRow:
    """What is known about a review after `new`, in whichever order its request and its response are heard of."""
    if old is None or (old.status, new.status) == (OPEN, OPEN):
        return new
    response, question = (old, new) if new.status == OPEN else (new, old)
    return replace(
        response,
        prompt=response.prompt or question.prompt,
        assignee=response.assignee or question.assignee,
        requested_at=response.requested_at or question.requested_at,
        expires_at=response.expires_at or question.expires_at,
    )


def withdrawn(review: ReviewRow) -> ReviewRow:
    """A question that its run's end left open: nobody may answer it any more."""
    return replace(review, status="withdrawn")


def stuck_of(row: Row) -> Stuck:
    return Stuck(**dict(row))


def runner_values(runner: RunnerRow) -> dict[str, Any]:
    return {**vars(runner), "executing": dump(list(runner.executing))}


def runner_of(row: Row) -> RunnerRow:
    return RunnerRow(**{**dict(row), "executing": tuple(load(row["executing"]))})


def work_of(row: Row) -> Work:
    return Work(row["run_id"], cast(Kind, row["kind"]), row["key"], row["fingerprint"], row["visible_at"])


def work_row_of(row: Row, *, expired: bool) -> WorkRow:
    """`expired`: the holder's time is over, or its process is gone, and nobody else has claimed the row yet."""
    if row["withdrawn"]:
        status = "withdrawn"
    elif row["token"] is None:
        status = "queued"
    else:
        status = "expired" if expired else "leased"
    return WorkRow(
        work=work_of(row),
        status=cast(Any, status),
        runner=row["runner"],
        claims=row["claims"],
        offered_at=row["offered_at"],
        claimed_at=row["claimed_at"],
    )
