"""Schemas that say what the typed reader takes, and no fingerprint that moves with a title."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.kinds import Draft, Level, Node, Note, Open, Place, Point, Rights, Risk

from hermes_workflows.core.canonical import dumps
from hermes_workflows.core.encoding import Plain
from hermes_workflows.core.fingerprints import fingerprint
from hermes_workflows.core.schemas import reduced_schema
from hermes_workflows.core.values import ValueMismatch, check_schema, codec_for
from hermes_workflows.errors import InvalidInput


@dataclass
class Decision:
    """What a reviewer decides."""

    action: Literal["approve", "reject"]
    feedback: str = ""
    labels: frozenset[str | int] = frozenset({"a", "b", "c", 1, 2})


Everything = dict[str, Decision | Node | Draft]


@dataclass
class Inner:
    x: int


@dataclass
class Renamed:
    """Another text."""

    x: Annotated[int, pydantic.Field(title="X!", description="the x", examples=[1])]


@dataclass
class One:
    kind: Literal["a", "b"]
    inner: Inner
    n: int = 1


@dataclass
class Other:
    inner: Renamed
    kind: Literal["b", "a"]
    n: int = field(default=2, kw_only=True)


@dataclass
class Yes:
    action: Literal["yes"]


@dataclass
class No:
    action: Literal["no"]
    why: str
    more: str


def test_a_schema_for_forms_has_titles_defaults_and_choices() -> None:
    schema = codec_for(Decision).json_schema
    assert schema["description"] == "What a reviewer decides."
    assert schema["properties"]["action"] == {"enum": ["approve", "reject"], "title": "Action", "type": "string"}
    assert schema["properties"]["feedback"]["default"] == ""
    assert schema["properties"]["labels"]["default"] == ["a", "b", "c", 1, 2]
    assert schema["required"] == ["action"]
    assert list(schema["properties"]) == ["action", "feedback", "labels"]


@pytest.mark.parametrize("tp", [Decision, Point, Draft, Note, Node], ids=lambda tp: tp.__name__)
def test_declared_fields_are_all_fields(tp: Any) -> None:
    schema = codec_for(tp).json_schema
    for described in (schema, *schema.get("$defs", {}).values()):
        if "properties" in described:
            assert described["additionalProperties"] is False


def test_a_type_that_allows_more_says_so() -> None:
    assert codec_for(Open).json_schema["additionalProperties"] is True
    assert "additionalProperties" not in codec_for(Open).reduced_schema


def two(first: Any, second: Any) -> tuple[bytes, bytes]:
    return dumps(codec_for(first).reduced_schema), dumps(codec_for(second).reduced_schema)


def test_titles_texts_names_orders_and_defaults_leave_the_reduced_schema_alone() -> None:
    first, second = two(One, Other)
    assert first == second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int, float),
        (int, int | None),
        (int | str, str | int),
        (str, dt.date),
        (dt.date, dt.datetime),
        (list[int], set[int]),
        (Literal["a"], Literal["a", "b"]),
        (Annotated[int, pydantic.Field(gt=1)], Annotated[int, pydantic.Field(gt=2)]),
        (dict[str, int], dict[int, int]),
        (Point, dict[str, Any]),
        (tuple[int, int], tuple[int, ...]),
    ],
    ids=str,
)
def test_what_decides_validity_is_in_the_reduced_schema(one: Any, other: Any) -> None:
    first, second = two(one, other)
    assert first != second


def test_a_field_may_be_called_like_a_keyword() -> None:
    class Keywords(pydantic.BaseModel):
        title: str
        description: int
        default: int = 3

    reduced = codec_for(Keywords).reduced_schema
    assert set(reduced["properties"]) == {"title", "description", "default"}
    assert reduced["required"] == ["description", "title"]


def test_a_recursive_type_has_a_reduced_schema_with_numbered_definitions() -> None:
    reduced = codec_for(Node).reduced_schema
    assert reduced["$ref"] == "#/$defs/1"
    assert reduced["$defs"]["1"]["properties"]["children"]["items"] == {"$ref": "#/$defs/1"}


def test_a_declared_type_has_the_same_fingerprint_in_every_release() -> None:
    # Also under every Python and pydantic: a running run must not diverge because one of them was upgraded.
    reduced = codec_for(dict[str, Everything | Decimal | dict[Level, Place]]).reduced_schema
    assert (
        fingerprint("agent", {"returns": reduced})
        == "fp1:sha256:a83790b26420b091e7772c9c0f646feef512bf26fc48b40cef49142959035630"
    )


def test_schemas_and_values_are_the_same_under_every_hash_seed() -> None:
    code = (
        "from tests.core.test_schemas import Decision, codec_for, dumps;"
        "from typing import *; import hashlib;"
        "c = codec_for(dict[str, set[Union[str, int]] | Decision]);"
        "v = c.to_plain({'a': {'x', 'y', 'z', 1, 2, 'longer'}, 'b': Decision('approve')});"
        "print(hashlib.sha256(dumps([c.json_schema, c.reduced_schema, v])).hexdigest())"
    )
    found = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


MANY: list[Any] = [
    *(int, float, str, bool, bytes, Risk, Level, Rights, Decimal, dt.date, dt.datetime, dt.timedelta),
    *(Literal[1, "a"], int | None, list[int], set[str], tuple[int, str], dict[int, str], dict[Level, int]),
    *(Point, Decision, Node, Note, Place, Open, Everything, Point | Decision),
]
SCALARS: st.SearchStrategy[Plain] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 4),
    st.sampled_from(
        [0.0, 1.0, 1.5, "", "a", "1", "low", "approve", "2020-01-01", "2020-01-01T00:00:00Z", "P1D", "NaN", "1.50"]
    ),
)
FIELDS = st.sampled_from(
    ["x", "y", "action", "feedback", "labels", "value", "children", "path", "when", "node", "1", "a"]
)
NEARLY: st.SearchStrategy[Plain] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=4)),
    max_leaves=8,
)
FITTING: st.SearchStrategy[Plain] = st.one_of(
    NEARLY,
    st.fixed_dictionaries({"x": SCALARS}, optional={"y": SCALARS}),
    st.fixed_dictionaries({"action": SCALARS}, optional={"feedback": SCALARS, "labels": NEARLY}),
    st.fixed_dictionaries({"value": SCALARS}, optional={"children": NEARLY, "path": SCALARS}),
)


@settings(deadline=None)
@given(st.sampled_from(MANY), FITTING)
def test_no_answer_that_fits_the_schema_is_refused_by_the_type(tp: Any, answer: Plain) -> None:
    codec = codec_for(tp)
    if not check_schema(answer, codec.json_schema):
        codec.from_plain(answer)


@settings(deadline=None)
@given(st.sampled_from(MANY), FITTING)
def test_what_the_type_takes_is_stored_in_a_form_that_fits_the_schema(tp: Any, answer: Plain) -> None:
    codec = codec_for(tp)
    try:
        value = codec.from_plain(answer)
    except ValueMismatch:
        return
    assert check_schema(codec.to_plain(value), codec.json_schema) == []


def test_a_check_names_every_place_and_reason() -> None:
    answer: Plain = {"a": {"action": "aprove", "more": 1}, "b": {"value": 1.0, "children": [{"valu": 2}]}}
    schema = codec_for(dict[str, Any]).json_schema | {
        "properties": {"a": codec_for(Decision).json_schema, "b": {"$ref": "#/$defs/Node"}},
        "$defs": codec_for(Node).json_schema["$defs"],
    }
    assert check_schema(answer, schema) == [
        ("/a/action", "should be one of 'approve', 'reject', not 'aprove'"),
        ("/a/more", "is unknown"),
        ("/b/children/0/valu", "is unknown"),
        ("/b/children/0/value", "is missing"),
        ("/b/value", "should be integer, not 1.0"),
    ]


@pytest.mark.parametrize(
    ("tp", "answer", "reasons"),
    [
        (int | None, "x", [("", "should be integer or null, not 'x'")]),
        (list[int], [1, True], [("/1", "should be integer, not true")]),
        (Literal[1], True, [("", "should be 1, not true")]),
        (dt.date, "soon", [("", "should be text of the format date, not 'soon'")]),
        (Decimal, "abc", [("", "should be number or text of the format decimal, not 'abc'")]),
        (dict[int, int], {"a": 1}, [("/a", "should match '^-?[0-9]+$', not 'a'")]),
        (Annotated[int, pydantic.Field(gt=3)], 3, [("", "should be more than 3, not 3")]),
        (Annotated[list[int], pydantic.Field(min_length=2)], [1], [("", "should have at least 2 items, not a list")]),
        (set[int], [1, 1], [("", "should have no item twice, not a list")]),
        (Point | Decision, {"action": "approve", "z": 1}, [("/z", "is unknown")]),
        (str, "x" * 1000, []),
        (str, 10**100, [("", "should be string, not 1" + "0" * 58 + "…")]),
        (bytes, b"\xff", []),
    ],
    ids=str,
)
def test_a_reason_is_what_a_person_would_say(tp: Any, answer: Plain, reasons: list[tuple[str, str]]) -> None:
    assert check_schema(answer, codec_for(tp).json_schema) == reasons


def test_of_a_union_the_choice_that_was_meant_is_explained() -> None:
    assert check_schema({"action": "no"}, codec_for(Yes | No).json_schema) == [
        ("/more", "is missing"),
        ("/why", "is missing"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/$defs/absent"},
        {"pattern": "("},
    ],
    ids=str,
)
def test_a_schema_that_is_none_or_leads_outside_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="JSON Schema cannot be used") as refusal:
        check_schema("x", schema)
    assert "\n" not in refusal.value.message


def test_an_answer_nested_too_deep_is_refused_and_no_crash() -> None:
    answer: Plain = {"value": 1}
    for _ in range(120):
        answer = {"value": 1, "children": [answer]}
    reasons = check_schema(answer, codec_for(Node).json_schema)
    assert reasons in ([], [("", "is nested too deep to be checked")])


def test_a_type_that_says_by_itself_that_it_is_closed_stays_so() -> None:
    class Closed(pydantic.BaseModel, extra="forbid"):
        x: int

    assert codec_for(Closed).json_schema["additionalProperties"] is False
    with pytest.raises(ValueMismatch):
        codec_for(Closed).from_plain({"x": 1, "y": 2})


@pytest.mark.parametrize("reference", ["#/$defs/absent", "https://example.invalid/schema", "#/properties/a"])
def test_a_reference_that_leads_to_no_definition_stays_as_it_was_written(reference: str) -> None:
    assert reduced_schema({"$ref": reference, "$defs": {"there": {}}}) == {"$ref": reference}


def test_an_answer_beyond_the_stack_is_refused_and_no_crash() -> None:
    answer: Plain = {}
    for _ in range(sys.getrecursionlimit()):
        answer = {"more": answer}
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"additionalProperties": {"$ref": "#/$defs/tree"}}}}
    assert check_schema(answer, schema) == [("", "is nested too deep to be checked")]


def test_of_choices_of_which_one_must_fit_neither_none_nor_two_do() -> None:
    either = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    assert check_schema(1.5, either) == []
    assert check_schema(1, either)
    assert check_schema("x", either)


def test_a_number_that_cannot_be_divided_is_one_reason() -> None:
    asked = {"type": "number", "multipleOf": 0.5}
    assert check_schema(10**400, asked) == [("", "has a number that is too large to be checked")]
