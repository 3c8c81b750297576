"""Where two values differ, with the types of JSON: for Python 1, 1.0 and True are one value, for a receipt three."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def first_difference(one: Any, other: Any) -> str | None:
    """The JSON pointer of the first place where two plain values differ; None when they are equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in sorted({*one, *other}):
            if name not in one or name not in other:
                return f"/{escaped(name)}"
            if (below := first_difference(one[name], other[name])) is not None:
                return f"/{escaped(name)}{below}"
        return None
    if _is_list(one) and _is_list(other):
        for place, (left, right) in enumerate(zip(one, other, strict=False)):
            if (below := first_difference(left, right)) is not None:
                return f"/{place}{below}"
        return None if len(one) == len(other) else f"/{min(len(one), len(other))}"
    return None if type(one) is type(other) and one == other else ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def escaped(name: str) -> str:
    """A name as one part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
