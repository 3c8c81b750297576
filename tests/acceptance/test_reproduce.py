"""`reproduce` as a command: today's code and that of then, and the difference as its exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place

FLOW = """
from hermes_workflows import agent, ask, workflow
from flows.words import word


@workflow
async def flow() -> str:
    text = await agent("writer", word(), returns=str, mock_output="text")
    await ask("Ship it?", key="ship", returns=str)
    return f"{text} {word()}"
"""
WORDS = "def word() -> str:\n    return {!r}\n"


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    done = subprocess.run(["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def recorded(tmp_path: Path) -> Place:
    """A run of a project that git has; the word was changed before the run started, and not committed."""
    made = place(tmp_path)
    (made.root / ".gitignore").write_text(".hermes\n__pycache__\n")
    (made.root / "flows" / "flow.py").write_text(FLOW)
    words = made.root / "flows" / "words.py"
    words.write_text(WORDS.format("committed"))
    git(made.root, "init", "--quiet")
    git(made.root, "add", "--all")
    git(made.root, "commit", "--quiet", "-m", "flow")
    words.write_text(WORDS.format("then"))
    made.run("run", "flows/flow.py:flow", "--id", "wf", "--drain")
    made.run("review", "respond", "wf", "ship", "--json", '"yes"')
    made.run("runner", "run", "--idle-exit-after", "0.1")
    assert made.run("status", "--id", "wf").json["result"] == "text then"
    return made


def test_equal_runs_exit_with_0_and_open_questions_with_3(recorded: Place) -> None:
    done = recorded.run("reproduce", "wf", "--id", "again", "--reuse", "agent,ask")
    assert (done.code, done.json["equal"], done.json["reproduces"]["workflow_id"]) == (0, True, "wf")
    asked = recorded.run("reproduce", "wf", "--id", "asked")
    assert (asked.code, asked.json["state"]) == (3, "waiting")
    assert asked.json["next_action"] == "once it has ended: hermes-workflows diff wf asked"
    assert done.json["next_action"] is None
    assert recorded.run("verify").code == 0


def test_changed_code_differs_and_the_code_of_then_does_not(recorded: Place) -> None:
    (recorded.root / "flows" / "words.py").write_text(WORDS.format("now"))
    now = recorded.run("reproduce", "wf", "--id", "now", "--reuse", "ask")
    assert (now.code, now.json["equal"], now.json["status"]) == (1, False, "completed")
    then = recorded.run("reproduce", "wf", "--id", "then", "--reuse", "ask", "--at-recorded-code")
    assert (then.code, then.json["equal"]) == (0, True), then.stdout
    assert recorded.run("status", "--id", "then").json["result"] == "text then"
    assert git(recorded.root, "worktree", "list").count("\n") == 0
    assert (recorded.root / "flows" / "words.py").read_text() == WORDS.format("now")
    assert recorded.run("verify", "then").code == 0


def test_no_runner_of_today_touches_a_run_of_the_code_of_then(recorded: Place) -> None:
    (recorded.root / "flows" / "words.py").write_text(WORDS.format("now"))
    done = recorded.run("reproduce", "wf", "--id", "then", "--at-recorded-code")
    assert (done.code, done.json["state"]) == (3, "waiting")
    # Nobody can answer it any more, so it is not told to be waited for.
    assert done.json["next_action"].startswith("hermes-workflows fork then --id NEW ")
    before = git(recorded.receipts, "rev-parse", "runs/then")
    recorded.run("runner", "run", "--idle-exit-after", "0.1")
    assert git(recorded.receipts, "rev-parse", "runs/then") == before


def test_what_cannot_be_reproduced_is_said_and_leaves_no_run(recorded: Place) -> None:
    assert recorded.run("reproduce", "wf", "--id", "x", "--reuse", "timer").error["code"] == "invalid_input"
    assert recorded.run("reproduce", "wf", "--id", "wf").code == 5
    git(recorded.root, "checkout", "--quiet", "--orphan", "empty")
    (recorded.root / ".git" / "refs" / "heads" / "master").unlink(missing_ok=True)
    (recorded.root / ".git" / "refs" / "heads" / "main").unlink(missing_ok=True)
    recorded.run("run", "flows/flow.py:flow", "--id", "nowhere", "--drain")
    done = recorded.run("reproduce", "nowhere", "--id", "x", "--at-recorded-code")
    assert (done.code, "names no commit" in done.error["message"]) == (2, True)
    assert "x" not in [each["workflow_id"] for each in json.loads(recorded.run("list").stdout)]
