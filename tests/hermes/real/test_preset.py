"""`hermes -z` as an agent of a workflow: the real program, and a model that says what the test wants."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agents.fake_llm import INPUT_TOKENS, REFUSAL, FakeModel
from tests.hermes.real.client import PROGRAM, Client

FLOW = """
from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, workflow


@dataclass
class Judgement:
    risk: Literal["low", "high"]
    words: int


@workflow
async def judge() -> Judgement:
    return await agent("judge", "How risky is it?", returns=Judgement)
"""
ANSWER = {"risk": "low", "words": 42}


def judged(client: Client, model: FakeModel) -> Any:
    """What becomes of a run whose agent is the preset."""
    settings = {"default": "fake-model", "provider": "custom", "base_url": f"{model.url}/v1", "api_key": "fake"}
    lines = [f"  {name}: {json.dumps(value)}\n" for name, value in settings.items()]
    with (client.home / "config.yaml").open("a") as config:
        config.write(f"\nmodel:\n{''.join(lines)}  context_length: 400000\n")
    agents = {"judge": {"preset": "hermes", "command": [str(PROGRAM)], "timeout": 100}}
    (client.work.root / ".hermes" / "workflows.registry.json").write_text(json.dumps({"agents": agents}))
    (client.work.root / "judge.py").write_text(FLOW)
    return client.work.run("run", "judge.py:judge", "--id", "wf", "--drain").json


@pytest.mark.parametrize("said", [ANSWER, f"Sure!\n```json\n{json.dumps(ANSWER)}\n```"])
def test_what_the_model_says_becomes_the_typed_answer_with_its_usage(client: Client, said: Any) -> None:
    with FakeModel(said).serving() as model:
        run = judged(client, model)
    assert run["result"] == ANSWER
    assert "How risky is it?" in model.requests[-1].text
    assert client.work.run("status", "wf").json["usage"]["input_tokens"] >= INPUT_TOKENS


def test_what_the_provider_refuses_is_no_answer(client: Client) -> None:
    with FakeModel(ANSWER, status=400).serving() as model:
        run = judged(client, model)
    assert run["status"] == "failed"
    assert REFUSAL in json.dumps(run["error"])
