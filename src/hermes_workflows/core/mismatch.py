"""Why a value does not fit its declared type: pydantic's errors as places in the value and short reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pydantic

from ..errors import InvalidInput
from .canonical import pointer
from .encoding import Plain

_MAX_SHOWN = 60
_MAX_IN_MESSAGE = 5
# Reasons: that are looked at, that are listed, and how long they are together.
_MAX_READ, _MAX_REASONS, _MAX_CHARACTERS = 10_000, 200, 1 << 16
_MISSING = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument", "no_such_attribute"})


class ValueMismatch(InvalidInput):
    """A value that does not fit its declared type.

    `errors` lists the reasons as (JSON pointer of the field, reason).
    """

    def __init__(self, type_name: str, errors: Iterable[tuple[str, str]], *, hint: str | None = None) -> None:
        self.type_name = type_name
        self.errors = list(errors)
        said = [f"{path} {reason}".strip() for path, reason in self.errors[:_MAX_IN_MESSAGE]]
        if len(self.errors) > _MAX_IN_MESSAGE:
            said.append(f"and {len(self.errors) - _MAX_IN_MESSAGE} more")
        super().__init__(f"does not fit {type_name}: {'; '.join(said)}", hint=hint)


def reasons_of(error: pydantic.ValidationError, value: Plain) -> Iterator[tuple[str, str]]:
    """Each error once, as (JSON pointer, reason)."""
    if (count := error.error_count()) > _MAX_READ:
        # Each of them is a kilobyte, and there is one for each item of a list that is none of what was asked for.
        yield "", f"does not fit in {count:,} places"
        return
    yield from few(_reason(detail, value) for detail in error.errors(include_url=False, include_context=False))


def few(reasons: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each reason once, and not more than somebody reads, or a receipt holds."""
    left = _MAX_CHARACTERS
    for number, (path, reason) in enumerate(dict.fromkeys(reasons)):
        left -= len(path) + len(reason)
        if number == _MAX_REASONS or left < 0:
            yield "", "and there are more reasons than are listed"
            return
        yield path, reason


def shown(value: object) -> str:
    """A value in a message: enough to recognise it, never a page of it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _reason(detail: Any, value: Plain) -> tuple[str, str]:
    kind, message = detail["type"], detail["msg"]
    parts, labels = _place(detail["loc"], value, missing=kind in _MISSING)
    if kind in _MISSING:
        said = "is missing"
    elif kind in _UNKNOWN:
        said = "is unknown"
    elif kind in ("value_error", "assertion_error"):
        said = f"is refused: {message.split(', ', 1)[-1]}"
    else:
        said = f"{message.removeprefix('Input ')}, not {shown(detail['input'])}"
    as_what = f" (as {' '.join(labels)})" if labels else ""
    return pointer(parts), " ".join(said.split()) + as_what


def _place(location: tuple[int | str, ...], value: Any, *, missing: bool) -> tuple[list[int | str], list[str]]:
    """Pydantic mixes the choices of unions into the path; what does not lie in the value is such a label."""
    parts: list[int | str] = []
    labels: list[str] = []
    for index, step in enumerate(location):
        if _leads_on(value, step):
            value = value[step]
        elif not (missing and index == len(location) - 1):
            if isinstance(step, str) and "[" not in step:
                labels.append(step)
            continue
        parts.append(step)
    return parts, labels


def _leads_on(value: Any, step: int | str) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)
