"""A form for an answer: the fields that its JSON Schema asks for, filled with what is known, errors where they belong.

Pure. `posted` reads back what such a form sends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..review.forms import shown
from .posted import MISSING, Errors, Raw, token
from .shapes import Kind, Schema, Shape, item_of, shape_of, unescaped

_HTML_TYPES: Final[Mapping[str, str]] = {"date": "date", "email": "email", "uri": "url"}


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class Field:
    """What a template shows. `text` is what stands in it; `given` says of a part that may be left out that it is not.

    `least` items of a list cannot be removed.
    """

    pointer: str
    label: str
    kind: Kind
    required: bool
    about: str
    text: str = ""
    given: bool = False
    choices: tuple[Choice, ...] = ()
    parts: tuple[Field, ...] = ()
    errors: tuple[str, ...] = ()
    type: str = "text"
    rows: int = 2

    @property
    def name(self) -> str:
        return f"f{self.pointer}"

    @property
    def id(self) -> str:
        """An HTML id: no part of it is foreign text."""
        return "f" + "".join(char if char.isascii() and char.isalnum() else f"-{ord(char)}-" for char in self.pointer)


@dataclass(frozen=True)
class FormView:
    """`actions` are the buttons that send it, None for one plain button; `errors` belong to no field."""

    fields: tuple[Field, ...]
    actions: Field | None
    errors: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        return bool(self.errors) or any(map(_has_errors, (*self.fields, *([self.actions] if self.actions else []))))


def form_view(schema: Schema, value: Any = MISSING, errors: Errors | None = None, *, name: str = "Answer") -> FormView:
    """The form, filled with `value`: an answer that was tried, or one that is proposed."""
    found = dict[str, list[str]]()
    for pointer, reason in errors or ():
        found.setdefault(pointer, []).append(reason)
    top = _field(shape_of(schema, name), value, schema, found)
    fields = top.parts if top.kind == "group" else (top,)
    actions = next((each for each in fields if each.kind == "actions"), None)
    own = top.errors if top.kind == "group" else ()
    # What is left was taken by no field: of names that nobody asked for, or of parts that are shown as JSON.
    rest = [(pointer, reason) for pointer, reasons in found.items() for reason in reasons]
    return FormView(tuple(each for each in fields if each is not actions), actions, (*own, *without_field(rest)))


def without_field(errors: Errors) -> tuple[str, ...]:
    """What is wrong, with its place in the answer: for an answer that is written as one text."""
    return tuple(f"{pointer or 'the answer'} {reason}" for pointer, reason in errors)


def _has_errors(field: Field) -> bool:
    return bool(field.errors) or any(map(_has_errors, field.parts))


def _field(shape: Shape, value: Any, root: Schema, errors: dict[str, list[str]]) -> Field:
    # Of a default, only where nothing is known: an answer that was tried is shown as it was.
    value = shape.default if value is MISSING and shape.default is not None else value
    text = _text(shape, value)
    return Field(
        pointer=shape.pointer,
        label=shape.label,
        kind=shape.kind,
        required=not shape.optional,
        about=shape.about,
        text=text,
        given=_is_given(shape, value),
        choices=tuple(_choices(shape, value)),
        parts=tuple(_parts(shape, value, root, errors)),
        errors=tuple(_taken(shape, errors)),
        type=_HTML_TYPES.get(str(shape.schema.get("format")), "text"),
        rows=min(max(text.count("\n") + 2, 2), 24),
    )


def _text(shape: Shape, value: Any) -> str:
    if value is MISSING or value is None or shape.kind in ("group", "list", "checkbox"):
        return ""
    if isinstance(value, Raw) or (isinstance(value, str) and shape.kind != "json"):
        return str(value)
    if shape.kind == "json":
        return json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    # What a button has put where the schema has no place for it may have nothing in it yet.
    return json.dumps(value, default=repr)


def _is_given(shape: Shape, value: Any) -> bool:
    if shape.kind == "checkbox":
        return value is True
    return value is not MISSING and value is not None


def _choices(shape: Shape, value: Any) -> Sequence[Choice]:
    return [Choice(token(each, shape.choices), _label(each), _same(each, value)) for each in shape.choices]


def _label(choice: Any) -> str:
    if isinstance(choice, bool):
        return "Yes" if choice else "No"
    return shown(choice)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _parts(shape: Shape, value: Any, root: Schema, errors: dict[str, list[str]]) -> Sequence[Field]:
    if shape.kind == "list":
        items = value if isinstance(value, list) else [MISSING] * shape.least
        return [_field(item_of(shape, number, root), item, root, errors) for number, item in enumerate(items)]
    known = value if isinstance(value, Mapping) else {}
    return [_field(part, known.get(_name(part), MISSING), root, errors) for part in shape.parts]


def _name(part: Shape) -> str:
    return unescaped(part.pointer.rpartition("/")[2])


def _taken(shape: Shape, errors: dict[str, list[str]]) -> Sequence[str]:
    """What is wrong here, or anywhere below a part that has no fields of its own; nobody else tells of it again."""
    own = errors.pop(shape.pointer, [])
    if shape.kind in ("group", "list"):
        return own
    below = [pointer for pointer in errors if pointer.startswith(f"{shape.pointer}/")]
    return [
        *own,
        *(f"{pointer.removeprefix(shape.pointer)} {text}" for pointer in below for text in errors.pop(pointer)),
    ]
