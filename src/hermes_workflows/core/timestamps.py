"""Instants as text: UTC, milliseconds, `Z`. They sort as strings and read the same on every machine."""

from __future__ import annotations

from datetime import UTC, datetime


def render_time(moment: datetime) -> str:
    """`2026-11-29T10:00:00.123Z`; truncated, not rounded, so that a rendered time is never in the future."""
    there = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return there.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def parse_time(text: str) -> datetime:
    """The inverse of `render_time`; raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def in_milliseconds(moment: datetime) -> datetime:
    """What will be read back after storing; live and rebuilt bodies must see the same instant."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
