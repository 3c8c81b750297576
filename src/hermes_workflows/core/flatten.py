"""From Python objects to `Plain` values, by what the objects are (not by what was declared).

One table of types that are single texts, one rule for containers and records. The declared type has its say
afterwards, in `values`: what is written here must validate, and must come back as the same kinds of things.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import ipaddress
import pathlib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

import pydantic
import pydantic_core

from .canonical import Refused, check_number
from .encoding import MAX_VALUE_DEPTH, Plain
from .records import WHOLE, Shape, shape_of

ODD_KEY: Final = "a key that is not text: "
"""How a trace marks such keys; only a declared type brings them back."""


class UnknownType(Refused):
    """No rule writes such an object; its declared type may still know how."""


Rule: TypeAlias = "Callable[[Flattener, Any], Plain]"

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


class Flattener:
    """One walk over one value.

    `trace` lists the kinds of what JSON has no type for, so that a caller can tell whether all of them came back.
    """

    __slots__ = ("_depth", "_text_keys_only", "trace")

    def __init__(self, *, text_keys_only: bool = False) -> None:
        self.trace: list[str] = []
        self._depth = 0
        self._text_keys_only = text_keys_only

    def value(self, value: Any) -> Plain:
        """The plain form, or `Refused` with the place."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value  # type: ignore[no-any-return]
        return _rule_for(kind)(self, value)

    def items(self, pairs: Iterable[tuple[Any, Any]]) -> list[Plain]:
        """The plain forms of the second halves of (place, item) pairs."""
        self._depth += 1
        if self._depth > MAX_VALUE_DEPTH:
            raise Refused(f"nested deeper than {MAX_VALUE_DEPTH}", "does the value contain itself?")
        out: list[Plain] = []
        place: Any = None
        try:
            for place, item in pairs:  # noqa: B007 # the handler names it
                # What `value` does, without the call: most items of most receipts are text.
                kind = type(item)
                out.append(item if kind in _AS_THEY_ARE else _rule_for(kind)(self, item))
        except Refused as refused:
            refused.parts.append(place if isinstance(place, str | int) else repr(place))
            raise
        self._depth -= 1
        return out

    def key(self, key: Any) -> str:
        if isinstance(key, str) and not isinstance(key, enum.Enum):
            return key
        if self._text_keys_only and not isinstance(key, str):
            hint = "use text keys, or declare the type of the dict"
            raise Refused(f"a key must be text, not {type(key).__name__}", hint)
        text = self.value(key)
        if isinstance(text, bool):
            text = "true" if text else "false"
        if not isinstance(text, str | int | float):
            raise Refused(f"a key must be text, not {type(key).__name__}")
        if not isinstance(key, str):
            self.trace.append(f"{ODD_KEY}{type(key).__name__}")
        return str(text)


def _sequence(walk: Flattener, value: Any) -> Plain:
    return walk.items(enumerate(value))


def _set(walk: Flattener, value: Any) -> Plain:
    # Iteration follows addresses and hash seeds; the order in a receipt may not.
    flat = walk.items(enumerate(value))
    kinds = set(map(type, flat))
    return sorted(flat) if kinds <= {str} or kinds <= {int, float} else sorted(flat, key=repr)  # type: ignore[type-var]


def _mapping(walk: Flattener, value: Any) -> Plain:
    items = walk.items(value.items())
    flat: dict[str, Plain] = {}
    for key, item in zip(value, items, strict=True):
        try:
            flat[walk.key(key)] = item
        except Refused as refused:
            refused.parts = [repr(key)]
            raise
    if len(flat) != len(value):
        raise Refused("two keys that are the same text", "use keys of one type")
    return flat


def _enum(walk: Flattener, value: Any) -> Plain:
    # A StrEnum is a str, and may well come back as one.
    if not isinstance(value, str | int):
        walk.trace.append(type(value).__qualname__)
    return walk.value(value.value)


def _bytes(walk: Flattener, value: Any) -> Plain:
    walk.trace.append("bytes")
    return bytes(value)


def _text(kind: str, write: Callable[[Any], str] = str) -> Rule:
    def rule(walk: Flattener, value: Any) -> Plain:
        walk.trace.append(kind)
        return write(value)

    return rule


def _utc_as_z(value: dt.datetime) -> str:
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _pattern(value: re.Pattern[Any]) -> str:
    if not isinstance(value.pattern, str) or re.compile(value.pattern).flags != value.flags:
        raise Refused("a pattern with flags cannot be stored", "write the flags into the pattern: (?i)…")
    return str(value.pattern)


def _secret(_: Flattener, value: Any) -> Plain:
    raise Refused(
        f"a {type(value).__name__} must not be stored", "give secrets by name: env={'TOKEN': secret('TOKEN')}"
    )


_BY_TYPE: dict[type, Rule] = {
    # bool and None cannot be subclassed; the others may be, and are stored as what they extend.
    str: lambda _, value: str.__str__(value),
    int: lambda _, value: int(value),
    float: lambda _, value: float(check_number(value)),
    bytes: _bytes,
    bytearray: _bytes,
    list: _sequence,
    tuple: _sequence,
    collections.deque: _sequence,
    range: _sequence,
    set: _set,
    frozenset: _set,
    dict: _mapping,
    dt.datetime: _text("datetime", _utc_as_z),
    dt.date: _text("date", dt.date.isoformat),
    dt.time: _text("time", dt.time.isoformat),
    dt.timedelta: _text("timedelta", pydantic_core.to_jsonable_python),
    decimal.Decimal: _text("Decimal"),
    fractions.Fraction: _text("Fraction"),
    complex: _text("complex", pydantic_core.to_jsonable_python),
    uuid.UUID: _text("UUID"),
    pathlib.PurePath: _text("Path"),
    re.Pattern: _text("Pattern", _pattern),
    pydantic_core.Url: _text("Url"),
    pydantic_core.MultiHostUrl: _text("Url"),
    pydantic.AnyUrl: _text("Url"),
    pydantic.SecretStr: _secret,
    pydantic.SecretBytes: _secret,
    **{
        getattr(ipaddress, f"IPv{version}{what}"): _text(f"IPv{version}{what}")
        for version in (4, 6)
        for what in ("Address", "Interface", "Network")
    },
}


def _find_rule(kind: type) -> Rule:
    if issubclass(kind, enum.Enum):
        return _enum
    if issubclass(kind, pydantic.BaseModel) or dataclasses.is_dataclass(kind):
        return _record(shape_of(kind))
    for base in kind.__mro__:
        if base in _BY_TYPE:
            return _BY_TYPE[base]
    if issubclass(kind, Iterator):
        return _iterator
    return _mapping if issubclass(kind, Mapping) else _unknown


# Bounded, since reloaded modules leave their classes here.
_rule_for: Callable[[type], Rule] = functools.lru_cache(maxsize=4096)(_find_rule)


def _iterator(_: Flattener, value: Any) -> Plain:
    raise Refused(f"a {type(value).__name__} can be read only once", "make a list of it")


def _unknown(_: Flattener, value: Any) -> Plain:
    said = f"a value of type {type(value).__name__} cannot be stored"
    raise UnknownType(said, "use text, numbers, lists, dicts or a typed value")


def _record(shape: Shape) -> Rule:
    def by_fields(walk: Flattener, value: Any) -> Plain:
        walk.trace.append(shape.kind)
        flat = dict(zip(shape.names, walk.items(zip(shape.names, shape.read(value), strict=True)), strict=True))
        extra = getattr(value, "__pydantic_extra__", None)
        return {**flat, **cast("dict[str, Plain]", _mapping(walk, extra))} if extra else flat

    def whole(walk: Flattener, value: Any) -> Plain:
        walk.trace.append(shape.kind)
        return walk.value(shape.read(value)[0])

    return whole if shape.names == (WHOLE,) else by_fields
