"""`fork` and `retry` as commands: what they print, how they exit, what git says of what they made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place

FLOW = """
from pathlib import Path

from hermes_workflows import ask, workflow
from hermes_workflows.authoring import step

HERE = Path(__file__).parent


@step
def read() -> str:
    return "text"


@step
def publish(text: str) -> str:
    if not (HERE / "disk").exists():
        raise OSError("no disk")
    return f"published {text}"


@workflow
async def flow() -> str:
    print("deciding")
    text = await read()
    await ask("Ship it?", key="ship", returns=str)
    return await publish(text)
"""


@pytest.fixture
def failed(tmp_path: Path) -> Place:
    made = place(tmp_path)
    (made.root / "flows" / "flow.py").write_text(FLOW)
    made.run("run", "flows/flow.py:flow", "--id", "wf", "--drain")
    made.run("review", "respond", "wf", "ship", "--json", '"yes"')
    made.run("runner", "run", "--idle-exit-after", "0.1")
    assert made.run("status", "--id", "wf").json["status"] == "failed"
    return made


def drain(made: Place, run_id: str) -> str:
    made.run("runner", "run", "--idle-exit-after", "0.1")
    return str(made.run("status", "--id", run_id).json["status"])


def test_a_fork_says_what_it_adopted_and_goes_on_after_the_repair(failed: Place) -> None:
    done = failed.run("fork", "wf", "--id", "wf_mended")
    assert (done.code, done.json["adopted"], done.json["after"]) == (0, 3, "ship")
    assert done.json["stopped"] == "the run failed on publish"
    assert done.json["forked_from"]["workflow_id"] == "wf"
    (failed.root / "flows" / "disk").touch()
    assert drain(failed, "wf_mended") == "completed"
    assert failed.run("verify", "wf_mended").code == 0


def test_the_git_command_beside_it_shows_that_only_the_start_differs(failed: Place) -> None:
    line = failed.run("fork", "wf", "--id", "wf_mended").json["git"]
    shown = subprocess.run(f"{line} --stat", shell=True, cwd=failed.root, capture_output=True, text=True, check=True)
    changed = {each.split("|")[0].strip() for each in shown.stdout.splitlines() if "|" in each}
    assert not any("read" in path or "ship" in path for path in changed), shown.stdout
    fsck = ["git", "-C", str(failed.receipts), "fsck", "--full", "--strict"]
    assert subprocess.run(fsck, capture_output=True, text=True, check=True).stdout == ""


def test_a_moment_and_a_result_given_by_hand(failed: Place) -> None:
    done = failed.run("fork", "wf", "--id", "by_hand", "--set", 'publish="somewhere else"')
    assert (done.code, done.json["after"]) == (0, "publish")
    assert drain(failed, "by_hand") == "completed"
    assert failed.run("status", "--id", "by_hand").json["result"] == "somewhere else"
    assert failed.run("fork", "wf@read", "--id", "again").json["after"] == "read"
    assert drain(failed, "again") == "waiting"


MISTAKES = [
    (("nowhere", "--id", "new"), 4, "no run 'nowhere'"),
    (("wf@shipp", "--id", "new"), 4, "no key 'shipp'"),
    (("wf", "--id", "wf"), 5, "wf exists already"),
    (("wf", "--id", "new", "--set", "publish"), 2, "KEY=JSON"),
    (("wf", "--id", "new", "--set", "publish=nothing"), 2, "--set publish"),
    (("wf", "--id", "new", "--input-json", "5"), 2, "takes no input"),
]


def test_a_mistake_is_one_error_and_no_run(failed: Place) -> None:
    for arguments, code, message in MISTAKES:
        done = failed.run("fork", *arguments)
        assert (done.code, message in done.error["message"]) == (code, True), done.stderr
    assert [each["workflow_id"] for each in failed.run("list").json] == ["wf"]


def test_another_input_is_read_from_stdin_however_the_process_was_started(failed: Place) -> None:
    """Without a fixed seed of hashes a process gives its place to another one, which must find its stdin unread."""
    failed.environment["PYTHONHASHSEED"] = "random"
    refused = failed.run("fork", "wf", "--id", "two", "--input-json", "-", typed='{"text": "typed"}')
    assert "takes no input" in refused.error["message"]


def test_a_change_before_the_key_is_refused_with_exit_code_6(failed: Place) -> None:
    (failed.root / "flows" / "flow.py").write_text(FLOW.replace("Ship it?", "Ship it now?"))
    done = failed.run("fork", "wf@ship", "--id", "new")
    assert (done.code, "'ship' was recorded with another request" in done.error["message"]) == (6, True)
    assert "hermes-workflows fork wf --id NEW" in done.error["hint"]


def test_retry_forks_what_has_failed(failed: Place) -> None:
    (failed.root / "flows" / "disk").touch()
    done = failed.run("retry", "wf")
    assert (done.code, done.json["workflow_id"], done.json["adopted"]) == (0, "wf-retry-1", 3)
    assert drain(failed, "wf-retry-1") == "completed"
    assert failed.run("retry", "wf-retry-1").code == 5
    assert failed.run("show", "wf").json["forks"] == ["wf-retry-1"]
    assert failed.run("show", "wf-retry-1").json["source"]["run"] == "wf"
    assert "\n  from      wf (" in failed.terminal("show", "wf-retry-1")[1]


def test_a_fetched_run_is_forked_as_it_came_and_not_at_all_when_it_is_not_sound(failed: Place, tmp_path: Path) -> None:
    receipts, there = str(failed.receipts), "refs/remotes/origin/runs"
    tip = plain_git(receipts, "rev-parse", "runs/wf")
    plain_git(receipts, "update-ref", f"{there}/wf", tip)
    assert failed.run("fork", "origin/wf@read", "--id", "mine").json["after"] == "read"
    tampered = plain_git(receipts, "commit-tree", f"{tip}^{{tree}}", "-p", f"{tip}~2", "-m", "x")
    plain_git(receipts, "update-ref", f"{there}/wf", tampered)
    done = failed.run("fork", "origin/wf@read", "--id", "never")
    assert (done.code, "comes from elsewhere and is not sound" in done.error["message"]) == (6, True), done.stderr


def plain_git(receipts: str, *arguments: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    done = subprocess.run(["git", "-C", receipts, *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
