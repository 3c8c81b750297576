"""From a posted form to the answer it gives; the inverse of `forms`.

The field of a part is called `f` and its JSON Pointer (`f/items/0/name`). A list says how many items it has in
`n` and its pointer, a part that may be left out says that it is given in `has` and its pointer.
A value that is no number or no choice stays the text it is: the schema says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ..core.encoding import Plain, parse
from ..core.values import check_schema
from ..errors import InvalidInput
from ..review.forms import shown
from .shapes import Schema, Shape, item_of, shape_of, unescaped

Form = Mapping[str, Sequence[str]]
Errors = list[tuple[str, str]]

MOST_ITEMS: Final = 200


class _Missing:
    """Nothing was given."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Raw(str):
    """What was typed as JSON and is none."""

    __slots__ = ()


@dataclass
class Draft:
    """What a form holds: `value` may have MISSING and Raw in it; `errors` are what no schema can say."""

    value: Any
    errors: Errors = field(default_factory=list)

    def check(self, schema: Schema) -> Errors:
        """Every reason, as (JSON Pointer, reason), why this is no answer yet."""
        if self.errors or self.value is MISSING:
            return self.errors or [("", "is missing")]
        return check_schema(self.payload, schema)

    @property
    def payload(self) -> Plain:
        return cast(Plain, self.value)


def read(schema: Schema, form: Form) -> Draft:
    """The answer that a form gives."""
    draft = Draft(None)
    draft.value = _read(shape_of(schema), form, schema, draft.errors)
    return draft


def edited(draft: Draft, wish: str) -> Draft:
    """The draft after `add /items` or `remove /items/0`; unchanged for what is not there."""
    verb, _, pointer = wish.partition(" ")
    way = [unescaped(part) for part in pointer.split("/")[1:]]
    if verb == "add":
        draft.value = _with_one_more(draft.value, way)
    elif verb == "remove" and way:
        items = _at(draft.value, way[:-1])
        if isinstance(items, list) and _is_place(items, way[-1]):
            del items[int(way[-1])]
    return draft


def _with_one_more(value: Any, way: Sequence[str]) -> Any:
    """`value` with an item added to the list at `way`; what leads there is made, where nothing was given."""
    if value is MISSING or value is None:
        value = {} if way else []
    if not way:
        return [*value, MISSING] if isinstance(value, list) and len(value) < MOST_ITEMS else value
    if isinstance(value, list) and _is_place(value, way[0]):
        value[int(way[0])] = _with_one_more(value[int(way[0])], way[1:])
    elif isinstance(value, dict):
        return value | {way[0]: _with_one_more(value.get(way[0]), way[1:])}
    return value


def _at(value: Any, way: Sequence[str]) -> Any:
    for part in way:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and _is_place(value, part):
            value = value[int(part)]
        else:
            return None
    return value


def _is_place(items: Sequence[Any], part: str) -> bool:
    return part.isdecimal() and len(part) < 6 and int(part) < len(items)


def _read(shape: Shape, form: Form, root: Schema, errors: Errors) -> Any:
    match shape.kind:
        case "group":
            return _group(shape, form, root, errors)
        case "list":
            return _list(shape, form, root, errors)
        case "checkbox":
            return f"f{shape.pointer}" in form
        case "fixed":
            return shape.choices[0] if shape.required else MISSING
        case "json":
            return _json(shape, _text(shape, form), errors)
        case _:
            return _line(shape, _text(shape, form))


def _text(shape: Shape, form: Form) -> str | None:
    given = form.get(f"f{shape.pointer}")
    # A browser ends lines as a network does; the author of a text does not mean that.
    return given[-1].replace("\r\n", "\n") if given else None


def _line(shape: Shape, text: str | None) -> Any:
    if text is None:
        return MISSING
    if shape.kind in ("text", "long"):
        return text if text or not _is_left_out(shape) else _nothing(shape)
    if not (text := text.strip()):
        return _nothing(shape)
    if shape.kind == "number":
        return _number(text)
    return next((choice for choice in shape.choices if token(choice, shape.choices) == text), text)


def _is_left_out(shape: Shape) -> bool:
    # Whoever empties a field that was filled means the empty text.
    return shape.optional and not shape.default


def _nothing(shape: Shape) -> Any:
    return None if shape.nullable and shape.required else MISSING


def _number(text: str) -> Any:
    try:
        value = parse(text.encode())
    except InvalidInput:
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


def _json(shape: Shape, text: str | None, errors: Errors) -> Any:
    if text is None or not text.strip():
        return _nothing(shape)
    try:
        return parse(text.encode())
    except InvalidInput as error:
        # A field that takes several types is rarely written with quotes.
        if not check_schema(text, shape.schema):
            return text
        errors.append((shape.pointer, f"is {error.message}"))
        return Raw(text)


def _group(shape: Shape, form: Form, root: Schema, errors: Errors) -> Any:
    if shape.pointer and shape.optional and not _is_given(shape, form):
        return _nothing(shape)
    value = {}
    for part in shape.parts:
        if (given := _read(part, form, root, errors)) is not MISSING:
            value[unescaped(part.pointer.rpartition("/")[2])] = given
    return value


def _is_given(shape: Shape, form: Form) -> bool:
    """By its mark, or because somebody wrote into it."""
    if f"has{shape.pointer}" in form:
        return True
    typed = (part for part in shape.parts if part.kind in ("text", "long", "number", "json"))
    return any(text and text != shown(part.default) for part in typed if (text := _text(part, form)))


def _list(shape: Shape, form: Form, root: Schema, errors: Errors) -> Any:
    said = (form.get(f"n{shape.pointer}") or ["0"])[-1]
    count = min(int(said), MOST_ITEMS) if said.isdecimal() and len(said) < 6 else 0
    if not count and shape.optional and not shape.default:
        return _nothing(shape)
    items = [_read(item_of(shape, number, root), form, root, errors) for number in range(count)]
    # What was added and left empty is an empty text where texts are wanted; elsewhere the schema asks for it.
    return ["" if item is MISSING else item for item in items]


def token(choice: Plain, choices: Sequence[Plain]) -> str:
    """A choice as a form sends it: as a person reads it, with quotes when `1` and `"1"` are two choices."""
    text = shown(choice)
    alike = sum(shown(other) == text for other in choices) > 1
    return f'"{text}"' if alike and isinstance(choice, str) else text
