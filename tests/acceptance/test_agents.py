"""Agents through the command line: flags, variables, the registry, and what is told of tokens and cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place

FLOW = """
from hermes_workflows import agent, workflow


@workflow
async def draft(topic: str) -> dict[str, str]:
    text = await agent("writer", f"Write about {topic}.", returns=str, model="big")
    return {"text": text, "checked": await agent("checker", "Check it.", input=text, returns=str)}
"""
ECHO = """
import json, sys
given = sys.stdin.read()
said = json.loads(given)["prompt"] if given.startswith("{") else given
usage = {"input_tokens": 1000, "output_tokens": 20, "cost_usd": 0.5}
output = " ".join([*sys.argv[1:], said.strip()])
print(json.dumps({"schema": "hermes.agent-response/1", "output": output, "usage": usage}))
"""
ANSWERS = [
    {"name": "writer", "output": "A draft.", "usage": {"input_tokens": 100, "output_tokens": 5, "cost_usd": 0.01}},
    {"output": "Fine.", "usage": {"input_tokens": 50, "output_tokens": 2}},
]


def made(root: Path, agents: Any = None, **environment: str) -> Place:
    registry = {"dbs": {"default": "workflows.sqlite"}, "agents": agents or {}}
    here = place(root / "ws", registry, **environment)
    (here.root / "flows" / "draft.py").write_text(FLOW)
    (here.root / "echo.py").write_text(ECHO)
    (here.root / "answers.json").write_text(json.dumps(ANSWERS))
    return here


def drafted(here: Place, *arguments: str, run_id: str = "wf", cwd: str = ".") -> Any:
    """The document of a run after a runner with these arguments."""
    here.run("run", "flows/draft.py", "--id", run_id, "--input-json", '"docs"')
    said = here.run("runner", "run", "--idle-exit-after", "0.1", *arguments, cwd=cwd)
    assert said.code == 0, said.stderr
    return here.run("status", run_id).json


def test_a_flag_names_who_answers_and_files_are_seen_from_where_one_stands(tmp_path: Path) -> None:
    here = made(tmp_path)
    done = drafted(here, "--agent", "*=replay:../answers.json", cwd="flows")
    assert done["result"] == {"text": "A draft.", "checked": "Fine."}


def test_an_earlier_run_answers_for_its_agents(tmp_path: Path) -> None:
    here = made(tmp_path)
    drafted(here, "--agent", "*=replay:answers.json")
    again = drafted(here, "--agent", "*=replay:wf", run_id="again")
    assert (again["result"]["text"], again["usage"]) == ("A draft.", {})


def test_the_registry_names_agents_for_every_runner(tmp_path: Path) -> None:
    echo = f"{sys.executable} echo.py"
    agents = {"writer": {"command": echo, "args": ["{model}"]}, "*": {"preset": "replay", "answers": "answers.json"}}
    assert drafted(made(tmp_path, agents))["result"] == {"text": "big Write about docs.", "checked": "Fine."}


def test_the_flags_of_the_first_system_keep_their_meaning(tmp_path: Path) -> None:
    here = made(tmp_path)
    done = drafted(
        here,
        "--agent-command", sys.executable, "--agent-arg", "echo.py",
        "--agent-model-arg", "--model", "--agent-model-arg", "{model}",
        "--agent-request-stdin", "prompt", "--agent-timeout-seconds", "60",
    )  # fmt: skip
    assert done["result"] == {
        "text": "--model big Write about docs.",
        "checked": 'Check it.\n\nInput (JSON):\n"--model big Write about docs."',
    }


def test_its_variables_are_a_fallback(tmp_path: Path) -> None:
    here = made(
        tmp_path,
        {"checker": {"preset": "replay", "answers": "answers.json"}},
        HERMES_WORKFLOWS_AGENT_COMMAND=sys.executable,
        HERMES_WORKFLOWS_AGENT_ARGS_JSON='["echo.py"]',
        HERMES_WORKFLOWS_AGENT_MODEL_ARGS_JSON='["-m={model}"]',
        HERMES_WORKFLOWS_AGENT_REQUEST_STDIN="json",
        HERMES_WORKFLOWS_AGENT_TIMEOUT_SECONDS="60",
    )
    assert drafted(here)["result"] == {"text": "-m=big Write about docs.", "checked": "Fine."}
    drained = here.run("run", "flows/draft.py", "--drain", "--input-json", '"x"')
    assert drained.json["result"]["checked"] == "Fine."


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (("--agent", "writer"), {}, "--agent: 'writer' is not NAME=PRESET"),
        (("--agent", "writer=cloude"), {}, "did you mean 'claude'?"),
        (("--agent-arg", "x"), {}, "--agent-arg needs an --agent-command"),
        (("--agent-command", "it's"), {}, "--agent-command: "),
        ((), {"ARGS_JSON": "[1]", "COMMAND": "x"}, "HERMES_WORKFLOWS_AGENT_ARGS_JSON: must be a JSON list of texts"),
        ((), {"REQUEST_STDIN": "xml"}, "HERMES_WORKFLOWS_AGENT_REQUEST_STDIN: must be json or prompt"),
        ((), {"TIMEOUT_SECONDS": "-1"}, "HERMES_WORKFLOWS_AGENT_TIMEOUT_SECONDS: must be a number of seconds"),
    ],
)
def test_what_makes_no_agent_is_a_mistake_of_usage(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    named = {f"HERMES_WORKFLOWS_AGENT_{name}": value for name, value in variables.items()}
    said = made(tmp_path, **named).run("runner", "run", "--idle-exit-after", "0", *arguments)
    assert said.code == 2
    assert message in said.error["message"]


def test_tokens_and_cost_are_told_for_call_run_and_workflow(tmp_path: Path) -> None:
    here = made(tmp_path)
    done = drafted(here, "--agent", "*=replay:answers.json")
    drafted(here, "--agent", "*=replay:answers.json", run_id="wf2")
    assert done["usage"] == {"input_tokens": 150, "output_tokens": 7, "cost_usd": 0.01}
    assert done["usage_by_call"]["checker"] == {"input_tokens": 50, "output_tokens": 2, "cost_usd": 0.0}
    assert [run["usage"]["input_tokens"] for run in here.run("list").json] == [150, 150]
    (total,) = here.run("list", "--by-workflow").json
    assert (total["runs"], total["usage"]["input_tokens"], total["usage"]["cost_usd"]) == ({"completed": 2}, 300, 0.02)
    _, shown = here.terminal("status", "wf")
    assert "usage     150 tokens in, 7 out, 0.0100 USD" in shown
    assert "writer   100 tokens in, 5 out, 0.0100 USD" in shown
    assert "300 tokens in" in here.terminal("list", "--by-workflow")[1].replace("\n", " ")
    readme = here.git("show", f"runs/wf:{_readme(here)}")
    assert "100, 5 | 0.0100 |" in readme


def _readme(here: Place) -> str:
    names = here.git("ls-tree", "-r", "--name-only", "runs/wf").splitlines()
    return next(name for name in names if name.startswith("runs/") and name.endswith("README.md"))


def test_usage_is_the_same_after_the_index_was_lost(tmp_path: Path) -> None:
    here = made(tmp_path)
    before = drafted(here, "--agent", "*=replay:answers.json")
    here.sqlite.unlink()
    assert here.run("status", "wf").json == before
