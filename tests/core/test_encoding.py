"""What a value looks like in a receipt, and that it comes back as it went in."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter, OrderedDict
from datetime import date
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.core.encoding import MAX_VALUE_DEPTH, Json, Limits, Plain, decode, dumps, encode, parse
from hermes_workflows.errors import IntegrityError, UnstorableValue

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.sampled_from('$ab\n\r\t\0"\\/\x1b\x7f\u2028\ufffe\U0001f600é'), max_size=40),
)
KEYS = st.one_of(TEXT, st.sampled_from(["$", "$$", "$lines", "$blob", "$base64", "$$lines", "bytes", "head"]))
NUMBERS = st.one_of(st.integers(), st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False))
PLAIN: st.SearchStrategy[Plain] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT, st.binary(max_size=200)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)
SMALL = Limits(string_bytes=20)


def stored(value: Plain, limits: Limits = SMALL) -> tuple[Json, dict[str, bytes]]:
    blobs: dict[str, bytes] = {}
    return encode(value, blobs, limits=limits), blobs


def no_blobs(digest: str) -> bytes:
    raise AssertionError(f"fetched {digest}")


def same(one: Any, other: Any) -> bool:
    """Equal in type and sign too: 1 is not 1.0, 0.0 is not -0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


@settings(deadline=None)
@given(PLAIN)
def test_every_value_comes_back_from_its_bytes_as_it_went_in(value: Plain) -> None:
    json, blobs = stored(value)
    assert same(decode(parse(dumps(json)), blobs.__getitem__), value)


@settings(deadline=None)
@given(PLAIN)
def test_what_was_written_is_read_without_a_change(value: Plain) -> None:
    data = dumps(stored(value)[0])
    assert dumps(parse(data)) == data


@settings(deadline=None)
@given(st.dictionaries(KEYS, TEXT, max_size=8))
def test_the_order_of_keys_leaves_no_trace(value: dict[str, str]) -> None:
    backwards = dict(reversed(list(value.items())))
    assert dumps(stored(dict(value))[0]) == dumps(stored(dict(backwards))[0])


@pytest.mark.parametrize(
    ("value", "json"),
    [
        ("one line", "one line"),
        ("", ""),
        ("a\nb", {"$lines": ["a", "b"]}),
        ("a\n", {"$lines": ["a", ""]}),
        ("\n", {"$lines": ["", ""]}),
        ("a\r\nb\rc", {"$lines": ["a\r", "b\rc"]}),
        ("a\u2028b", "a\u2028b"),
        (b"", {"$base64": []}),
        (b"\xff\x00", {"$base64": ["/wA="]}),
        ({"$lines": 1, "$": 2, "$$x": 3, "a$": 4}, {"$$lines": 1, "$$": 2, "$$$x": 3, "a$": 4}),
    ],
)
def test_the_stored_form_of_a_value(value: Plain, json: Json) -> None:
    blobs: dict[str, bytes] = {}
    assert encode(value, blobs) == json
    assert not blobs
    assert decode(json, no_blobs) == value


def test_bytes_stand_in_lines_of_76_characters() -> None:
    json, _ = stored(bytes(range(256)))
    assert isinstance(json, dict)
    lines = json["$base64"]
    assert isinstance(lines, list)
    assert [len(str(line)) for line in lines] == [76, 76, 76, 76, 40]
    assert base64.b64decode("".join(map(str, lines))) == bytes(range(256))


@pytest.mark.parametrize(
    ("text", "is_blob"), [("x" * 65536, False), ("x" * 65537, True), ("é" * 32768, False), ("é" * 32769, True)]
)
def test_text_over_64_kib_becomes_a_blob(text: str, is_blob: bool) -> None:
    blobs: dict[str, bytes] = {}
    json = encode({"out": text}, blobs)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if is_blob:
        assert json == {"out": {"$blob": digest, "bytes": len(text.encode()), "head": text[:200]}}
        assert blobs == {digest: text.encode()}
    else:
        assert json == {"out": text}
        assert not blobs


def test_equal_texts_share_a_blob() -> None:
    json, blobs = stored(["same text, and long", "same text, and long" * 2, "same text, and long" * 2])
    assert len(blobs) == 1
    assert decode(json, blobs.__getitem__) == ["same text, and long", *["same text, and long" * 2] * 2]


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Names(list[str]):
    pass


def test_what_extends_a_plain_type_is_stored_as_that_type() -> None:
    value: Any = {"enum": Colour.RED, "int": Size.BIG, "count": Counter("aab"), "ordered": OrderedDict(b=1, a=2)}
    back = decode(stored({**value, "names": Names(["a"])})[0], no_blobs)
    assert same(back, {"enum": "red", "int": 3, "count": {"a": 2, "b": 1}, "ordered": {"b": 1, "a": 2}, "names": ["a"]})


class Shade(Enum):
    DARK = "dark"


@pytest.mark.parametrize(
    "refused", [(1, 2), math.nan, math.inf, UUID(int=1), Shade.DARK, date(2026, 1, 1), {1}, {1: 2}]
)
@pytest.mark.parametrize("size", [1, 100_000], ids=["short", "long"])
def test_what_is_like_something_plain_is_refused_in_short_values_and_in_long_ones(refused: Any, size: int) -> None:
    with pytest.raises(UnstorableValue):
        encode(["x" * size, refused], {})


@pytest.mark.parametrize("size", [1, 100_000], ids=["short", "long"])
def test_a_stored_form_shares_nothing_that_may_still_change(size: int) -> None:
    value: Plain = {"list": [1, {"more": "x" * size}]}
    json = encode(value, {})
    assert same(json, encode(value, {}))
    assert isinstance(json, dict)
    assert json is not value
    assert json["list"] is not value["list"]


def nested(levels: int) -> Plain:
    value: Plain = 1
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Plain:
    value: list[Plain] = []
    value.append({"again": value})
    return value


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [0, math.nan]}, "/a/1", "nan"),
        ({"a": {"b": -math.inf}}, "/a/b", "-inf"),
        (["ok", "\ud800"], "/1", "lone surrogate"),
        ({"a": {"b\udfff": 1}}, "/a/b\\udfff", "lone surrogate"),
        ({"a": {1: 2}}, "/a/1", "must be text, not int"),
        ({"a": {None: 2}}, "/a/None", "must be text, not NoneType"),
        ({"a/b": {"c~d": {1, 2}}}, "/a~1b/c~0d", "set"),
        ([(1, 2)], "/0", "tuple"),
        ({"x": object()}, "/x", "object"),
        ({"n": [10**1000]}, "/n/0", "1,000 digits"),
        ("x" * 41, "", "41 bytes"),
        ({"data": bytes(100)}, "/data", "100 bytes"),
        (circle(), "/0/again" * 10, "nested deeper"),
    ],
)
def test_what_cannot_come_back_is_refused_with_its_place(value: Any, path: str, reason: str) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        encode(value, {}, limits=Limits(string_bytes=20, receipt_bytes=120, blob_bytes=40))
    assert refusal.value.path.startswith(path)
    assert bool(refusal.value.path) is bool(path)
    assert reason in refusal.value.reason


def test_values_may_nest_as_deep_as_a_receipt_reads_back() -> None:
    json, _ = stored(nested(MAX_VALUE_DEPTH))
    assert decode(parse(dumps({"request": {"input": json}})), no_blobs) == {
        "request": {"input": nested(MAX_VALUE_DEPTH)}
    }
    with pytest.raises(UnstorableValue, match="nested deeper"):
        stored(nested(MAX_VALUE_DEPTH + 1))


def test_the_largest_integers_come_back() -> None:
    numbers: Plain = [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**1000 - 1, 1 - 10**1000]
    assert same(decode(parse(dumps(stored(numbers)[0])), no_blobs), numbers)


@pytest.mark.parametrize(
    "json",
    [
        {"$lines": []},
        {"$lines": "a"},
        {"$lines": ["a", 1]},
        {"$lines": ["a\nb"]},
        {"$lines": ["a"], "more": 1},
        {"a": 1, "$b": 2},
        {"$": 1},
        {"$base64": "AAAA"},
        {"$base64": ["A"]},
        {"$base64": ["AA=="], "x": 1},
        {"$base64": ["!!!!"]},
        {"$base64": ["é"]},
        {"$blob": "../../etc/passwd", "bytes": 1, "head": ""},
        {"$blob": "0" * 64, "bytes": 1},
        {"$blob": "0" * 64, "bytes": "1", "head": ""},
        {"$blob": 5, "bytes": 1, "head": ""},
    ],
)
def test_a_special_object_that_is_never_written_is_not_believed(json: Json) -> None:
    with pytest.raises(IntegrityError, match="/out/1"):
        decode({"out": [0, json]}, no_blobs)


@pytest.mark.parametrize("blob", [b"", b"another text, of another length", b"The text that was stored"])
def test_a_blob_that_is_not_what_its_name_says_is_not_believed(blob: bytes) -> None:
    json, _ = stored("the text that was stored")
    with pytest.raises(IntegrityError, match="not what its name says"):
        decode(json, lambda _: blob)


def test_a_blob_that_is_no_text_is_not_believed() -> None:
    digest = hashlib.sha256(b"\xff").hexdigest()
    with pytest.raises(IntegrityError, match="not text"):
        decode({"$blob": digest, "bytes": 1, "head": ""}, lambda _: b"\xff")
