"""The bytes of a receipt: the one writer and the one strict reader of JSON text.

Equal values give equal bytes on every machine, under every version of orjson. What others wrote is read here and
nowhere else, since `orjson.loads` is silent about duplicate keys, huge integers and numbers that overflow.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

import orjson

from ..errors import InvalidInput, UnstorableValue

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH: Final = 200
"""Containers around a value; orjson itself stops at 254."""

MAX_DIGITS: Final = 1000
"""Digits of an integer. Python's conversion is quadratic and refuses at 4,300, a limit the environment can move."""

_INT_BOUND = 10**MAX_DIGITS
_OPTIONS = (
    orjson.OPT_INDENT_2
    | orjson.OPT_SORT_KEYS
    | orjson.OPT_APPEND_NEWLINE
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
# Older versions of orjson write 1e16, newer ones 1e+16; a fingerprint must not depend on the installed one.
_WRITES_PLUS = orjson.dumps(1e16) == b"1e+16"
_EXPONENT = re.compile(rb"(?m)((?:^|[ ])-?[0-9](?:\.[0-9]+)?e)([0-9]+,?)$")
_STRICTLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_TOO_DEEP = b"\n" + b"  " * (MAX_DEPTH + 1)
# Every text that is too deep has it, hardly any other, and it is found to be missing in a tenth of the time.
_DEEP = _TOO_DEEP[:41]
_SHOWN_PARTS = 20
_BOM = b"\xef\xbb\xbf"


class Refused(Exception):
    """A value that is refused, on its way up through the containers, which add where they stand.

    So the happy path carries no paths. Never leaves `core`.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.parts: list[str | int] = []

    @property
    def path(self) -> str:
        """Where it was refused, as a JSON pointer, cut to what a person reads."""
        whole = pointer(reversed(self.parts[-_SHOWN_PARTS:]))
        return whole if len(self.parts) <= _SHOWN_PARTS else whole + "/…"


def pointer(parts: Iterable[str | int]) -> str:
    """The JSON pointer of a place inside a value; printable whatever the keys are."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join("/" + part.encode("utf-8", "backslashreplace").decode() for part in escaped)


def check_text(text: str) -> str:
    """The text itself, unless no UTF-8 can hold it."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refused(f"a lone surrogate (character {error.start}) is no text") from None
    return text


def check_key(key: object) -> str:
    if not isinstance(key, str):
        raise Refused(f"a key must be text, not {type(key).__name__}", "use text keys, or declare the type of the dict")
    return check_text(str.__str__(key))


def check_integer(value: int) -> int:
    if not -_INT_BOUND < value < _INT_BOUND:
        raise Refused(f"an integer of more than {MAX_DIGITS:,} digits", "write it as text")
    return value


def check_number(value: float) -> float:
    if not math.isfinite(value):
        raise Refused(f"{float.__repr__(value)} is no number in JSON", "use null, or text")
    return value


def check_depth(depth: int, limit: int) -> None:
    if depth > limit:
        raise Refused(f"nested deeper than {limit}")


def dumps(stored: Json, *, encoded: bool = False) -> bytes:
    """The canonical bytes of a stored form: two-space indent, sorted keys, LF, final newline.

    `encoded` is what `encode` has made: no NaN is looked for, which takes as long as writing.
    Raises `UnstorableValue`, with the place, for what `encode` would not have let through.
    """
    try:
        data = _layout(stored)
    except TypeError:
        return _dumps_with_care(stored)
    if (_DEEP in data and _TOO_DEEP in data) or (not encoded and hides_null(data, stored)):
        return _dumps_with_care(stored)
    return data


def copied(value: object, *, max_bytes: int, max_depth: int) -> Json:
    """A copy of a value that JSON says exactly and in one line, or None: of these, nothing needs another form.

    Not for what has a key or a text with a `$`, a line end, a quote or a backslash in it, for more than `max_bytes`
    bytes or `max_depth` containers, nor for what is None itself. A tenth of the time that a walk takes.
    """
    try:
        data = orjson.dumps(value, option=_STRICTLY)
    except TypeError:
        return None
    if b"$" in data or b"\\" in data or len(data) > max_bytes or data.count(b"{") + data.count(b"[") > max_depth:
        return None
    copy: Json = orjson.loads(data)
    # Tuples, members of an Enum, NaN: orjson writes something for them, and it is not what they are.
    return copy if copy == value else None


def parse(data: bytes, *, max_bytes: int = 20 << 20) -> Json:
    """The value of a JSON text that anybody may have written.

    Refuses with `InvalidInput`, naming the place inside the value where there is one: more than `max_bytes` bytes,
    a byte order mark, invalid UTF-8, duplicate keys, NaN, infinities and numbers that overflow to one, integers of
    more than `MAX_DIGITS` digits, lone surrogates, nesting beyond `MAX_DEPTH`, and everything that is not JSON.
    """
    if len(data) > max_bytes:
        raise InvalidInput(f"{len(data):,} bytes of JSON are more than the {max_bytes:,} that are read")
    try:
        value: Json = orjson.loads(data)
        # Our own bytes come back the same; text with a duplicate key, a huge integer or the like does not.
        if _layout(value) == data and (_DEEP not in data or _TOO_DEEP not in data):
            return value
    except (ValueError, TypeError):
        pass
    return _parse_with_care(data)


def _layout(stored: object) -> bytes:
    data = orjson.dumps(stored, option=_OPTIONS)
    return data if _WRITES_PLUS else _with_plus(data)


def _with_plus(data: bytes) -> bytes:
    """Exponents as newer versions of orjson write them. A match ends its line, so it never lies inside a string."""
    return _EXPONENT.sub(rb"\1+\2", data)


def hides_null(data: bytes, value: object) -> bool:
    """Whether a null in what orjson made of `value` may be a NaN or an infinity, which it writes so, silently."""
    # Read back and compared, in C: most receipts have a null, and a walk over them costs as much as writing them.
    try:
        return b"null" in data and orjson.loads(data) != value
    except ValueError:
        return True  # an integer that no float holds, which orjson reads as one


def _dumps_with_care(stored: Json) -> bytes:
    try:
        _check(stored, 0)
        return _layout(with_fragments(stored))
    except Refused as refused:
        raise UnstorableValue(refused.path, refused.reason, hint=refused.hint) from None
    except TypeError as error:
        raise UnstorableValue("", str(error)) from None


def with_fragments(value: Any) -> Any:
    """Integers beyond 64 bits as finished pieces of JSON: all that orjson refuses is the number, not its place."""
    if isinstance(value, dict):
        return {key: with_fragments(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_fragments(item) for item in value]
    if isinstance(value, int) and value.bit_length() > 63:
        return orjson.Fragment(str(int(value)))
    return value


class _Poison:
    """Stands in a parsed value where the text said something that no value may hold, until the walk names its path."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _parse_with_care(data: bytes) -> Json:
    text = _text_of(data)
    try:
        value = _STRICT.decode(text)
        _check(value, 0)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at {where}") from None
    except RecursionError:
        raise InvalidInput(f"JSON nested deeper than {MAX_DEPTH}") from None
    except Refused as refused:
        raise InvalidInput(f"{refused.reason} at {refused.path or '/'}", hint=refused.hint) from None
    return cast(Json, value)


def _text_of(data: bytes) -> str:
    if data.startswith(_BOM):
        raise InvalidInput("the JSON starts with a byte order mark", hint="save it as UTF-8 without BOM")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the JSON is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise InvalidInput("expected JSON, got nothing")
    return text


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return _Poison(f"the key {twice[:80]!r} stands twice")


def _integer(digits: str) -> Any:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        return _Poison(f"an integer of more than {MAX_DIGITS:,} digits")
    return int(digits)


def _float(digits: str) -> Any:
    value = float(digits)
    return value if math.isfinite(value) else _Poison(f"{digits[:40]} is more than a number can hold")


def _constant(name: str) -> Any:
    return _Poison(f"{name} is no number in JSON")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant, strict=True
)


def _check(value: Any, depth: int) -> None:
    """Refuses everything that a stored form may not hold, with its place."""
    check_depth(depth, MAX_DEPTH)
    keyed = isinstance(value, dict)
    if not keyed and not isinstance(value, list):
        _check_leaf(value)
        return
    places: Iterable[tuple[Any, Any]] = value.items() if keyed else enumerate(value)
    for place, item in places:
        try:
            if keyed:
                check_key(place)
            _check(item, depth + 1)
        except Refused as refused:
            refused.parts.append(place)
            raise


def _check_leaf(value: Any) -> None:
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, float):
        check_number(value)
    elif isinstance(value, int):
        check_integer(value)
    elif isinstance(value, _Poison):
        raise Refused(value.reason)
    elif value is not None:
        raise Refused(f"a value of type {type(value).__name__} is no JSON")
