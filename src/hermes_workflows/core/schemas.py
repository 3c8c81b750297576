"""JSON Schemas of declared types: in full for forms and agents, reduced for fingerprints.

They describe the decoded value, and as far as JSON Schema can say it they allow no more than the typed reader does:
an answer may be accepted where the workflow's code is not at hand, and must not fail the run afterwards.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ..errors import InvalidInput
from .canonical import Refused, dumps
from .flatten import Flattener
from .strictness import CHOICES

_REFERENCE = "#/$defs/"

_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset(
    {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedProperties"}
)
_VALUES = frozenset(
    {
        *("type", "enum", "const", "required", "format", "pattern", "minLength", "maxLength", "contentEncoding"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "dependentRequired"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties"),
    }
)


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema), schema)

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        # Pydantic's own pattern for the text changes with its version, and fingerprints must not.
        text = {"type": "string", "format": "decimal"}
        choices = super().decimal_schema(schema)["anyOf"]
        return {"anyOf": [text if choice.get("type") == "string" else choice for choice in choices]}

    def definitions_schema(self, schema: Any) -> JsonSchemaValue:
        self._core_definitions = {node["ref"]: node for node in schema["definitions"] if "ref" in node}
        return super().definitions_schema(schema)

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        written = super().dict_schema(schema)
        keys = schema.get("keys_schema", {})
        keys = getattr(self, "_core_definitions", {}).get(keys.get("schema_ref"), keys)
        # Pydantic describes keys by what they become; in JSON they are text.
        if keys.get("type") == "int":
            written["propertyNames"] = {"pattern": "^-?[0-9]+$"}
        elif keys.get("type") in CHOICES:
            written["propertyNames"] = {"enum": [Flattener().key(choice) for choice in keys[CHOICES[keys["type"]]]]}
        return written

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        written = super().enum_schema(schema)
        if issubclass(schema["cls"], enum.Flag):
            del written["enum"]  # members may be combined
        return written

    def encode_default(self, dft: Any) -> Any:
        # Pydantic writes a nested or mixed set in the order of its hashes, another one in each process.
        try:
            flat = Flattener().value(dft)
            dumps(cast(Any, flat))
        except (Refused, InvalidInput):
            return super().encode_default(dft)
        return flat


def _closed(written: JsonSchemaValue, core: Any) -> JsonSchemaValue:
    allows = "allow" in (core.get("extra_behavior"), core.get("config", {}).get("extra_fields_behavior"))
    if "properties" in written or written.get("type") == "object":
        if allows:
            written.setdefault("additionalProperties", True)
        elif written.get("additionalProperties", True) is True:
            written["additionalProperties"] = False
    return written


def full_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema with titles, descriptions and defaults, as a form or an agent needs it."""
    return adapter.json_schema(schema_generator=_Generator, mode="validation", by_alias=True)


def reduced_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Only what decides whether a value is valid, in one order and with numbered definitions.

    So a new title, docstring or class name, and another order of fields or choices, leave a fingerprint alone.
    Raises InvalidInput for what is no schema.
    """
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, Mapping):
        raise InvalidInput("'$defs' of a JSON Schema must be an object")
    return _Reduction(definitions).document(schema)


def name_of(tp: Any) -> str:
    """A declared type as people write it, without modules and addresses."""
    if tp is None or tp is type(None):
        return "None"
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        return name_of(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(name_of, arguments))
    if origin is typing.Literal:
        return f"Literal[{', '.join(str(a) if isinstance(a, enum.Enum) else repr(a) for a in arguments)}]"
    own = getattr(tp, "__name__", None) or getattr(tp, "_name", None) or type(tp).__name__
    if origin is None or not arguments:
        return str(own)
    return f"{own}[{', '.join('...' if a is ... else name_of(a) for a in arguments)}]"


class _Reduction:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._numbers: dict[str, str] = {}

    def document(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        out = self.schema({key: value for key, value in schema.items() if key != "$defs"})
        reduced: dict[str, Any] = {}
        while len(reduced) < len(self._numbers):  # a definition may name further ones
            name, number = list(self._numbers.items())[len(reduced)]
            reduced[number] = self.schema(self._definitions[name])
        return {**out, "$defs": reduced} if reduced else out

    def schema(self, node: Any) -> Any:
        if not isinstance(node, Mapping):
            return node
        if wrong := next(
            (key for key, shape in _SHAPES.items() if key in node and not isinstance(node[key], shape)), None
        ):
            raise InvalidInput(f"{wrong!r} of a JSON Schema cannot be {node[wrong]!r:.40}")
        reduced = {key: self.keyword(key, node[key]) for key in sorted(node) if key in _KEPT}
        if reduced.get("additionalProperties") is True:
            del reduced["additionalProperties"]
        return reduced

    def keyword(self, key: str, value: Any) -> Any:
        if key == "$ref":
            return self.reference(value)
        if key in _MAPS_OF_SCHEMAS:
            return {name: self.schema(value[name]) for name in sorted(value)}
        if key in _LISTS_OF_SCHEMAS:
            return [self.schema(item) for item in value]
        if key in _SCHEMAS:
            return self.schema(value)
        if key in ("enum", "required") or (key == "type" and isinstance(value, list)):
            return sorted(value, key=dumps)
        return value

    def reference(self, value: str) -> str:
        name = value.removeprefix(_REFERENCE).replace("~1", "/").replace("~0", "~")
        if name not in self._definitions:
            return value
        return _REFERENCE + self._numbers.setdefault(name, str(len(self._numbers) + 1))


# A schema may come from a file that anybody has written.
_SHAPES: Mapping[str, type] = {
    "$ref": str,
    "enum": list,
    "required": list,
    **dict.fromkeys(_MAPS_OF_SCHEMAS, Mapping),
    **dict.fromkeys(_LISTS_OF_SCHEMAS, list),
}
_KEPT = _MAPS_OF_SCHEMAS | _LISTS_OF_SCHEMAS | _SCHEMAS | _VALUES | {"$ref"}
