"""JSON Schemas as agent programs take them for structured output: objects at the root, few keywords.

What is left out makes the schema weaker, never stronger: every answer is validated against the declared type
afterwards. A keyword that a program does not know is not harmless: with one unknown `format`, Claude Code offers its
model no structured output at all and says nothing; OpenAI's models refuse the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..candidates import Printed

_WRAPPED = "value"
_KEPT = frozenset({"type", "enum", "required", "description", "$ref", "minimum", "maximum", "minItems", "maxItems"})


@dataclass(frozen=True)
class Structured:
    """The schema to pass on. `wrapped` says that the answer comes as the `value` of an object."""

    schema: dict[str, Any]
    wrapped: bool

    def unwrap(self, said: Any) -> Any:
        """The answer in what the program said, as a value or as text; anything else as it is."""
        if not self.wrapped:
            return said
        values = [one.value for one in Printed.of(said).found] if isinstance(said, str) else [said]
        for value in values:
            if isinstance(value, dict) and value.keys() == {_WRAPPED}:
                return value[_WRAPPED]
        return said


class _Unsayable(Exception):
    """The closed dialect has no words for a schema."""


def structured(schema: Mapping[str, Any], *, closed: bool = False) -> Structured | None:
    """The schema in the dialect, or None when there is nothing to say in it.

    `closed`: each object lists all its fields and all are required, as OpenAI's strict mode wants it; maps of
    arbitrary keys and values of any type cannot be said there. Text needs no structure.
    """
    if schema.get("type") == "string" and "enum" not in schema:
        return None
    translation = _Translation(closed)
    try:
        root = translation.node({key: value for key, value in schema.items() if key != "$defs"})
        definitions = {name: translation.node(node) for name, node in schema.get("$defs", {}).items()}
    except _Unsayable:
        return None
    wrapped = root.get("type") != "object"
    if wrapped:
        root = {"type": "object", "properties": {_WRAPPED: root}, "required": [_WRAPPED], "additionalProperties": False}
    return Structured({**root, "$defs": definitions} if definitions else root, wrapped)


class _Translation:
    def __init__(self, closed: bool) -> None:
        self._closed = closed

    def node(self, node: Any) -> dict[str, Any]:
        if not isinstance(node, Mapping):
            node = {}
        made = {key: value for key, value in node.items() if key in _KEPT}
        if "const" in node:
            made["enum"] = [node["const"]]
        if "format" in node:
            made["description"] = f"{made.get('description', '')} (format: {node['format']})".strip()
        if choices := node.get("anyOf") or node.get("oneOf"):
            made["anyOf"] = [self.node(choice) for choice in choices]
        made |= self._items(node)
        if node.get("type") == "object":
            made |= self._object(node)
        if self._closed and not made.keys() & {"type", "enum", "$ref", "anyOf"}:
            raise _Unsayable
        return made

    def _items(self, node: Mapping[str, Any]) -> dict[str, Any]:
        if "prefixItems" in node:
            return {"items": {"anyOf": [self.node(item) for item in node["prefixItems"]]}}
        if node.get("type") == "array":
            return {"items": self.node(node.get("items"))}
        return {}

    def _object(self, node: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: self.node(field) for name, field in node.get("properties", {}).items()}
        others = node.get("additionalProperties", True)
        if not self._closed:
            more = self.node(others) if isinstance(others, Mapping) else others
            return {"properties": fields, "additionalProperties": more}
        if others is not False:
            raise _Unsayable
        return {"properties": fields, "required": list(fields), "additionalProperties": False}
