"""`agent()` from the body to its receipts: who is asked, what it is given, what is recorded, and when it is over."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, scripted_agent

from hermes_workflows.core.receipts import Receipt
from hermes_workflows.settings import AgentSettings

ASK = """
@workflow
async def flow() -> Any:
    return await agent("writer", "Write.", returns=Any{more})
"""
ECHO = "say(request)"


def desk_of(root: Path, registry: dict[str, Any] | None = None, **environment: str) -> Desk:
    environment = {"PATH": os.environ["PATH"], **environment}
    return Desk(root, environment=environment, registry=json.dumps(registry or {}))


def asked(desk: Desk, more: str = "", code: str = ECHO, **options: Any) -> Receipt:
    """The receipt of one call, `more` of whose arguments are given."""
    desk.run(ASK.format(more=more), agents=scripted_agent(desk.root, code), **options)
    return desk.receipt("steps/writer.json")


def registered(root: Path, **entries: str) -> dict[str, Any]:
    """Agents of a registry that answer with a text of their own."""
    code = "import sys; sys.stdin.read(); print('\"%s\"')"
    return {"agents": {name: {"command": [sys.executable, "-S", "-c", code % text]} for name, text in entries.items()}}


# -- who is asked --------------------------------------------------------------------------------------------------


def test_an_agent_of_the_registry_answers_by_its_name_and_another_for_the_rest(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, registered(tmp_path, writer="a writer", **{"*": "anybody"}))
    done = desk.run("""
@workflow
async def flow() -> list[str]:
    return [await agent("writer", returns=str), await agent("reader", returns=str)]
""")
    assert done.result == ["a writer", "anybody"]


def test_what_the_runner_was_started_with_comes_before_the_registry(tmp_path: Path) -> None:
    entry = AgentSettings("command", (sys.executable, "-S", "-c", "print('\"chosen\"')"))
    desk = desk_of(tmp_path, registered(tmp_path, writer="a writer", **{"*": "anybody"}))
    assert desk.run(ASK.format(more=""), agents={"*": entry}).result == "chosen"
    desk.start("wf2")
    desk.work(agent_fallback=entry)
    assert desk.summary("wf2").result == "a writer"


def test_a_fallback_comes_before_the_registrys_star(tmp_path: Path) -> None:
    entry = AgentSettings("command", (sys.executable, "-S", "-c", "print('\"fallback\"')"))
    desk = desk_of(tmp_path, registered(tmp_path, **{"*": "anybody"}))
    assert desk.run(ASK.format(more=""), agent_fallback=entry).result == "fallback"


def test_a_call_waits_for_a_runner_that_has_somebody_of_its_name(tmp_path: Path) -> None:
    reader = {"reader": scripted_agent(tmp_path, "say('read')")["*"]}
    desk = desk_of(tmp_path)
    desk.run(ASK.format(more=""), agents=reader)
    assert desk.marks() == ["no-agent"]
    assert "'writer'" in desk.state().reason
    assert "--agent writer=PRESET" in str(desk.state().next_action)
    # A runner that has other agents only leaves it alone, instead of taking it once a second.
    assert desk.work("bob", agents=reader).commands == 0
    desk.work("eve", agents={"writer": reader["reader"]})
    assert desk.summary().result == "read"


# -- what it is given ----------------------------------------------------------------------------------------------


def test_files_are_named_to_the_agent_and_hashed_into_the_receipt(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("content")
    receipt = asked(desk_of(tmp_path), ", files=[HERE / 'docs' / 'a.md'], workspace_dir='docs'")
    assert receipt.output["files"] == ["a.md"]
    assert receipt.request["files"] == ["docs/a.md"]
    assert receipt.execution.files == {"docs/a.md": hashlib.sha256(b"content").hexdigest()}
    assert (receipt.execution.preset, receipt.request["workspace_dir"]) == ("command", "docs")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("files=['gone.md']", "agent(files=…): gone.md is not there"),
        ("files=['.']", "agent(files=…): . is a folder"),
        ("files=['../outside.md']", "agent(files=…): ../outside.md lies outside of the workspace"),
        ("files=['link']", "agent(files=…): link lies outside of the workspace"),
        ("files=['secret.md']", "secret.md holds a secret (TOKEN)"),
        ("skills=['secret.md']", "secret.md holds a secret (TOKEN)"),
        ("workspace_dir='gone'", "there is no such folder"),
    ],
)
def test_what_cannot_be_given_fails_the_call_before_anybody_is_asked(
    tmp_path: Path, argument: str, message: str
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside.md").write_text("x")
    (root / "link").symlink_to(tmp_path / "outside.md")
    (root / "secret.md").write_text("use hunter2-hunter2 here")
    desk = desk_of(root, {"redact": ["TOKEN"]}, TOKEN="hunter2-hunter2")
    receipt = asked(desk, f", {argument}", "(HERE / 'asked').touch()")
    assert receipt.error is not None
    assert message in receipt.error.message
    assert not (root / "asked").exists()


def test_a_secret_across_the_pieces_of_a_large_file_is_found(tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    (tmp_path / "big").write_bytes(b"x" * (1024 * 1024 - 5) + secret.encode())
    receipt = asked(desk_of(tmp_path, {"redact": ["TOKEN"]}, TOKEN=secret), ", files=['big']")
    assert receipt.error is not None
    assert "holds a secret" in receipt.error.message


def test_skills_stand_before_the_prompt_and_are_hashed_too(tmp_path: Path) -> None:
    (tmp_path / "skills" / "review").mkdir(parents=True)
    (tmp_path / "skills" / "review" / "SKILL.md").write_text("Be strict.\n")
    (tmp_path / "tone.md").write_text("Be kind.\n")
    receipt = asked(desk_of(tmp_path), ", skills=['skills/review', 'tone.md']")
    prompt = receipt.output["prompt"]
    assert prompt.index("Be strict.") < prompt.index("Be kind.") < prompt.index("Write.")
    assert prompt.endswith("\n\nWrite.")
    assert receipt.request["prompt"] == "Write."
    assert sorted(receipt.execution.files or {}) == ["skills/review/SKILL.md", "tone.md"]


def test_an_agent_works_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    receipt = asked(desk_of(tmp_path), ", workspace_dir='tree'", "import os; say(os.getcwd())")
    assert receipt.output == str(tmp_path / "tree")


def test_tools_and_model_reach_a_command_that_speaks_json(tmp_path: Path) -> None:
    entry = scripted_agent(tmp_path, ECHO)["*"]._replace(enforces=("tools",))
    desk = desk_of(tmp_path)
    desk.run(ASK.format(more=", tools=['read'], model='big'"), agents={"*": entry})
    receipt = desk.receipt("steps/writer.json")
    assert (receipt.output["tools"], receipt.output["model"]) == (["read"], "big")
    assert (receipt.request["tools"], receipt.execution.model) == (["read"], "big")


def test_a_limit_nobody_holds_the_agent_to_fails_the_call(tmp_path: Path) -> None:
    receipt = asked(desk_of(tmp_path), ", tools=['read']", "(HERE / 'asked').touch()")
    assert receipt.error is not None
    assert receipt.error.type == "CannotEnforce"
    assert not (tmp_path / "asked").exists()


def test_a_call_that_says_nothing_new_is_the_request_it_always_was(tmp_path: Path) -> None:
    receipt = asked(desk_of(tmp_path), ", budget=5, timeout=60, retry=Retry(attempts=2)")
    assert sorted(receipt.request) == ["input", "model", "name", "prompt", "returns"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("tools='Bash'", "agent(tools=…) takes a list of texts"),
        ("files='a.md'", "agent(files=…) takes a list of texts"),
        ("skills=[3]", "agent(skills=…) takes a list of texts"),
        ("budget=0", "agent(budget=…): 0 is no amount of USD"),
        ("budget='1'", "agent(budget=…): '1' is no amount of USD"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_where_it_is_written(
    tmp_path: Path, argument: str, message: str
) -> None:
    done = desk_of(tmp_path).run(ASK.format(more=f", {argument}"))
    assert done.status == "failed"
    assert message in done.error["message"]


# -- the environment -----------------------------------------------------------------------------------------------

SHOW_ENVIRONMENT = "import os; say(sorted(os.environ))"


def test_variables_pass_as_the_registry_says(tmp_path: Path) -> None:
    registry = {"environment": {"allow": ["APP_*"], "deny": ["*_KEY"]}}
    desk = desk_of(tmp_path, registry, APP_MODE="x", APP_KEY="y", OTHER="z", HOME="/h")
    names = asked(desk, code=SHOW_ENVIRONMENT).output
    assert {"APP_MODE", "PATH", "HOME", "NO_COLOR", "CI"} <= set(names)
    assert not {"APP_KEY", "OTHER"} & set(names)


def test_commands_have_the_same_rules_and_what_they_name_passes(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, {"environment": {"deny": ["APP_*"]}}, APP_MODE="x", APP_NAME="y")
    done = desk.run("""
@workflow
async def flow() -> str:
    from hermes_workflows.authoring import secret
    shown = await bash("echo ${APP_MODE:-none} ${APP_NAME:-none}", env={"APP_NAME": "given"})
    return shown.stdout.strip()
""")
    assert done.result == "none given"


def test_an_entry_sets_variables_and_takes_secrets_from_the_runner(tmp_path: Path) -> None:
    entry = scripted_agent(
        tmp_path, "import os; say([os.environ['MODE'], os.environ['TOKEN'] == 'hunter2-hunter2', os.environ['TOKEN']])"
    )
    command = list(entry["*"].command)
    env = {"MODE": "fast", "TOKEN": {"from": "MY_TOKEN"}}
    desk = desk_of(tmp_path, {"agents": {"writer": {"command": command, "env": env}}}, MY_TOKEN="hunter2-hunter2")
    assert desk.run(ASK.format(more="")).result == ["fast", True, "[redacted:MY_TOKEN]"]


def test_a_variable_that_the_runner_has_not_is_named(tmp_path: Path) -> None:
    env = {"TOKEN": {"from": "MY_TOKEN"}}
    desk = desk_of(tmp_path, {"agents": {"writer": {"command": "true", "env": env}}})
    assert desk.run(ASK.format(more="")).error["message"].endswith("the runner's environment has no MY_TOKEN")


# -- attempts, retries, budgets ------------------------------------------------------------------------------------

COSTLY = """
say = (lambda say: lambda value: say(value, input_tokens=10, output_tokens=1, cost_usd=0.04))(say)
"""


def test_the_failure_carries_every_attempt(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    done = desk.run(
        """
@workflow
async def flow() -> Any:
    from hermes_workflows.errors import AgentFailed
    try:
        return await agent("writer", "Write.", returns=int)
    except AgentFailed as failed:
        return [[each["attempt"], each["type"], each["usage"]["output_tokens"]] for each in failed.attempts]
""",
        agents=scripted_agent(tmp_path, COSTLY + "say(f'no number, attempt {request[\"attempt\"]}')"),
    )
    assert done.result == [[number, "InvalidAnswer", 1] for number in (1, 2, 3)]
    receipt = desk.receipt("steps/writer.json")
    assert receipt.execution.attempt == 3
    assert receipt.error is not None
    details = receipt.error.details or {}
    assert [each["details"]["errors"] for each in details["attempts"]]
    assert "attempt 2" in details["attempts"][1]["details"]["stdout"]
    assert (done.usage["input_tokens"], done.usage["cost_usd"]) == (30, 0.12)


FLAKY = """
count = len(list(HERE.glob("try-*")))
(HERE / f"try-{count}").touch()
if count < 2:
    sys.exit("the service is down")
say(count)
"""


def test_a_failure_that_time_may_mend_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    agents = scripted_agent(tmp_path, FLAKY)
    desk.run(ASK.format(more=", retry=Retry(attempts=3, initial=60, jitter=0)"), agents=agents)
    assert desk.paths()[1:] == ["steps/writer.attempt-1.json"]
    for pause in (61, 121):
        desk.clock.advance(pause)
        desk.work(agents=agents)
    assert desk.summary().result == 2
    assert desk.receipt("steps/writer.json").execution.attempt == 3


def test_without_a_retry_such_a_failure_is_final(tmp_path: Path) -> None:
    receipt = asked(desk_of(tmp_path), code=FLAKY)
    assert receipt.error is not None
    assert receipt.error.message.endswith("the service is down")
    assert len((receipt.error.details or {})["attempts"]) == 1


def test_repairs_and_retries_share_one_count(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    code = "sys.exit('down') if request['attempt'] == 2 else say('no number')"
    agents = scripted_agent(tmp_path, code)
    desk.run(
        "@workflow\nasync def flow() -> Any:\n"
        "    return await agent('writer', returns=int, retry=Retry(attempts=4, initial=60, jitter=0))\n",
        agents=agents,
    )
    assert desk.paths()[1:] == ["steps/writer.attempt-1.json", "steps/writer.attempt-2.json"]
    desk.clock.advance(200)
    desk.work(agents=agents)
    receipt = desk.receipt("steps/writer.json")
    assert (receipt.status, receipt.execution.attempt) == ("failed", 4)
    assert receipt.error is not None
    attempts = (receipt.error.details or {})["attempts"]
    assert [(each["attempt"], each["type"]) for each in attempts] == [
        (1, "InvalidAnswer"), (2, "AgentExit"), (3, "InvalidAnswer"), (4, "InvalidAnswer"),
    ]  # fmt: skip


def test_a_budget_counts_what_earlier_executions_spent(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    agents = scripted_agent(tmp_path, COSTLY + "say(None); sys.exit('down')")
    desk.run(ASK.format(more=", budget=0.10, retry=Retry(attempts=9, initial=60, jitter=0)"), agents=agents)
    for _ in range(4):
        desk.clock.advance(10_000)
        desk.work(agents=agents)
    receipt = desk.receipt("steps/writer.json")
    assert (receipt.status, receipt.execution.attempt) == ("failed", 3)
    assert desk.summary().usage["cost_usd"] == 0.12


def test_the_smaller_of_two_budgets_holds(tmp_path: Path) -> None:
    entry = scripted_agent(tmp_path, COSTLY + "say('no number')")["*"]._replace(budget=0.05)
    desk = desk_of(tmp_path)
    code = "@workflow\nasync def flow() -> Any:\n    return await agent('writer', returns=int, budget=5)\n"
    done = desk.run(code, agents={"*": entry})
    assert done.error["message"].endswith("no further attempt within the budget of 0.05 USD: it is used up")
    assert desk.paths()[1:3] == ["steps/writer.attempt-1.json", "steps/writer.json"]


def test_an_answer_keeps_its_types_through_a_receipt_and_in_another_process(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    code = """
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

class Kind(Enum):
    note = "note"

@dataclass
class Part:
    price: Decimal
    seen: datetime
    where: Path
    kind: Kind = Kind.note
    other: int | str | None = None

@dataclass
class Report:
    parts: list[Part]

@workflow
async def flow() -> list[Any]:
    (part,) = (await agent("writer", returns=Report)).parts
    await ask("Ship it?", key="ship", returns=bool)
    return [repr(part.price), part.seen.isoformat(), repr(part.where), part.kind is Kind.note, part.other]
"""
    part = {"price": "1.10", "seen": "2026-11-29T10:00:00Z", "where": "a.md", "other": "x"}
    desk.run(code, agents=scripted_agent(tmp_path, f"say({ {'parts': [part]} })"))
    desk.answer("ship", True)
    # Another runner has nothing but the receipts.
    desk.work("bob", on=desk.process())
    seen = "2026-11-29T10:00:00+00:00"
    assert desk.summary().result == ["Decimal('1.10')", seen, "PosixPath('a.md')", True, "x"]


def test_a_secret_in_the_prompt_reaches_no_agent(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, {"redact": ["TOKEN"]}, TOKEN="hunter2-hunter2")
    desk.run(
        ASK.format(more="").replace('"Write."', "'use hunter2' + '-hunter2'"),
        agents=scripted_agent(tmp_path, ECHO),
    )
    assert desk.receipt("steps/writer.json").output["prompt"] == "use [redacted:TOKEN]"


# -- recorded answers ----------------------------------------------------------------------------------------------


def test_a_run_is_asked_again_from_the_receipts_of_another(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    code = """
@workflow
async def flow() -> Any:
    return [await agent("writer", "Write.", returns=int, key=key) for key in ("a", "b")]
"""
    desk.run(code, agents=scripted_agent(tmp_path, COSTLY + "say(7 if request['key'] == 'a' else 8)"))
    desk.start("again")
    desk.work(agents={"*": AgentSettings("replay", run="wf")})
    again = desk.summary("again")
    assert (again.result, again.usage) == ([7, 8], {})
    assert desk.receipt("steps/a.json", "again").execution.preset == "replay"


def test_a_recorded_failure_is_a_failure_again(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    asked(desk, code="sys.exit('down')")
    desk.start("again")
    desk.work(agents={"*": AgentSettings("replay", run="wf")})
    assert desk.summary("again").error["message"].endswith("status 1: down")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "answers.json: must be a list of answers"),
        ('[{"name": "writer"}]', "answers.json: entry 0 must be an object with an output or an error"),
        ('[{"output": 1, "ouput": 2}]', "answers.json: entry 0: 'ouput' is not known"),
        ("[1e999]", "answers.json: "),
        (None, "the answers cannot be read"),
    ],
)
def test_answers_that_cannot_be_read_are_named(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "answers.json").write_text(text)
    desk = desk_of(tmp_path, {"agents": {"*": {"preset": "replay", "answers": "answers.json"}}})
    assert message in desk.run(ASK.format(more="")).error["message"]


def test_answers_of_a_file_take_the_place_of_an_agent(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('[{"name": "writer", "output": "written", "usage": {"input_tokens": 5}}]')
    desk = desk_of(tmp_path, {"agents": {"*": {"preset": "replay", "answers": "answers.json"}}})
    done = desk.run(ASK.format(more=""))
    assert (done.result, done.usage["input_tokens"]) == ("written", 5)
