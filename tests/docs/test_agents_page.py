"""docs/agents.md says what the code does: schemas, presets, keys of an entry, limits and versions."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from scripts.agent_schemas import FOLDER, schemas
from tests.docs.pages import ROOT, blocks_of

from hermes_workflows.runner.presets import PRESETS, codex, gemini, hermes
from hermes_workflows.runner.presets.command import places
from hermes_workflows.runner.protocol import AgentRequest, AgentResponse
from hermes_workflows.settings import STDIN, AgentSettings

PAGE = ROOT / "docs" / "agents.md"
TEXT = PAGE.read_text(encoding="utf-8")


def documents(kind: str) -> list[Any]:
    read = [json.loads(block.text) for block in blocks_of(PAGE) if block.language == "json"]
    return [each for each in read if isinstance(each, dict) and each.get("schema") == kind]


@pytest.mark.parametrize("name", schemas())
def test_the_published_schemas_are_those_of_the_code(name: str) -> None:
    written = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert written == json.loads(schemas()[name]), "run `python scripts/agent_schemas.py`"


@pytest.mark.parametrize(("name", "model"), [("agent-request-1", AgentRequest), ("agent-response-1", AgentResponse)])
def test_the_examples_of_the_protocol_fit_their_schemas_and_show_every_field(name: str, model: Any) -> None:
    (example,) = documents("hermes." + name.replace("-1", "/1"))
    jsonschema.validate(example, json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    assert example.keys() == {field.alias or field_name for field_name, field in model.model_fields.items()}


def test_what_we_send_fits_what_we_publish() -> None:
    request = AgentRequest(run="wf", key="a", operation_id="wf/a", name="a", prompt="x", tools=("read",))
    schema = json.loads((FOLDER / "agent-request-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(request.model_dump_json(by_alias=True)), schema)


def test_every_preset_has_its_row_and_every_key_its_line() -> None:
    rows = re.findall(r"^\| `([a-z_`, ]+)` \|", TEXT, re.M)
    named = {name for row in rows for name in row.replace("`", "").split(", ")}
    assert set(PRESETS) <= named
    assert set(AgentSettings._fields) <= named
    assert all(f"`{word}`" in TEXT for word in STDIN)


def test_every_place_of_a_template_is_told() -> None:
    told = set(re.findall(r"`(\{[a-z_]+\})`", TEXT))
    assert {each.strip("{}") for each in told} == places(*told)


def test_the_sizes_of_the_table_are_those_of_the_presets() -> None:
    rows = {
        name: re.search(rf"^\| `{name}` \|.*over ([\d,]+) (KB|MB)", TEXT, re.M)
        for name in ("codex", "gemini", "hermes")
    }
    sizes = {name: int(row[1]) * {"KB": 1000, "MB": 1_000_000}[row[2]] for name, row in rows.items() if row}
    assert sizes == {
        "codex": codex._LONGEST_PROMPT,
        "gemini": gemini._LONGEST_PROMPT,
        "hermes": hermes._LONGEST_PROMPT,
    }


def test_the_runners_it_shows_have_ten_lines_or_fewer() -> None:
    shown = {block.wishes["file"]: block.text for block in blocks_of(PAGE) if "file" in block.wishes}
    assert all(len(shown[name].splitlines()) <= 11 for name in ("agent.py", "agent.sh"))
