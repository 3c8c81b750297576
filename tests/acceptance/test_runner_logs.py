"""What runners tell: run and key in every line, JSON when asked, a file that is rotated; and how they are drained."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place
from tests.acceptance.nursery import Child, until

from hermes_workflows.cli import logs

TALKS = """
import logging
import os

from hermes_workflows import bash, workflow
from hermes_workflows.authoring import log, step


@step
def talk() -> None:
    print("printed by hand")
    logging.getLogger("mine").warning("logged %d of %d with %s", 1, 2, os.environ["TOKEN"])


@workflow
async def talks() -> None:
    log("begins")
    await talk()


@workflow
async def held() -> None:
    await bash("touch begun; while [ ! -e go ]; do sleep 0.02; done", key="held", timeout=60)
"""


@pytest.fixture
def made(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws", {"redact": ["TOKEN"]}, TOKEN="hunter2-hunter2")
    (made.root / "flows" / "talks.py").write_text(TALKS)
    return made


@contextmanager
def holding(made: Place, *arguments: str) -> Iterator[Child]:
    """A runner in the background that executes a call until `go` is there."""
    made.run("run", "flows/talks.py:held", "--id", "held")
    child = made.command("runner", "run", "--worker-id", "ada", *arguments)
    try:
        until((made.root / "begun").exists)
        yield child
    finally:
        child.kill()


def reason(child: Child) -> str:
    child.wait()
    return str(child.json["reason"])


def told(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_on_stderr_is_json_and_names_runner_run_and_key(made: Place) -> None:
    made.run("run", "flows/talks.py:talks", "--id", "wf")
    said = made.work("--log-json", "--worker-id", "ada")
    lines = {each["message"]: each for each in told(said.stderr)}
    assert (lines["begins"]["run"], lines["begins"]["key"]) == ("wf", "")
    for message in ("printed by hand", "step started, attempt 1"):
        assert [lines[message][name] for name in ("runner", "run", "key")] == ["ada", "wf", "talk"]
    assert "hunter2" not in said.stderr
    assert [each["level"] for each in lines.values() if each["logger"] == "mine"] == ["warning"]
    assert said.json["reason"] == "idle"


def test_lines_for_people_begin_with_run_and_key(made: Place) -> None:
    made.run("run", "flows/talks.py:talks", "--id", "wf")
    said = made.work()
    assert " INFO wf: begins\n" in said.stderr
    assert " WARNING wf talk: logged 1 of 2 with " in said.stderr
    assert "hunter2" not in said.stderr
    assert "step started" not in said.stderr


def test_a_folder_gets_a_log_of_each_runner_that_tells_of_every_call(made: Place) -> None:
    made.run("run", "flows/talks.py:talks", "--id", "wf")
    made.work("--log-file", "logs/", "--worker-id", "ada")
    made.work("--log-file", "logs", "--worker-id", "bob")
    text = (made.root / "logs" / "ada.log").read_text()
    assert " DEBUG wf talk: step started, attempt 1\n" in text
    assert " DEBUG wf talk: step completed after " in text
    assert " DEBUG wf: the run is completed\n" in text
    assert "hunter2" not in text
    assert (made.root / "logs" / "bob.log").exists()


def test_a_log_file_is_rotated_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    monkeypatch.setattr(logs, "FILE_BYTES", 2000)
    with logs.telling(list, logs.Logging("ada", file=tmp_path / "ada.log"), own_process=False):
        for number in range(300):
            logging.getLogger("hermes_workflows.runner").debug("line %d of many", number)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"ada.log", *(f"ada.log.{number}" for number in range(1, 6))}
    assert max(sizes.values()) <= 2000


def test_a_line_that_an_author_logs_wrongly_stops_no_work(made: Place) -> None:
    (made.root / "flows" / "talks.py").write_text(TALKS.replace("logged %d of %d with %s", "logged %d of %d"))
    made.run("run", "flows/talks.py:talks", "--id", "wf")
    done = made.work()
    assert (done.code, made.run("status", "wf").json["status"]) == (0, "completed")
    assert "logged %d of %d" in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_log_that_the_disk_does_not_take_stops_no_work(made: Place) -> None:
    made.run("run", "flows/talks.py:talks", "--id", "wf")
    (made.root / "full.log").symlink_to("/dev/full")
    done = made.work("--log-file", "full.log")
    assert (done.code, "Traceback" in done.stderr, "No space" in done.stderr) == (0, False, False)
    assert made.run("status", "wf").json["status"] == "completed"


def test_a_runner_is_drained_by_name_and_others_learn_that_it_has_ended(made: Place) -> None:
    with holding(made, "--log-file", "ada.log") as child:
        assert made.run("runner", "drain", "--worker-id", "adda").error["hint"] == "did you mean 'ada'?"
        asked = made.run("runner", "drain", "--worker-id", "ada")
        assert [(row["runner_id"], row["state"]) for row in asked.json["runners"]] == [("ada", "draining")]
        late = made.run("runner", "drain", "--wait", "--timeout", "0.2")
        assert (late.code, late.json["runners"][0]["state"]) == (75, "draining")
        # It looks now and then; until it has seen the wish, it goes on with what the call gives.
        until(lambda: "draining:" in (made.root / "ada.log").read_text())
        (made.root / "go").touch()
        done = made.run("runner", "drain", "--wait")
        assert (done.code, [row["state"] for row in done.json["runners"]]) in ((0, ["ended"]), (0, []))
        assert reason(child) == "drained"
    assert made.run("status", "held").json["status"] == "running"


def test_sigterm_lets_calls_finish_within_the_time_that_was_chosen(made: Place) -> None:
    with holding(made, "--drain-seconds", "60") as child:
        child.send(signal.SIGTERM)
        (made.root / "go").touch()
        assert reason(child) == "stopped"
    assert made.run("log", "held").json["receipts"][-1]["path"] == "steps/held.json"


def test_sigterm_gives_back_what_takes_longer(made: Place) -> None:
    with holding(made, "--drain-seconds", "0.1") as child:
        child.send(signal.SIGTERM)
        assert reason(child) == "stopped"
    assert [row["status"] for row in made.run("runner", "status").json["work"]] == ["queued"]


def test_a_kind_that_nobody_executes_is_refused_with_the_nearest_word(made: Place) -> None:
    said = made.run("runner", "run", "--only", "bsh")
    assert (said.code, said.error["message"]) == (
        2,
        "Invalid value for '--only': no runner executes 'bsh'; did you mean 'bash'?",
    )
