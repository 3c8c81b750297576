"""Instants as text: UTC, milliseconds, `Z`. They sort as strings and read the same on every machine."""

from __future__ import annotations

from datetime import UTC, datetime

_UTC = "+00:00"


def render_time(moment: datetime) -> str:
    """`2026-11-29T10:00:00.123Z`; truncated, not rounded, so that a rendered time is never in the future."""
    text = moment.isoformat(timespec="milliseconds")
    if not text.endswith(_UTC):
        # What receipts hold is in UTC mostly, under several classes' names; moving it there costs more than all else.
        text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix(_UTC) + "Z"


def parse_time(text: str) -> datetime:
    """The inverse of `render_time`; raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def in_milliseconds(moment: datetime) -> datetime:
    """What will be read back after storing; live and rebuilt bodies must see the same instant."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
