"""`cancel --now` and `--superseded-by` as a person types them, and `retry` of a call that took its runners down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place
from tests.acceptance.nursery import Child, until

HELD = """
from hermes_workflows import bash, workflow


@workflow
async def held() -> None:
    try:
        await bash("echo $PPID >> parents; while [ ! -e go ]; do sleep 0.02; done", key="held", timeout=60)
    finally:
        await bash("touch cleaned")
"""


@pytest.fixture
def made(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws")
    (made.root / "flows" / "held.py").write_text(HELD)
    return made


def runner(made: Place) -> Child:
    """A runner that has the call in hand."""
    before = len(_parents(made))
    child = made.command("runner", "run", "--worker-id", "ada", "--idle-exit-after", "0.2")
    until(lambda: len(_parents(made)) > before)
    return child


def _parents(made: Place) -> list[str]:
    file = made.root / "parents"
    return file.read_text().split() if file.exists() else []


def test_a_run_is_cancelled_at_once_for_the_one_that_takes_its_place(made: Place) -> None:
    for name in ("wf", "newer"):
        made.run("run", "flows/held.py", "--id", name)
    made.run("pause", "newer")
    child = runner(made)
    assert made.run("cancel", "wf", "--superseded-by", "newest").code == 4
    said = made.run("cancel", "wf", "--now", "--superseded-by", "new", "--by", "ana", "--wait", "--timeout", "30")
    child.wait()
    assert (said.json["cancel"], said.json["status"]) == ("cancelled", "cancelled")
    shown = made.run("status", "wf").json
    assert shown["superseded_by"] == "newer"
    assert shown["reason"].startswith("cancelled: superseded by newer, by ana (manual); CleanupSkipped: its cleanup")
    assert "it cut off held" in shown["reason"]
    assert not (made.root / "cleaned").exists()
    assert "superseded by newer" in made.git("show", "refs/runs/wf:runs/" + _day(made) + "/wf/README.md")


def test_a_cancel_that_nobody_has_delivered_in_time_is_to_be_tried_again(made: Place) -> None:
    made.run("run", "flows/held.py", "--id", "wf")
    said = made.run("cancel", "wf", "--wait", "--timeout", "0")
    assert (said.code, said.json["cancel"]) == (75, "requested")
    assert made.run("cancel", "wf").code == 0
    assert "cancel    asked for: no reason given" in made.terminal("status", "wf")[1]


def _day(made: Place) -> str:
    return str(made.run("status", "wf").json["started_at"])[:10]


def test_a_call_that_took_three_runners_down_waits_for_a_retry(made: Place) -> None:
    made.run("run", "flows/held.py", "--id", "wf")
    for _ in range(3):
        runner(made).kill()
    made.work("--worker-id", "eve")
    shown = made.run("status", "wf").json
    assert shown["state"] == "stuck"
    assert shown["reason"].startswith("3 runners were lost while they executed bash held: ada (pid ")
    assert shown["reason"].count("and died") == 3
    assert "hermes-workflows retry wf" in shown["next_action"]
    (made.root / "go").touch()
    assert json.loads(made.run("retry", "wf").stdout)["workflow_id"] == "wf"
    made.work("--worker-id", "eve")
    assert made.run("status", "wf").json["status"] == "completed"
