"""Answers for workflows that nobody wrote any for: made from the schema of what is asked, the same for the same key.

So a new example takes part by itself. Which answer a call gets must not depend on when it gets it, hence no chance
and no counting: what there is to choose from is chosen by the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_workflows.authoring.workflow import Workflow

# What a command prints: words that also pass for numbers and for names of files.
PRINTED = "3 0\n"


def value_of(schema: Mapping[str, Any], words: str) -> Any:
    """A value that fits the schema; equal words make equal values."""
    return _value(schema, words, schema.get("$defs", {}))


def input_of(workflow: Workflow[Any]) -> Any:
    """The least that the workflow takes: what has a default is left out."""
    codec = workflow.input_codec
    return None if codec is None else _least(codec.json_schema)


def _least(schema: Mapping[str, Any]) -> Any:
    if schema.get("type") != "object":
        return value_of(schema, "input")
    defs = schema.get("$defs", {})
    return {name: _value(schema["properties"][name], f"{name} in", defs) for name in schema.get("required", [])}


def _value(schema: Mapping[str, Any], words: str, defs: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rpartition("/")[2]], words, defs)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _value(_one_of(schema[several], words), words, defs)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _one_of(schema["enum"], words)
    return _of_type(schema, words, defs)


def _of_type(schema: Mapping[str, Any], words: str, defs: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            return {name: _value(part, f"{name} of {words}", defs) for name, part in _fields(schema)}
        case "array":
            return [_value(schema.get("items", {}), f"{words}, {n}", defs) for n in range(1 + _chosen(words, 3))]
        case "integer" | "number":
            return _chosen(words, 1000)
        case "boolean":
            return bool(_chosen(words, 2))
        case "null":
            return None
        case _:
            return words


def _fields(schema: Mapping[str, Any]) -> Any:
    return sorted(schema.get("properties", {}).items())


def _one_of(several: Sequence[Any], words: str) -> Any:
    """Schemas are reduced before they are recorded, which sorts what may stand in any order."""
    return sorted(several, key=repr)[_chosen(words, len(several))]


def _chosen(words: str, count: int) -> int:
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big") % count
