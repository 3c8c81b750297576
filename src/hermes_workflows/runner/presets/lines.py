"""JSON Lines, as programs print them while they work: one event a line, noise between them passed over."""

from __future__ import annotations

from typing import Any

from ...core.canonical import parse
from ...errors import InvalidInput
from ..candidates import Printed


def events(printed: Printed) -> list[dict[str, Any]]:
    """The objects among the lines that have a `type`."""
    found = (one.value for one in printed.found)
    return [value for value in found if isinstance(value, dict) and isinstance(value.get("type"), str)]


def message_in(error: Any) -> str:
    """What an error says; providers wrap theirs in JSON, and that again in a message."""
    for _ in range(4):
        if isinstance(error, str):
            try:
                error = parse(error.encode("utf-8", "replace"))
            except InvalidInput:
                return str(error)
        if not isinstance(error, dict):
            break
        data = error.get("data")
        inner = data.get("message") if isinstance(data, dict) else None
        error = error.get("error") or error.get("message") or inner or str(error)
    return str(error)


def amount(*values: Any) -> float | None:
    """The sum of money, as far as it is said in numbers; None when it is more than a number can hold."""
    try:
        return sum(float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    except OverflowError:
        return None


def count(*values: Any) -> int:
    """The sum of those that are numbers: a field that another version left out is nothing."""
    return sum(int(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool))
