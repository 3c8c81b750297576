"""What does not fit its declared type, or would not come back as it was, is refused with its place."""

from __future__ import annotations

import datetime as dt
import pathlib
import re
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
import pytest
from tests.core.kinds import (
    Approve,
    Box,
    Case,
    Draft,
    Judged,
    Level,
    Node,
    Note,
    Open,
    OpenAround,
    Pair,
    Point,
    Pointed,
    Reject,
    Risk,
    Wide,
)

from hermes_workflows.core.encoding import Plain
from hermes_workflows.core.values import ValueMismatch, codec_for
from hermes_workflows.errors import InvalidInput, UnstorableValue


@pytest.mark.parametrize(
    ("tp", "value", "path"),
    [
        (int, "1", ""),
        (int, True, ""),
        (int, 1.0, ""),
        (float, "1", ""),
        (float, True, ""),
        (bool, 1, ""),
        (bool, "true", ""),
        (str, 1, ""),
        (Literal[1], True, ""),
        (Literal[1], 1.0, ""),
        (Level, True, ""),
        (Level, 1.0, ""),
        (list[Level], ["1"], "/0"),
        (dict[str, list[int]], {"a/b": [1, "2"]}, "/a~1b/1"),
        (Point, {"x": "1"}, "/x"),
        (Node, {"value": 1, "children": [{"value": 2}, {"value": "3"}]}, "/children/1/value"),
        (Draft, {"when": "soon", "node": {"value": 1}}, "/when"),
        (tuple[int, str], [1], "/1"),
        (dict[int, str], {"a": "b"}, "/a"),
        (dict[Level, int], {"3": 1}, "/3"),
        (Risk, "LOW", ""),
        (uuid.UUID, "no", ""),
        (Decimal, "NaN", ""),
    ],
)
def test_json_that_has_another_type_is_refused_with_the_field(tp: Any, value: Plain, path: str) -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(tp).from_plain(value)
    assert [where for where, _ in refusal.value.errors] == [path]
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("tp", [Point, Draft, Note, Box[int], Case[int], list[Point] | Point], ids=str)
def test_an_unknown_field_is_refused(tp: Any) -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(tp).from_plain({"surprise": 1})
    assert ("/surprise", "is unknown") in [(path, reason.partition(" (as")[0]) for path, reason in refusal.value.errors]


def test_an_unknown_field_deep_inside_is_refused_too() -> None:
    value: Plain = {"when": "2020-01-01T00:00:00Z", "node": {"value": 1, "children": [{"value": 2, "surprise": 3}]}}
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(dict[str, Draft]).from_plain({"a": value})
    assert refusal.value.errors == [("/a/node/children/0/surprise", "is unknown")]


def test_a_model_that_allows_more_keeps_it_and_passes_nothing_on() -> None:
    back = codec_for(Open).from_plain({"x": 1, "more": [b"\xff"]})
    assert back.model_extra == {"more": [b"\xff"]}
    with pytest.raises(ValueMismatch, match="/point/surprise is unknown"):
        codec_for(OpenAround).from_plain({"point": {"x": 1, "surprise": 2}, "more": 3})


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(list[Point]).from_plain([{"x": "1", "z": 2}, {"y": 3}, 4])
    assert refusal.value.errors == [
        ("/0/x", "should be a valid integer, not '1'"),
        ("/0/z", "is unknown"),
        ("/1/x", "is missing"),
        ("/1/y", "should be a valid string, not 3"),
        ("/2", "should be an object, not 4"),
    ]
    assert refusal.value.exit_code == 2


def test_an_error_in_a_union_says_as_what_it_was_read() -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(dict[str, Point | Pointed]).from_plain({"a": {"x": "1"}})
    reasons = {reason for _, reason in refusal.value.errors}
    assert reasons == {
        "should be a valid integer, not '1' (as Point)",
        "should be a valid integer, not '1' (as Pointed)",
    }
    assert {path for path, _ in refusal.value.errors} == {"/a/x"}


def test_a_long_list_of_errors_stays_one_readable_line() -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(list[int]).from_plain(["x" * 1000] * 50)
    assert len(refusal.value.errors) == 50
    assert len(refusal.value.message) < 700
    assert "and 45 more" in refusal.value.message


def test_what_the_types_own_code_says_is_told() -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(Judged).from_plain({"score": 11})
    assert refusal.value.errors == [("/score", "is refused: at most ten")]
    with pytest.raises(ValueMismatch, match="KeyError"):
        codec_for(Judged).from_plain({"score": 5})


@pytest.mark.parametrize(
    ("tp", "value", "said"),
    [
        (int, "1", "should be a valid integer"),
        (Point, Point("1"), "/x should be a valid integer"),  # type: ignore[arg-type]
        (list[Point], [Point(1), Point(2, None)], "/1/y should be a valid string"),  # type: ignore[arg-type]
        (Draft, Draft.model_construct(when="soon", node=Node(value=1)), "/when"),  # type: ignore[arg-type]
        (Point, Wide(1, "a", 2), "/z is unknown"),
        (Point, None, "should be an object, not null"),
        (Approve | Reject, Reject("no"), "holds a Reject() that would read back as Approve()"),
        (list[Approve | Reject], [Approve("a"), Reject("b")], "Reject"),
        (pathlib.Path | str, "x", "read back as Path"),
        (str | pathlib.Path, pathlib.Path("x"), "holds a Path"),
        (str, dt.date(2020, 1, 1), "holds a date"),
        (dt.date, "2020-01-01", "read back as date"),
        (str, Risk.LOW, "holds a Risk"),
        (dict[str, Approve | Reject | Any], {"a": Reject("x")}, "Reject"),
    ],
)
def test_a_value_that_is_not_what_was_declared_is_refused(tp: Any, value: Any, said: str) -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(tp).to_plain(value)
    assert said in refusal.value.message


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("tp", "value", "path", "said"),
    [
        (Any, object(), "", "object"),
        (Any, {"a": [print]}, "/a/0", "builtin_function_or_method"),
        (Any, {"a": numbers()}, "/a", "only once"),
        (list[Any], [1, float("nan")], "/1", "nan"),
        (float | None, float("inf"), "", "inf"),
        (dict[str, str], {"a": "\ud800"}, "/a", "surrogate"),
        (dict[str, Any], {"a": {1: 2}}, "/a/1", "must be text, not int"),
        (dict, {(1, 2): 3}, "/(1, 2)", "must be text, not tuple"),
        (dict[Any, Any], {1: 2, "1": 3}, "", "two keys that are the same text"),
        (dict[int | str, int], {1: 2}, "/1", "must be text, not int"),
        (Node, Node(value=1, path=pathlib.Path("\udcff")), "/path", "surrogate"),
        (pydantic.SecretStr, pydantic.SecretStr("hunter2"), "", "SecretStr"),
        (re.Pattern, re.compile("a", re.IGNORECASE), "", "flags"),
        (int, 10**1001, "", "1,000 digits"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_place(tp: Any, value: Any, path: str, said: str) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        codec_for(tp).to_plain(value)
    assert refusal.value.path == path
    assert said in refusal.value.reason
    assert "hunter2" not in str(refusal.value)


def test_a_value_that_contains_itself_is_refused() -> None:
    node = Node(value=1)
    node.children.append(node)
    with pytest.raises(UnstorableValue, match="nested deeper"):
        codec_for(Node).to_plain(node)


def test_keys_that_cannot_be_text_make_no_declared_type() -> None:
    with pytest.raises(InvalidInput, match="cannot be a declared type: a key must be text, not Pair"):
        codec_for(dict[Pair, int])


def test_choices_with_labels_are_as_strict_as_others() -> None:
    either = codec_for(Annotated[int, pydantic.Tag("whole")] | Annotated[str, pydantic.Tag("text")])
    assert [either.from_plain(each) for each in (1, "x")] == [1, "x"]
    with pytest.raises(ValueMismatch, match="as whole"):
        either.from_plain(1.5)


def test_of_very_many_errors_their_number_is_told_and_of_many_the_first() -> None:
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(list[int]).from_plain(["x"] * 10_001)
    assert refusal.value.errors == [("", "does not fit in 10,001 places")]
    with pytest.raises(ValueMismatch) as refusal:
        codec_for(list[int]).from_plain(["x"] * 300)
    assert len(refusal.value.errors) == 201
    assert refusal.value.errors[-1] == ("", "and there are more reasons than are listed")
