"""What an answer looks like, made from its JSON Schema: a tree of parts, each of a kind that a form can show.

    actions   the buttons that send the form: one required `Literal` of the whole answer, or the answer itself
    choice    another `Literal` of few texts         select    an enum, or many; a truth that may be left out
    checkbox  a truth                                number, text, long    one line, digits, many lines
    group     fields of their own                    list      any number of equal parts
    fixed     one value only                         json      whatever no other kind fits

Pure. Which value is right is said by the schema alone, when the answer is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ..core.differences import escaped
from ..core.encoding import Plain
from ..review.forms import resolved

Kind = Literal["actions", "choice", "select", "checkbox", "number", "text", "long", "group", "list", "fixed", "json"]
Schema = Mapping[str, Any]

# Choices that fit beside each other; more are a list to choose from.
_FEW: Final = 6
# Deeper parts are JSON: a schema may contain itself.
_DEEPEST: Final = 6
# Characters of a text that is one line.
_LINE: Final = 200
_ONE_LINE = frozenset({"date", "date-time", "time", "email", "uri", "uuid", "duration", "ipv4", "ipv6", "path"})


@dataclass(frozen=True)
class Shape:
    """One part. `pointer` is its JSON Pointer in the answer, `default` None when it has none.

    `parts` are a group's fields; a list has its items' schema in `item`, read by `item_of`.
    """

    pointer: str
    label: str
    kind: Kind
    schema: Schema
    required: bool = True
    nullable: bool = False
    about: str = ""
    default: Plain = None
    choices: tuple[Plain, ...] = ()
    parts: tuple[Shape, ...] = ()
    least: int = 0

    @property
    def optional(self) -> bool:
        return self.nullable or not self.required


def shape_of(schema: Schema, name: str = "Answer") -> Shape:
    """The shape of a whole answer; `name` is what a form calls it that has no fields for its parts."""
    top = _shape(Shape("", name, "json", schema), schema, schema)
    if top.kind == "choice":
        return replace(top, kind="actions")
    if top.kind == "checkbox":
        # Alone it says nothing of what it is a yes to, and untouched it would be a no.
        return replace(top, kind="actions", choices=(True, False))
    if top.kind != "group" or top.nullable:
        return top
    sending = _sending(top.parts)
    parts = tuple(replace(part, kind="actions") if part is sending else part for part in top.parts)
    return replace(top, parts=parts)


def item_of(shape: Shape, number: int, root: Schema) -> Shape:
    """The shape of one item of a list."""
    item = Shape(f"{shape.pointer}/{number}", f"{shape.label} {number + 1}", "json", {})
    return _shape(item, shape.schema["items"], root)


def unescaped(part: str) -> str:
    """The name that a part of a JSON Pointer means."""
    return part.replace("~1", "/").replace("~0", "~")


def _sending(parts: tuple[Shape, ...]) -> Shape | None:
    able = [part for part in parts if part.kind == "choice" and not part.optional]
    return next((part for part in able if part.pointer == "/action"), able[0] if able else None)


def _shape(known: Shape, schema: Schema, root: Schema) -> Shape:
    part, nullable = resolved(schema, root)
    label = str(schema.get("title") or known.label)
    shape = replace(
        known,
        label=label,
        schema=part,
        nullable=nullable,
        about=str(schema.get("description") or part.get("description") or ""),
        default=schema.get("default"),
    )
    if "const" in part:
        return replace(shape, kind="fixed", choices=(part["const"],))
    if isinstance(part.get("enum"), list) and part["enum"]:
        # An enum has a name and a place of its own in the schema, a Literal stands where it is used.
        few = "$ref" not in _bare(schema) and len(part["enum"]) <= _FEW
        return replace(shape, kind="choice" if few else "select", choices=tuple(part["enum"]))
    return _typed(shape, root)


def _bare(schema: Schema) -> Schema:
    """The one alternative that is not null."""
    parts = [part for part in _list(schema.get("anyOf")) if isinstance(part, Mapping) and part.get("type") != "null"]
    return parts[0] if len(parts) == 1 else schema


def _typed(shape: Shape, root: Schema) -> Shape:
    schema = shape.schema
    match schema.get("type"):
        case "boolean":
            sure = isinstance(shape.default, bool) or not shape.optional
            return replace(shape, kind="checkbox") if sure else replace(shape, kind="select", choices=(True, False))
        case "integer" | "number":
            return replace(shape, kind="number")
        case "string":
            return replace(shape, kind=_of_text(schema))
        case "array" if isinstance(schema.get("items"), Mapping) and "prefixItems" not in schema and _shallow(shape):
            return replace(shape, kind="list", least=_count(schema.get("minItems")))
        case "object" if isinstance(schema.get("properties"), Mapping) and schema["properties"] and _shallow(shape):
            # Names that nobody knows beforehand have no fields.
            return shape if schema.get("additionalProperties") else _group(shape, root)
        case _:
            return shape


def _group(shape: Shape, root: Schema) -> Shape:
    required = [name for name in _list(shape.schema.get("required")) if isinstance(name, str)]
    # What is recorded has its names in the order of the alphabet, but for the list of those that must be given:
    # these come first, as their author has put them.
    place = {name: number for number, name in enumerate(required)}
    named = sorted(shape.schema["properties"].items(), key=lambda pair: place.get(pair[0], len(place)))
    parts = (
        # A question may have come from elsewhere, with a schema that is none.
        _shape(Shape(_below(shape, name), _spoken(name), "json", {}, name in place), _schema(part), root)
        for name, part in named
    )
    return replace(shape, kind="group", parts=tuple(parts))


def _of_text(schema: Schema) -> Kind:
    most = schema.get("maxLength")
    short = isinstance(most, int) and most <= _LINE
    return "text" if short or "pattern" in schema or str(schema.get("format")) in _ONE_LINE else "long"


def _below(shape: Shape, name: str) -> str:
    return f"{shape.pointer}/{escaped(name)}"


def _spoken(name: str) -> str:
    """As Pydantic titles a field; one whose type has a name of its own gets no title from it."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:] if words else name


def _schema(part: Any) -> Schema:
    return part if isinstance(part, Mapping) else {}


def _list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def _shallow(shape: Shape) -> bool:
    return shape.pointer.count("/") < _DEEPEST


def _count(least: Any) -> int:
    return least if isinstance(least, int) and 0 < least <= 20 else 0
