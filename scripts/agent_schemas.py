"""Writes the JSON Schemas of the agent protocol into docs/schemas; a test holds them to the code.

python scripts/agent_schemas.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes_workflows.runner.protocol import AgentRequest, AgentResponse

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"


def schemas() -> dict[str, str]:
    """The text of each file by its name."""
    request = AgentRequest.model_json_schema(by_alias=True)
    # A request is always whole; a response says what it wants to.
    request["required"] = list(request["properties"])
    response = AgentResponse.model_json_schema(by_alias=True)
    return {"agent-request-1.json": _published(request), "agent-response-1.json": _published(response)}


def _published(schema: dict[str, Any]) -> str:
    # Both may get further fields without a new version: readers pass over what they do not know.
    kept = {key: value for key, value in _untitled(schema).items() if key != "additionalProperties"}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **kept}, indent=2) + "\n"


def _untitled(node: Any) -> Any:
    """Without the titles that are made of the fields' names."""
    if isinstance(node, dict):
        return {key: _untitled(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    return [_untitled(each) for each in node] if isinstance(node, list) else node


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
