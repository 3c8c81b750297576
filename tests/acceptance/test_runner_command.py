"""`runner`: what it reports, how signals end it, and that a divided workspace is noticed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance.command_line import DEADLINE, Place, place
from tests.acceptance.nursery import Child, until

TWO = {
    "dbs": {"default": "workflows.sqlite", "other": "other.sqlite"},
    "workflows": {"launch": {"workflow_ref": "flows/launch.py:launch"}},
}


@contextmanager
def runner(made: Place, *arguments: str) -> Iterator[Child]:
    """A runner in the background, up and heard of."""
    child = made.command("runner", "run", "--worker-id", "ada", *arguments)
    db = ("--db", arguments[1]) if arguments else ()
    try:
        until(lambda: made.run("runner", "status", *db).stdout.count('"healthy":true'))
        yield child
    finally:
        child.kill()


@pytest.fixture
def made(tmp_path: Path) -> Place:
    return place(tmp_path / "ws", TWO)


def test_once_executes_one_command(made: Place) -> None:
    made.start()
    said = made.run("runner", "once", "--worker-id", "ada")
    assert said.json == {"commands": 1, "reason": "once", "worker_id": "ada"}
    work = made.run("runner", "status").json["work"]
    assert [(row["kind"], row["status"]) for row in work] == [("agent", "queued")]


def test_the_older_name_works_as_well(made: Place) -> None:
    made.start()
    assert made.run("worker", "--idle-exit-after", "0.1").json["commands"] >= 2
    assert made.run("status", "wf").json["status"] == "waiting"


def test_status_and_doctor_change_nothing(made: Place) -> None:
    made.start()
    before = made.run("runner", "status").json
    assert (before["queued"], before["runnable"], before["runners"]) == (1, 1, [])
    doctor = made.run("runner", "doctor")
    assert doctor.code == 0
    assert any("no healthy runner" in finding["what"] for finding in doctor.json["findings"])
    assert made.run("runner", "status").json == before


def test_a_run_whose_code_cannot_be_imported_is_stuck_and_others_go_on(made: Place) -> None:
    (made.root / "flows" / "gone.py").write_text((made.root / "flows" / "launch.py").read_text())
    made.start("gone", "flows/gone.py:launch")
    (made.root / "flows" / "gone.py").unlink()
    made.start("wf")
    made.work()
    assert made.run("status", "wf").json["status"] == "waiting"
    stuck = made.run("status", "gone").json
    assert (stuck["status"], stuck["state"]) == ("running", "stuck")
    assert "gone.py" in stuck["reason"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)])
def test_a_signal_ends_a_runner_in_order(made: Place, number: int, code: int) -> None:
    made.start()
    with runner(made) as child:
        child.send(number)
        assert child.wait(DEADLINE) == code
        assert '"reason":"stopped"' in child.stdout
    assert made.run("runner", "status").json["runners"] == []


def test_a_killed_runner_is_not_shown_as_healthy(made: Place) -> None:
    made.start()
    with runner(made) as child:
        child.kill()
        assert [row["healthy"] for row in made.run("runner", "status").json["runners"]] == [False]


SLOW = """
import time

from hermes_workflows import workflow
from hermes_workflows.authoring import sleep, step


@step
def forever() -> None:
    time.sleep(600)


@workflow
async def held() -> None:
    await forever()


@workflow
async def sleeper() -> None:
    await sleep(3600)
"""


def test_what_is_not_due_needs_no_runner(made: Place) -> None:
    (made.root / "flows" / "slow.py").write_text(SLOW)
    made.run("run", "flows/slow.py:sleeper", "--id", "wf")
    made.work()
    shown = made.run("runner", "status").json
    assert (shown["queued"], shown["runnable"]) == (1, 0)
    findings = made.run("runner", "doctor").json["findings"]
    assert [each["what"] for each in findings if "runner is" in each["what"]] == ["no runner is up, and nothing is due"]


def test_work_of_a_killed_runner_is_queued_again(made: Place) -> None:
    (made.root / "flows" / "slow.py").write_text(SLOW)
    made.run("run", "flows/slow.py:held", "--id", "wf")
    with runner(made) as child:
        until(lambda: made.run("status", "wf").json["reason"].startswith("executing forever on "))
        child.kill()
        shown = made.run("runner", "status").json
        assert [row["status"] for row in shown["work"]] == ["expired"]
        assert (shown["queued"], shown["runnable"]) == (1, 1)
        findings = made.run("runner", "doctor").json["findings"]
        assert "1 command is queued and no healthy runner is to be seen" in [each["what"] for each in findings]


def test_a_database_that_no_live_runner_works_on_is_named(made: Place) -> None:
    made.start("here")
    with runner(made, "--db", "other"):
        said = made.start("wf")
        assert said.json["status"] == "running"
        assert "warning: runner ada works on " in said.stderr
        assert "other.sqlite, not on " in said.stderr
        assert made.run("runner", "doctor").code == 6
        assert made.run("run", "launch", "--db", "other", "--input-json", '{"topic":"x"}').stderr == ""


def test_two_live_runners_of_one_name_are_noticed(made: Place) -> None:
    made.start()
    with runner(made), runner(made):
        until(lambda: made.run("runner", "status").stdout.count('"healthy":true') == 2)
        doctor = made.run("runner", "doctor")
    assert doctor.code == 6
    assert any("2 live runners call themselves ada" in finding["what"] for finding in doctor.json["findings"])
