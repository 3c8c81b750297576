"""Hostile inputs made of valid ones: what fuzzers do with bytes, and what a person does who knows JSON.

`spoilt` is the one mutator, driven by any source of choices: Hypothesis in the tests, a seeded generator where there
is no fuzzer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence

# What parsers stumble over, as bytes that stand wherever something stood.
WORDS: Sequence[bytes] = (
    *(b"", b"\0", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f", b"\xe2\x80\xae"),
    *(b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"-0.0", b"1e999", b"NaN", b"-Infinity", b"0.1"),
    *(b"9" * 25, b"9" * 999, b"9" * 1001, b"9" * 5000, b"1e308", b"1e-400", b"18446744073709551616"),
    *(b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b'"a/../b"', b'"/"', b'".."', b'"\xc3\xa9"', b'"x\\ny"'),
    *(
        b'{"a":1,"a":2}',
        b'{"$blob": "x"}',
        b'{"$lines": []}',
        b'{"$x": 1}',
        b'{"$ref": "#"}',
        b"[" * 300,
        b'{"a":' * 300,
    ),
    *(
        b'"%s"' % (b"x" * 5000),
        b"[%s1]" % (b"1," * 3000),
        b"`",
        b"```json\n",
        b"<!--",
        b"%00",
        b"%ff",
        b"..",
        b"/",
        b"@",
        b"$",
    ),
    *(
        b'"9999-12-31T23:59:59Z"',
        b'"0001-01-01T00:00:00Z"',
        b'"P9999999999D"',
        b'"1e1000000000"',
        b'"1/0"',
        b'"(a{99999999999})"',
    ),
    *(b"40000 ", b"160000 ", b" ", b"\t", b"refs/", b"~", b"0000000000000000000000000000000000000000"),
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[A-Za-z_]+|[^\sA-Za-z_]')

Choose = Callable[[int], int]
"""A number below the given one."""


def spoilt(seed: bytes, other: bytes, choose: Choose) -> bytes:
    """One to four mutations of `seed`; `other` is another valid input, to take pieces of."""
    data = seed
    for _ in range(1 + choose(4)):
        data = _ONCE[choose(len(_ONCE))](data, other, choose)
    return data


def chance(seed: int) -> Choose:
    return random.Random(seed).randrange


def _place(data: bytes, choose: Choose) -> int:
    return choose(len(data) + 1)


def _cut(data: bytes, _: bytes, choose: Choose) -> bytes:
    return data[: _place(data, choose)]


def _drop(data: bytes, _: bytes, choose: Choose) -> bytes:
    at = _place(data, choose)
    return data[:at] + data[at + 1 + choose(20) :]


def _flip(data: bytes, _: bytes, choose: Choose) -> bytes:
    at = _place(data, choose)
    return data[:at] + bytes([data[at] ^ (1 << choose(8))]) + data[at + 1 :] if at < len(data) else data


def _put(data: bytes, _: bytes, choose: Choose) -> bytes:
    at = _place(data, choose)
    return data[:at] + WORDS[choose(len(WORDS))] + data[at:]


def _splice(data: bytes, other: bytes, choose: Choose) -> bytes:
    return data[: _place(data, choose)] + other[_place(other, choose) :]


def _repeat(data: bytes, _: bytes, choose: Choose) -> bytes:
    at = _place(data, choose)
    return data[:at] + data[at : at + 1 + choose(60)] * (1 + choose(40)) + data[at:]


def _token(data: bytes, _: bytes, choose: Choose) -> bytes:
    """One word, number or text exchanged for a hostile one."""
    found = [match.span() for match in _TOKEN.finditer(data[:100_000])]
    if not found:
        return data
    start, end = found[choose(len(found))]
    return data[:start] + WORDS[choose(len(WORDS))] + data[end:]


def _value(data: bytes, other: bytes, choose: Choose) -> bytes:
    """Where JSON stands, one of its values exchanged for one that fits its place no more."""
    start, end = data.find(b"{"), data.rfind(b"}") + 1
    try:
        whole = json.loads(data[start:end])
    except (ValueError, RecursionError):
        return _token(data, other, choose)
    way: list[tuple[object, object]] = []
    _places(whole, way)
    holder, key = way[choose(len(way))] if way else (None, None)
    odd = _ODD[choose(len(_ODD))]
    if isinstance(holder, dict | list):
        holder[key] = odd() if callable(odd) else odd  # type: ignore[index,call-overload]  # its own key
    try:
        return data[:start] + json.dumps(whole).encode() + data[end:]
    except (ValueError, RecursionError):
        return data


def _places(value: object, way: list[tuple[object, object]], depth: int = 0) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        way.append((value, key))
        if depth < 20:
            _places(item, way, depth + 1)


def _nested(depth: int) -> object:
    made: object = 1
    for _ in range(depth):
        made = {"a": [made]}
    return made


_ODD: Sequence[object] = (
    *(None, True, False, 0, -1, 10**18, 10**25, 10**400, -(10**998), 0.5, 1e308, -1e308, float("nan"), float("inf")),
    *("", "\0", "\ud800", "\ufeffx", "\u202ex", "x" * 3000, "\n" * 50, "a/../b", "..", "1/3", "1e999999999", "é" * 90),
    *([], {}, [[]], [None] * 300, {"": {}}, {"a": None}, {"$blob": "0" * 64, "bytes": 1, "head": ""}, {"$ref": "#"}),
    *(lambda: _nested(60), lambda: _nested(120), lambda: {str(number): number for number in range(300)}),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "P1D", "(a{99999999999})"),
)
_ONCE = (_cut, _drop, _flip, _put, _splice, _repeat, _token, _token, _value, _value, _value)
