"""Times on the command line."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..core.timestamps import parse_time
from ..errors import InvalidInput
from ..registry import WorkflowEntry


def deadline_of(text: str | None, entry: WorkflowEntry | None, now: datetime) -> datetime | None:
    """When a run must be over: as `--deadline` says, else the registry. Raises InvalidInput."""
    if text is not None:
        return read_deadline(text, now)
    return None if entry is None or entry.deadline is None else now + timedelta(seconds=entry.deadline)


def read_deadline(text: str, now: datetime) -> datetime:
    """The instant that `--deadline` means: seconds from now, or an ISO time with its zone. Raises InvalidInput."""
    try:
        return now + timedelta(seconds=float(text))
    except OverflowError:
        raise InvalidInput(f"--deadline {text} is beyond the calendar", hint="leave it out") from None
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"--deadline {text!r} is no time", hint="seconds from now, or 2026-11-30T18:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InvalidInput(f"--deadline {text} has no zone", hint=f"write {text}Z for UTC, or {text}+01:00")
    return parse_time(text)
