"""Structured output of programs that have it: the schema in their dialect, and the answer taken out again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.runner.programs import Program
from tests.runner.test_presets_real import GOOD


class Kind(Enum):
    note = "note"
    task = 2


@dataclass(frozen=True)
class Part:
    price: Decimal
    seen: datetime | None = None
    risk: Literal["low", "high"] = "low"
    kind: Kind = Kind.note
    where: Path | None = None
    pair: tuple[int, str] = (1, "")


@dataclass(frozen=True)
class Report:
    parts: list[Part]
    other: int | str | None = None


def schema_for(folder: Path, preset: str, returns: Any, **settings: Any) -> Any:
    made = Program(folder, **GOOD[preset])
    made.ask(preset, returns=returns, **settings)
    if preset == "claude":
        return json.loads(made.last.after("--json-schema"))
    return json.loads(made.last.files["schema.json"])


def test_codex_gets_a_schema_whose_every_field_is_required(tmp_path: Path) -> None:
    schema = schema_for(tmp_path, "codex", Report)
    part = schema["$defs"]["Part"]
    assert (schema["required"], schema["additionalProperties"]) == (["parts", "other"], False)
    assert (part["required"], part["additionalProperties"]) == (list(part["properties"]), False)
    assert list(part["properties"]) == ["price", "seen", "risk", "kind", "where", "pair"]
    used = set(re.findall(r'"([A-Za-z$]+)": ', json.dumps([schema, part]))) - part["properties"].keys()
    assert used <= {
        "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "$ref", "$defs",
        "description", "minItems", "maxItems", "parts", "other", "Part", "Kind",
    }  # fmt: skip


@pytest.mark.parametrize("preset", ["claude", "codex", "llm"])
def test_a_schema_has_no_word_that_a_program_may_not_know(tmp_path: Path, preset: str) -> None:
    schema = schema_for(tmp_path, preset, Report, structured=True)
    assert '"format":' not in json.dumps(schema)
    assert "(format: date-time)" in json.dumps(schema)


@pytest.mark.parametrize(("preset", "says"), [("claude", {"value": [1, 2]}), ("codex", '{"value": [1, 2]}')])
def test_an_answer_that_is_no_object_comes_wrapped_and_is_taken_out(tmp_path: Path, preset: str, says: Any) -> None:
    if preset == "claude":
        record = {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "structured_output": says,
            "result": "Done",
        }
    else:
        record = {"type": "item.completed", "item": {"type": "agent_message", "text": says}}
    made = Program(tmp_path, stdout=json.dumps(record))
    assert made.ask(preset, returns=list[int]).output == [1, 2]
    given = made.last.after("--json-schema") if preset == "claude" else made.last.files["schema.json"]
    assert json.loads(given)["properties"]["value"] == {"type": "array", "items": {"type": "integer"}}


def test_what_a_dialect_cannot_say_is_asked_for_in_the_prompt_alone(tmp_path: Path) -> None:
    made = Program(tmp_path, **GOOD["codex"])
    made.ask("codex", returns=dict[str, int])
    assert "--output-schema" not in made.last.argv
    assert "JSON Schema" in made.last.stdin
    assert "additionalProperties" in schema_for(tmp_path, "claude", dict[str, int])


@pytest.mark.parametrize(
    ("preset", "option"), [("claude", "--json-schema"), ("codex", "--output-schema"), ("llm", "--schema")]
)
def test_structured_output_can_be_switched(tmp_path: Path, preset: str, option: str) -> None:
    made = Program(tmp_path, **GOOD[preset])
    made.ask(preset, structured=False)
    assert option not in made.last.argv
    made.ask(preset, structured=True)
    assert option in made.last.argv
