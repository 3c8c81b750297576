"""What to ask a person, made from a JSON Schema: the fields of an answer, and how typed text becomes their values.

Pure: the command line asks with it, and so can any other channel that has one line of text for a field.
Whether the whole answer fits is not decided here but by `answer()`, for every channel alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..core.encoding import Plain, parse
from ..core.spelling import suggestion
from ..errors import InvalidInput

Kind = Literal["choice", "boolean", "integer", "number", "text", "json"]

_KINDS: Mapping[str, Kind] = {"boolean": "boolean", "integer": "integer", "number": "number", "string": "text"}
_BOOLEANS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True)
class Field:
    """One thing to ask. `name` is "" when the answer is a single value and no object."""

    name: str
    kind: Kind
    required: bool = True
    choices: tuple[Plain, ...] = ()
    nullable: bool = False
    default: Plain = None
    about: str = ""


@dataclass(frozen=True)
class Form:
    fields: tuple[Field, ...]

    @property
    def is_object(self) -> bool:
        return not (len(self.fields) == 1 and self.fields[0].name == "")

    def field(self, name: str) -> Field:
        """Raises InvalidInput with the nearest name."""
        for field in self.fields:
            if field.name == name and name:
                return field
        names = [field.name for field in self.fields if field.name]
        raise InvalidInput(f"the answer has no field {name!r}", hint=suggestion(name, names, "fields"))

    def assemble(self, values: Mapping[str, Plain]) -> Plain:
        """The answer made of what was given for its fields."""
        return dict(values) if self.is_object else values.get("")


def form_of(schema: Mapping[str, Any]) -> Form:
    """The fields that an answer to this schema has, in the order the author wrote them."""
    top, nullable = resolved(schema, schema)
    properties = top.get("properties")
    if nullable or not isinstance(properties, Mapping) or not properties:
        return Form((_field("", schema, schema, required=True),))
    required = _list(top.get("required"))
    fields = (_field(name, _object(part), schema, required=name in required) for name, part in properties.items())
    return Form(tuple(fields))


def read(field: Field, text: str) -> Plain:
    """The value that `text` means for this field. Raises InvalidInput that says what is wanted."""
    text = text.strip()
    if not text and field.nullable:
        return None
    match field.kind:
        case "choice":
            return _choice(field, text)
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise _wanted(field, "yes or no")
            return _BOOLEANS[text.lower()]
        case "integer" | "number":
            return _number(field, text)
        case "json":
            return _json(text)
        case "text":
            return text


def _field(name: str, schema: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> Field:
    part, nullable = resolved(schema, root)
    choices = tuple(_list(part["enum"])) if "enum" in part else (part["const"],) if "const" in part else ()
    kind: Kind = "choice" if choices else _KINDS.get(str(part.get("type")), "json")
    about = str(schema.get("description") or part.get("description") or "")
    return Field(name, kind, required, choices, nullable, schema.get("default"), about)


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema behind references and `Optional`, and whether null is allowed."""
    nullable, seen = False, 0
    while seen < 20:
        seen += 1
        if (name := str(schema.get("$ref", ""))).startswith("#/$defs/"):
            schema = _object(_object(root.get("$defs")).get(name.removeprefix("#/$defs/")))
            continue
        parts = [part for part in map(_object, _list(schema.get("anyOf"))) if part.get("type") != "null"]
        if len(parts) != 1:
            return schema, nullable
        nullable, schema = True, parts[0]
    return {}, nullable


def _object(part: Any) -> Mapping[str, Any]:
    """A question may have come from elsewhere, with a schema that is none."""
    return part if isinstance(part, Mapping) else {}


def _list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def _choice(field: Field, text: str) -> Plain:
    by_text = {shown(choice): choice for choice in field.choices}
    if text in by_text:
        return by_text[text]
    if text.isdecimal() and 1 <= int(text) <= len(field.choices):
        return field.choices[int(text) - 1]
    raise _wanted(field, "one of " + ", ".join(by_text))


def shown(choice: Plain) -> str:
    """A choice as a person reads and types it."""
    return choice if isinstance(choice, str) else json.dumps(choice)


def _number(field: Field, text: str) -> Plain:
    value = _json(text)
    wanted = int if field.kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise _wanted(field, "a whole number" if field.kind == "integer" else "a number")
    return value


def _json(text: str) -> Plain:
    """JSON when it is that, else the text itself: a field that takes several types is rarely asked for in quotes."""
    try:
        return parse(text.encode())  # type: ignore[return-value]  # Json is Plain without bytes
    except InvalidInput:
        return text


def _wanted(field: Field, what: str) -> InvalidInput:
    return InvalidInput(f"{field.name or 'the answer'} must be {what}")
