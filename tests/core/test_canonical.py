"""One writer whose bytes never differ, one reader that believes nothing."""

from __future__ import annotations

import json as stdlib
import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.core import canonical
from hermes_workflows.core.canonical import MAX_DEPTH, Json, dumps, parse
from hermes_workflows.errors import InvalidInput, UnstorableValue

JSON: st.SearchStrategy[Json] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text('$ab/~\n"é', max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_the_layout_is_two_spaces_sorted_keys_and_a_final_newline() -> None:
    value: Json = {"b": [1, {"z": None, "ä": True, "a": 1.5}], "a": {}, "c": [], "\U00010000": 1, "\uffff": 2}
    assert dumps(value).decode() == (
        '{\n  "a": {},\n  "b": [\n    1,\n    {\n      "a": 1.5,\n      "z": null,\n      "ä": true\n    }\n  ],\n'
        '  "c": [],\n  "\uffff": 2,\n  "\U00010000": 1\n}\n'
    )


def test_an_integer_beyond_64_bits_does_not_change_the_layout() -> None:
    small = dumps({"b": [1, {"x": 111}], "a": "é"})
    assert dumps({"b": [1, {"x": 10**30}], "a": "é"}) == small.replace(b"111", str(10**30).encode())


@settings(deadline=None)
@given(JSON)
def test_every_value_reads_back_equal_in_type_and_sign(value: Json) -> None:
    assert repr(parse(dumps(value))) == repr(_sorted(value))


@settings(deadline=None)
@given(JSON)
def test_any_layout_of_a_value_reads_as_the_value(value: Json) -> None:
    assert repr(_sorted(parse(stdlib.dumps(value).encode()))) == repr(_sorted(value))


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exponents_are_written_alike_under_every_orjson(number: float) -> None:
    # Older versions write no plus. Text that looks like such a number stays.
    layout = b'{\n  "n": [\n    %b\n  ],\n  "s": "1e16,\\n 1e16"\n}\n'
    without = orjson.dumps(number).replace(b"e+", b"e")
    written = layout % re.sub(rb"e(?=[0-9])", b"e+", without)
    assert canonical._with_plus(layout % without) == written
    assert dumps({"n": [number], "s": "1e16,\n 1e16"}) == written


class Metres(float):
    """What only looks like a number would read back as one, which is not what was written."""


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [float("nan")], "b": None}, "/a/0"),
        ({"a": float("inf")}, "/a"),
        ({"a": "\ud800"}, "/a"),
        ({"a": {1: 2}}, "/a/1"),
        ({"a": b""}, "/a"),
        ({"a": 10**1000}, "/a"),
        ([[object()]], "/0/0"),
        ([Metres(1.5)], ""),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(value: Any, path: str) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        dumps(value)
    assert refusal.value.path == path


def nested(levels: int) -> bytes:
    return b"[" * levels + b"1" + b"]" * levels


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": {"b": 1, "b": 1}}', "'b' stands twice at /a"),
        (b'[{"x": 1, "\\u0078": 2}]', "'x' stands twice at /0"),
        (b'{"a": [0, NaN]}', "NaN is no number in JSON at /a/1"),
        (b'{"a": -Infinity}', "-Infinity is no number in JSON at /a"),
        (b'{"a": [1e999]}', "1e999 is more than a number can hold at /a/0"),
        (b'{"a": -1e999}', "-1e999 is more than a number can hold at /a"),
        (b'{"a": ' + b"9" * 5000 + b"}", "an integer of more than 1,000 digits at /a"),
        (b'{"a": -' + b"9" * 1001 + b"}", "an integer of more than 1,000 digits at /a"),
        (b'{"a": ["\\ud800"]}', "a lone surrogate (character 0) is no text at /a/0"),
        (b'{"a": {"b\\udfff": 1}}', "a lone surrogate"),
        (b'"\xed\xa0\x80"', "not UTF-8 (byte 1)"),
        (b'{"a": "\xff"}', "not UTF-8 (byte 7)"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (nested(MAX_DEPTH + 1), "nested deeper than 200 at /0/0"),
        (nested(100_000), "nested deeper than 200"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper than 200"),
        (b"", "got nothing"),
        (b" \n", "got nothing"),
        (b'{"a": 1,}', "not JSON"),
        (b'{"a" 1}', "not JSON: expecting ':' delimiter at line 1, column 6"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON: extra data"),
        (b'{"a": 01}', "not JSON"),
        (b'{"a": "x\ny"}', "not JSON: invalid control character"),
        (b"undefined", "not JSON"),
    ],
)
def test_hostile_json_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse(data)
    assert said in refusal.value.message
    assert "\n" not in refusal.value.message
    assert len(refusal.value.message) < 200


def test_the_writers_own_layout_is_checked_as_strictly() -> None:
    canonical_looking = b'{\n  "a": 1,\n  "a": 1\n}\n'
    with pytest.raises(InvalidInput, match="stands twice"):
        parse(canonical_looking)
    too_deep = orjson.dumps(orjson.loads(nested(MAX_DEPTH + 1)), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with pytest.raises(InvalidInput, match="nested deeper"):
        parse(too_deep)
    with pytest.raises(UnstorableValue, match="nested deeper"):
        dumps(orjson.loads(nested(MAX_DEPTH + 1)))


def test_the_deepest_value_that_is_read_can_be_written() -> None:
    assert parse(dumps(parse(nested(MAX_DEPTH)))) == parse(nested(MAX_DEPTH))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"9" * 1000, 10**1000 - 1),
        (b"18446744073709551616", 2**64),
        (b"1E5", 100000.0),
        (b"-0", 0),
        (b"-0.0", -0.0),
        (b"1e-999", 0.0),
        (b'"\\u0000\\ud83d\\ude00"', "\0😀"),
        (b' {"a" : [ ] } ', {"a": []}),
    ],
)
def test_unusual_json_is_read_exactly(data: bytes, value: Json) -> None:
    assert repr(parse(data)) == repr(value)


def test_more_bytes_than_are_read_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(InvalidInput, match="1,001 bytes"):
        parse(b"[" * 1001, max_bytes=1000)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_make_the_reader_fail_in_another_way(data: bytes) -> None:
    try:
        value = parse(data)
    except InvalidInput:
        return
    assert repr(parse(dumps(value))) == repr(_sorted(value))


@settings(deadline=None)
@given(st.text(st.sampled_from('{}[]",:0123456789eE+-.\\udNa tfn\n'), max_size=40))
def test_no_text_gets_past_the_reader_that_the_writer_would_refuse(text: str) -> None:
    try:
        value = parse(text.encode())
    except InvalidInput:
        return
    assert stdlib.loads(text) == value
    dumps(value)
