"""The end of a run as its receipt says it, so that a recorded one and one that was decided again can be compared."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ..core.live import End
from ..core.receipts import Failure, Receipt
from .drafts import Stamp, run_ended

_MAX_LINE = 300
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def was_forced(error: Failure | None) -> bool:
    """Whether an end was the runner's doing: after a time, or for a stuck run, of which receipts know nothing."""
    return error is not None and error.type in ("CleanupCutOff", "CleanupSkipped")


def as_recorded(end: End) -> Receipt:
    """What a runner would write: a result that cannot be stored is another end than the body had in mind."""
    return run_ended(end, None, _ANY_TIME, Stamp("", "")).receipt


def text_of(end: End | None) -> str | None:
    """How a run ended, as its receipt says it."""
    return None if end is None else recorded_text(as_recorded(end))


def recorded_text(ended: Receipt) -> str:
    """The same of a receipt; equal for equal ends."""
    error = ended.error
    return f"{ended.status} with {f'{error.type}: {error.message}' if error else _json(ended.output)}"


def ends_apart(before: str | None, again: str | None) -> str:
    """Two ends of a run that differ, or an end where there was none."""
    return f"it {_ended(before)} before and {_ended(again)} now"


def other_end(ended: Receipt | None, end: End | None, waits: str) -> str | None:
    """In words, how a run that was decided again does not end as it `ended`; None when it does.

    `waits` is what it waits for where its receipts end.
    """
    if ended is None or was_forced(ended.error):
        return None
    before, now = recorded_text(ended), text_of(end)
    if before == now:
        return None
    return ends_apart(before, now) if now else f"it {ended.status} then, and now waits for {waits}"


def one_line(text: str) -> str:
    """`text` on one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…"


def _ended(end: str | None) -> str:
    return f"ended as {one_line(end)}" if end else "went on"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
