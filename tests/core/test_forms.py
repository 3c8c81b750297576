"""Forms: what is asked for a schema, and what typed text becomes."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.errors import InvalidInput
from hermes_workflows.review.forms import Field, form_of, read

REVIEW = {
    "type": "object",
    "properties": {
        "action": {"enum": ["approve", "revise"], "type": "string"},
        "feedback": {"type": "string", "default": "", "description": "what to change"},
        "score": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "risk": {"$ref": "#/$defs/Risk"},
        "parts": {"type": "array", "items": {"type": "string"}},
        "sure": {"type": "boolean"},
    },
    "required": ["action", "risk"],
    "$defs": {"Risk": {"enum": ["low", "high"], "type": "string"}},
}


def field(name: str) -> Field:
    return form_of(REVIEW).field(name)


def test_every_property_is_a_field_in_the_authors_order() -> None:
    assert [(one.name, one.kind) for one in form_of(REVIEW).fields] == [
        ("action", "choice"),
        ("feedback", "text"),
        ("score", "integer"),
        ("risk", "choice"),
        ("parts", "json"),
        ("sure", "boolean"),
    ]


def test_choices_come_from_a_literal_and_from_an_enum_behind_a_reference() -> None:
    assert field("action").choices == ("approve", "revise")
    assert field("risk").choices == ("low", "high")


def test_what_may_be_left_out_is_known() -> None:
    assert [one.name for one in form_of(REVIEW).fields if one.required] == ["action", "risk"]
    assert field("feedback").about == "what to change"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("action", "revise", "revise"),
        ("action", "1", "approve"),
        ("feedback", " Ship it. ", "Ship it."),
        ("feedback", "7", "7"),
        ("score", "7", 7),
        ("score", "", None),
        ("sure", "Yes", True),
        ("parts", '["a", "b"]', ["a", "b"]),
        ("parts", "not json", "not json"),
    ],
)
def test_text_becomes_the_fields_value(name: str, text: str, value: Any) -> None:
    assert read(field(name), text) == value


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("action", "aprove", "one of approve, revise"),
        ("action", "3", "one of approve, revise"),
        ("score", "7.5", "a whole number"),
        ("score", "true", "a whole number"),
        ("sure", "maybe", "yes or no"),
    ],
)
def test_text_that_fits_nothing_is_told_what_is_wanted(name: str, text: str, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be {wanted}"):
        read(field(name), text)


def test_an_unknown_field_is_told_the_nearest_one() -> None:
    with pytest.raises(InvalidInput) as caught:
        form_of(REVIEW).field("feedbak")
    assert caught.value.hint == "did you mean 'feedback'?"


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "array"}, {}, {"type": "object"}])
def test_an_answer_that_is_no_object_with_fields_is_one_value(schema: dict[str, Any]) -> None:
    form = form_of(schema)
    assert not form.is_object
    assert form.assemble({"": "x"}) == "x"


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert form_of({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}).fields[0].kind == "json"


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": 5},
        {"anyOf": [True, {"type": "null"}]},
        {"$ref": "#/$defs/A", "$defs": 5},
        {"$ref": "#/$defs/A", "$defs": {"A": 5}},
        {"enum": 5},
        {"properties": {"a": True}, "required": 5},
    ],
)
def test_a_schema_that_is_none_asks_for_json(schema: dict[str, Any]) -> None:
    """A question that was fetched may hold anything, and is shown all the same."""
    assert [field.kind for field in form_of(schema).fields] == ["json"]


def test_an_object_is_assembled_from_what_was_given_only() -> None:
    assert form_of(REVIEW).assemble({"action": "approve"}) == {"action": "approve"}
