"""Forms are made of a JSON Schema, and what they send back is the answer that was written into them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.web.filling import sent

from hermes_workflows.core.values import codec_for
from hermes_workflows.web.forms import Field, FormView, form_view
from hermes_workflows.web.posted import MISSING, Draft, edited, read
from hermes_workflows.web.shapes import Kind


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    name: str
    count: int = 1


@dataclass
class Answer:
    action: Literal["approve", "revise"]
    feedback: str
    urgent: bool
    colour: Colour
    items: list[Item]
    tone: Literal["dry", "warm"] = "dry"
    tags: list[str] = field(default_factory=list)
    limit: float | None = None
    extra: Item | None = None
    due: date | None = None
    free: dict[str, int] = field(default_factory=dict)
    sure: bool | None = None
    notify: bool = True


SCHEMA = codec_for(Answer).json_schema
FULL: dict[str, Any] = {
    "action": "revise",
    "feedback": "two\nlines & <tags>",
    "urgent": True,
    "colour": "blue",
    "items": [{"name": "a/b~c", "count": 2}, {"name": "", "count": 0}],
    "tone": "warm",
    "tags": ["x", ""],
    "limit": 2.5,
    "extra": {"name": "e", "count": 9},
    "due": "2026-11-30",
    "free": {"n": 1},
    "sure": False,
    "notify": False,
}
LEAST: dict[str, Any] = {"action": "approve", "feedback": "", "urgent": False, "colour": "red", "items": []}


def by_name(view: FormView) -> dict[str, Field]:
    return {each.pointer.removeprefix("/"): each for each in view.fields}


def test_each_type_becomes_the_field_that_people_expect() -> None:
    view = form_view(SCHEMA)
    assert view.actions is not None
    assert [choice.value for choice in view.actions.choices] == ["approve", "revise"]
    kinds: dict[str, Kind] = {name: each.kind for name, each in by_name(view).items()}
    assert kinds == {
        "feedback": "long",
        "urgent": "checkbox",
        "colour": "select",
        "items": "list",
        "tone": "choice",
        "tags": "list",
        "limit": "number",
        "extra": "group",
        "due": "text",
        "free": "json",
        "sure": "select",
        "notify": "checkbox",
    }


@pytest.mark.parametrize("answer", [FULL, LEAST], ids=["full", "least"])
def test_what_a_filled_form_sends_is_the_answer(answer: dict[str, Any]) -> None:
    draft = read(SCHEMA, sent(form_view(SCHEMA, answer)))
    assert draft.check(SCHEMA) == []
    assert codec_for(Answer).from_plain(draft.payload) == codec_for(Answer).from_plain(answer)


_TYPES = [
    Answer,
    Item,
    Literal["a", "b"],
    Colour,
    bool,
    int,
    str,
    list[str],
    list[list[int]],
    Item | None,
    dict[str, int],
]
_VALUES: dict[int, Any] = {
    0: FULL, 1: {"name": "n", "count": 3}, 2: "b", 3: "red", 4: True, 5: -7, 6: "a\n\nb", 7: ["", "x"],
    8: [[1], []], 9: {"name": "n", "count": 1}, 10: {"a": 1},
}  # fmt: skip


@pytest.mark.parametrize("number", range(len(_TYPES)))
def test_an_answer_of_any_type_comes_back_as_it_was(number: int) -> None:
    schema = codec_for(_TYPES[number]).json_schema
    draft = read(schema, sent(form_view(schema, _VALUES[number])))
    assert draft.check(schema) == []
    assert draft.value == _VALUES[number]


_ANSWERS = st.fixed_dictionaries(
    {
        "name": st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r")),
        "count": st.integers(-(2**53), 2**53),
    }
)


@given(_ANSWERS)
@settings(max_examples=60, deadline=None)
def test_no_text_and_no_number_is_changed_on_its_way_through_a_form(answer: dict[str, Any]) -> None:
    schema = codec_for(Item).json_schema
    assert read(schema, sent(form_view(schema, answer))).value == answer


def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays() -> None:
    form = sent(form_view(SCHEMA, FULL)) | {"f/limit": ["many"], "f/free": ["{bad"], "f/items/0/count": ["1.5"]}
    draft = read(SCHEMA, form)
    errors = draft.check(SCHEMA)
    view = by_name(form_view(SCHEMA, draft.value, errors))
    assert "is not JSON" in view["free"].errors[0]
    assert view["free"].text == "{bad"
    draft = read(SCHEMA, form | {"f/free": ["{}"]})
    view = by_name(form_view(SCHEMA, draft.value, draft.check(SCHEMA)))
    assert view["limit"].errors
    assert view["limit"].text == "many"
    assert view["items"].parts[0].parts[1].errors == ("should be integer, not 1.5",)


def test_an_error_that_no_field_has_is_told_once_above_them() -> None:
    view = form_view(SCHEMA, FULL, [("/other", "is not asked for"), ("/free/x", "should be integer")])
    assert view.errors == ("/other is not asked for",)
    assert by_name(view)["free"].errors == ("/x should be integer",)


def test_items_are_added_and_removed_without_losing_what_was_typed() -> None:
    draft = edited(read(SCHEMA, sent(form_view(SCHEMA, FULL))), "add /items")
    assert [part.parts[0].text for part in by_name(form_view(SCHEMA, draft.value))["items"].parts] == ["a/b~c", "", ""]
    draft = edited(draft, "remove /items/0")
    assert [item for item in draft.value["items"] if item is not MISSING] == [FULL["items"][1]]
    before = repr(draft.value)
    for nonsense in (
        "remove /items/99",
        "remove /nothing/0",
        "add",
        "",
        "remove /items/-1",
        "add /feedback",
        "add /items/7/x",
    ):
        assert repr(edited(draft, nonsense).value) == before


def test_an_item_can_be_added_where_nothing_was_given() -> None:
    schema = codec_for(Answer | None).json_schema
    assert edited(Draft(MISSING), "add /tags").value == {"tags": [MISSING]}
    assert form_view(schema, {"tags": [MISSING]}).fields


def test_nothing_is_added_beyond_what_a_page_can_hold() -> None:
    form = sent(form_view(SCHEMA, FULL)) | {"n/tags": ["99999"]}
    draft = edited(read(SCHEMA, form), "add /tags")
    assert len(draft.value["tags"]) == 200
    assert read(SCHEMA, form | {"n/tags": ["9" * 5000]}).value.get("tags", []) == []


def test_an_optional_part_is_given_when_somebody_wrote_into_it() -> None:
    form = sent(form_view(SCHEMA, LEAST)) | {"f/extra/name": ["e"]}
    assert read(SCHEMA, form).value["extra"] == {"name": "e", "count": 1}
    assert "extra" not in read(SCHEMA, sent(form_view(SCHEMA, LEAST))).value


def test_a_default_is_shown_and_can_be_emptied() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "additionalProperties": False}
    view = form_view(schema)
    assert view.fields[0].text == "x"
    assert read(schema, {"f/a": [""]}).value == {"a": ""}


def test_a_schema_that_contains_itself_ends_as_json() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
    schema = {"$ref": "#/$defs/n", "$defs": {"n": node}}
    part = form_view(schema).fields[0]
    for _ in range(20):
        if part.kind == "json":
            return
        part = part.parts[0]
    pytest.fail("the form has no end")


def test_choices_that_read_alike_are_told_apart() -> None:
    schema = {"enum": [1, "1", True, "true"]}
    view = form_view(schema, "1")
    assert view.actions is not None
    for choice, value in zip(view.actions.choices, schema["enum"], strict=True):
        got = read(schema, {"f": [choice.value]}).value
        assert (type(got), got) == (type(value), value)


_WORDS = st.sampled_from(
    ["type", "properties", "items", "enum", "const", "anyOf", "required", "$ref", "$defs", "title", "default", "x"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)
_SCHEMAS = st.dictionaries(_WORDS, _JSON | st.sampled_from(["object", "array", "string", "boolean", "#/$defs/x"]))


@given(_SCHEMAS, _JSON)
@settings(max_examples=200, deadline=None)
def test_a_schema_that_is_none_still_has_a_form(schema: dict[str, Any], value: Any) -> None:
    view = form_view(schema, value, [("/x", "is wrong")])
    assert view.wrong
    assert isinstance(read(schema, sent(view)), Draft)


def test_what_must_be_given_comes_first_as_its_author_has_put_it() -> None:
    recorded = {**SCHEMA, "properties": dict(sorted(SCHEMA["properties"].items()))}
    names = [each.pointer for each in form_view(recorded).fields]
    assert names[:6] == ["/feedback", "/urgent", "/colour", "/items", "/due", "/extra"]


def test_a_yes_or_no_that_is_the_whole_answer_is_two_buttons() -> None:
    schema = codec_for(bool).json_schema
    form = form_view(schema)
    assert form.fields == ()
    assert form.actions is not None
    assert [choice.label for choice in form.actions.choices] == ["Yes", "No"]
    for press, answer in (("true", True), ("false", False)):
        draft = read(schema, sent(form, press))
        assert (draft.value, draft.check(schema)) == (answer, [])
    assert read(schema, {}).check(schema) == [("", "is missing")]


def test_fields_are_called_alike_whether_their_type_has_a_name_of_its_own_or_not() -> None:
    schema = {"type": "object", "properties": {"due_day": {"$ref": "#/$defs/Day"}, "b": {"title": "As said"}, "_": {}}}
    shown = form_view({**schema, "$defs": {"Day": {"enum": ["mon", "tue"]}}}).fields
    assert sorted(field.label for field in shown) == ["As said", "Due day", "_"]
