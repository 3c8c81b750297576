"""Pydantic's validators as receipts need them: strict where JSON has a type, closed where fields are declared.

`validate_json(strict=True)` is nearly that. What is changed in the core schema before its validator is built:
unknown fields are refused unless the type allows them; `1`, `1.0` and `true` are three values to enums and literals
too; enum members with values that are not text, and `Literal` members, are found by what they are written as;
bytes arrive through a marker, because JSON text cannot hold them.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable
from typing import Any, Final, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError, SchemaValidator

from ..errors import InvalidInput
from .canonical import Refused
from .encoding import Plain
from .flatten import Flattener

MARKER: Final = "\0bytes"
"""The only key of the object that stands for bytes; no field can have this name, and it is never stored."""

_Node = dict[str, Any]
_CHILDREN = frozenset(
    {
        *("schema", "items_schema", "keys_schema", "values_schema", "extras_schema", "extras_keys_schema"),
        *("lax_schema", "strict_schema", "json_schema", "python_schema", "arguments_schema", "var_args_schema"),
        *("var_kwargs_schema", "choices", "steps", "definitions", "fields"),
    }
)
CHOICES: Final = {"enum": "members", "literal": "expected"}
"""Core schemas of choices, and where they keep them."""


class StrictValidators:
    """The validators of one type: the usual one, and one that takes markers for bytes, made when first needed."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True)
        self._core = cast(_Node, adapter.core_schema)
        rewriting = _Rewriting(self._core, marked=False)
        self.plain = _validator(rewriting.result)
        self.has_any = rewriting.has_any
        self._marked: SchemaValidator | None = None

    @property
    def marked(self) -> SchemaValidator:
        if self._marked is None:
            self._marked = _validator(_Rewriting(self._core, marked=True).result)
        return self._marked


def as_marker(data: object) -> object:
    """For `orjson.dumps(default=…)`."""
    if isinstance(data, bytes):
        return {MARKER: base64.b64encode(data).decode("ascii")}
    raise TypeError(type(data).__name__)


def _validator(schema: _Node) -> SchemaValidator:
    # Else nested models would use the validators of their classes, which are neither strict nor closed.
    return SchemaValidator(cast(Any, schema), _use_prebuilt=False)


class _Rewriting:
    def __init__(self, core: _Node, *, marked: bool) -> None:
        self.has_any = False
        self._marked = marked
        self._definitions = {node["ref"]: node for node in core.get("definitions", ()) if "ref" in node}
        self.result = self.node(core, {})

    def node(self, node: _Node, config: _Node) -> _Node:
        """A changed copy. `config` is that of the record around the node."""
        config = node.get("config") or config
        copy = {key: self._children(value, config) if key in _CHILDREN else value for key, value in node.items()}
        if node["type"] == "dict" and "keys_schema" in node:
            copy["keys_schema"] = self._key(node["keys_schema"], copy["keys_schema"])
        change = _CHANGES.get(node["type"])
        return change(self, copy, config) if change else copy

    def _key(self, node: _Node, copy: _Node) -> _Node:
        """Choices as keys are always text in JSON, whatever their values are."""
        node = self._definitions.get(node.get("schema_ref"), node)
        choices = CHOICES.get(node["type"])
        if choices is None:
            return copy
        # A copy without its name: where it stands as a value it reads otherwise.
        return _before(_by_text(node[choices]), {key: value for key, value in node.items() if key != "ref"})

    def _children(self, value: Any, config: _Node) -> Any:
        if isinstance(value, list):
            return [self._children(item, config) for item in value]
        if isinstance(value, tuple):  # a choice of a union with its label
            return (self._children(value[0], config), *value[1:])
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("type"), str):
            return self.node(value, config)
        return {key: self._children(item, config) for key, item in value.items()}

    def _closed(self, node: _Node, config: _Node) -> _Node:
        behaviour = node.get("extra_behavior") or config.get("extra_fields_behavior")
        if behaviour != "allow":
            return {**node, "extra_behavior": "forbid"}
        self.has_any = True
        if self._marked and "extras_schema" not in node:
            node["extras_schema"] = self._any({"type": "any"}, config)
        return {**node, "extra_behavior": "allow"}

    def _any(self, node: _Node, _: _Node) -> _Node:
        self.has_any = True
        return _after(_unmarked, node) if self._marked else node

    def _bytes(self, node: _Node, _: _Node) -> _Node:
        # A union takes its most exact choice, and a function's result counts as exact: `any` in front lowers that.
        return {"type": "chain", "steps": [{"type": "any"}, _plain_function(_bytes_of), node]}

    def _enum(self, node: _Node, _: _Node) -> _Node:
        members = node["members"]
        if all(type(member.value) is str for member in members):
            return node
        # Flags have values that are no members, and `_missing_` may know others.
        is_open = "missing" in node or issubclass(node["cls"], enum.Flag)
        return _before(_by_written_form(members, is_open=is_open), node)

    def _literal(self, node: _Node, _: _Node) -> _Node:
        if all(type(value) is str for value in node["expected"]):
            return node
        return _before(_by_written_form(node["expected"], is_open=False), node)

    def _union(self, node: _Node, _: _Node) -> _Node:
        # Text fits bytes too (as its UTF-8), but where text is declared beside them it is text.
        node["choices"].sort(key=_takes_bytes)
        return node

    def _generator(self, node: _Node, _: _Node) -> _Node:
        raise InvalidInput("an iterator can be read only once", hint="declare a list or a Sequence")


_CHANGES: dict[str, Callable[[_Rewriting, _Node, _Node], _Node]] = {
    "model-fields": _Rewriting._closed,
    "dataclass-args": _Rewriting._closed,
    "typed-dict": _Rewriting._closed,
    "any": _Rewriting._any,
    "bytes": _Rewriting._bytes,
    "enum": _Rewriting._enum,
    "literal": _Rewriting._literal,
    "union": _Rewriting._union,
    "generator": _Rewriting._generator,
}


def _takes_bytes(choice: Any) -> bool:
    node = choice[0] if isinstance(choice, tuple) else choice
    return bool(node["type"] == "chain" and node["steps"][-1]["type"] == "bytes")


def _plain_function(function: Callable[[Any], Any]) -> _Node:
    return {"type": "function-plain", "function": {"type": "no-info", "function": function}}


def _before(function: Callable[[Any], Any], node: _Node) -> _Node:
    return {"type": "function-before", "function": {"type": "no-info", "function": function}, "schema": node}


def _after(function: Callable[[Any], Any], node: _Node) -> _Node:
    return {"type": "function-after", "function": {"type": "no-info", "function": function}, "schema": node}


def _by_written_form(choices: list[Any], *, is_open: bool) -> Callable[[Any], Any]:
    """Finds the choice that is written as the input is; `is_open` leaves others to the enum itself."""
    table = {_written(choice): choice for choice in choices}

    def find(value: Any) -> Any:
        written = repr(value)
        if written in table:
            return table[written]
        if is_open and not isinstance(value, bool | float):
            return value
        raise _no_choice(choices)

    return find


def _by_text(choices: list[Any]) -> Callable[[Any], Any]:
    table = {Flattener().key(choice): choice for choice in choices}

    def find(value: Any) -> Any:
        if value in table:
            return table[value]
        raise _no_choice(choices)

    return find


def _no_choice(choices: list[Any]) -> PydanticCustomError:
    expected = ", ".join(repr(choice.value if isinstance(choice, enum.Enum) else choice) for choice in choices)
    return PydanticCustomError("literal_error", "Input should be one of {expected}", {"expected": expected})


def _written(choice: Any) -> str:
    # `repr` of a plain value tells 1, 1.0 and True apart, which are equal and hash alike.
    try:
        return repr(Flattener().value(choice))
    except Refused as refused:
        raise InvalidInput(f"{choice!r} cannot be a choice: {refused.reason}", hint=refused.hint) from None


def _bytes_of(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {MARKER}:
        return base64.b64decode(value[MARKER])
    return value.encode() if isinstance(value, str) else value


def _unmarked(value: Any) -> Plain:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {MARKER}:
            return base64.b64decode(value[MARKER])
        return {key: _unmarked(item) for key, item in value.items()}
    return cast(Plain, value)
