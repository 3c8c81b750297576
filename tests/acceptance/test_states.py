"""`status`, `watch`, `run --wait` and `--drain`: why a run does not move, seen by whoever operates it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place
from tests.acceptance.nursery import Child, nursery, replaced, until

SLOW = """
from hermes_workflows import agent, bash, parallel, workflow


@workflow
async def pages() -> str:
    done = await bash("echo page 1 of 8; for _ in $(seq 1500); do [ -e go ] && break; sleep 0.02; done", name="draft")
    raise ValueError("no such room")


@workflow
async def lonely() -> str:
    return await agent("writer", prompt="Is anybody there?", returns=str)


@workflow
async def many() -> int:
    done = await parallel([bash(f"exit {n % 2}", name="check") for n in range(12)])
    await bash("exit 3", name="last", check=True)
    return len(done)
"""


@pytest.fixture
def here(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws")
    (made.root / "flows" / "slow.py").write_text(SLOW)
    return made


@contextmanager
def runner(made: Place, *arguments: str) -> Iterator[Child]:
    child = made.command("runner", "run", *arguments)
    try:
        yield child
    finally:
        child.kill()


def test_a_running_call_is_shown_with_its_runner_and_the_line_it_printed_last(here: Place) -> None:
    here.run("run", "flows/slow.py:pages", "--id", "wf")
    with runner(here, "--worker-id", "ada"):
        shown = until(lambda: (seen := here.run("status", "wf").json)["reason"].endswith("page 1 of 8") and seen)
        assert shown["reason"].startswith("executing draft on ada for ")
        (pending,) = shown["pending_commands"]
        assert (pending["key"], pending["status"], pending["last_line"]) == ("draft", "leased", "page 1 of 8")
        _, seen = here.terminal("runner", "status")
        assert "wf draft: page 1 of 8" in seen


def test_watch_prints_a_line_for_each_change_until_the_run_has_failed_and_names_the_line(here: Place) -> None:
    here.run("run", "flows/slow.py:pages", "--id", "wf")
    (here.root / "go").touch()
    with runner(here):
        said = here.run("watch", "wf", "--interval", "0.05")
    documents = [json.loads(line) for line in said.stdout.splitlines()]
    assert said.code == 0
    assert documents[-1]["status"] == "failed"
    assert documents[-1]["failed_at"] == "flows/slow.py:8"
    assert documents[-1]["reason"] == "ValueError: no such room, at flows/slow.py:8"
    assert len({json.dumps(each | {"reason": ""}) for each in documents}) == len(documents)


def test_watch_on_a_terminal_ends_with_the_last_screen(here: Place) -> None:
    here.start("wf", "flows/launch.py:quick")
    here.work()
    code, seen = here.terminal("watch", "wf")
    assert code == 0
    assert "wf: Completed" in seen
    assert "result: completed" in seen


def test_watch_of_everything_tells_runs_and_runners_until_it_is_interrupted(here: Place) -> None:
    here.start("wf", "flows/launch.py:quick")
    here.work()
    here.run("run", "flows/slow.py:pages", "--id", "open")
    with runner(here, "--worker-id", "ada"):
        child = here.command("watch", "--interval", "0.05")
        until(lambda: '"page 1 of 8"' in child.stdout)
        (here.root / "go").touch()
        until(lambda: "no such room" in child.stdout)
        child.send(signal.SIGINT)
        assert child.wait() == 130
    last = json.loads(child.stdout.splitlines()[-1])
    assert {run["workflow_id"]: run["state"] for run in last["runs"]} == {"wf": "completed", "open": "failed"}
    assert "ada" in [row["runner_id"] for row in last["runners"]]


def test_watch_of_everything_on_a_terminal_is_a_table_that_cuts_nothing(here: Place) -> None:
    here.start(name := "wf_with_a_name_that_is_longer_than_its_column_" + "x" * 50, "flows/launch.py:quick")
    ours, theirs = pty.openpty()
    child = nursery().start(["watch"], here.root, replaced(here.env()), terminal=os.ttyname(theirs))
    os.close(theirs)
    seen = b""
    while b"no runners" not in seen:
        seen += os.read(ours, 65536)
    child.send(signal.SIGINT)
    with contextlib.suppress(OSError):  # Linux says EIO when the last process has closed the terminal
        while more := os.read(ours, 65536):
            seen += more
    os.close(ours)
    assert child.wait() == 130
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode().partition("no runners")[0]).splitlines()
    assert lines[0].split() == ["run", "state", "why"]
    column = [line[: lines[0].index("state")].strip() for line in lines[1:]]
    assert "".join(column) == name


def test_a_paused_run_goes_on_when_it_is_resumed_and_not_before(here: Place) -> None:
    here.start()
    paused = here.run("pause", "wf", "--reason", "lunch", "--by", "ana")
    assert (paused.code, here.run("status", "wf").json["next_action"]) == (0, "hermes-workflows resume wf")
    here.work()
    assert here.run("status", "wf").json["waiting_on"] is None
    resumed = here.run("resume", "wf", "--by", "ana")
    assert (resumed.code, here.run("status", "wf").json["state"]) == (0, "queued")
    here.work()
    assert here.run("status", "wf").json["waiting_on"]["key"] == "review_draft"


def test_status_lists_calls_and_events_that_are_asked_for(here: Place) -> None:
    here.run("run", "flows/slow.py:many", "--id", "wf")
    here.work()
    assert len(here.run("status", "wf").json["recent_events"]) == 10
    every = here.run("status", "wf", "--recent-events", "50", "--commands", "all").json
    assert [event["seq"] for event in every["recent_events"]] == list(range(every["receipts"]))
    assert len(every["commands"]) == 13
    assert len(here.run("status", "wf", "--commands", "recent").json["commands"]) == 10
    assert here.run("status", "wf", "--recent-events", "1").json["recent_events"][0]["kind"] == "result"
    assert "commands" not in here.run("status", "wf").json


def test_runs_are_listed_by_state_workflow_origin_and_words(here: Place) -> None:
    (here.root / "go").touch()
    for name in ("pages", "lonely"):
        here.run("run", f"flows/slow.py:{name}", "--id", name)
    here.work()
    here.run("fork", "pages", "--id", "again")
    here.start("asks")

    def listed(*options: str) -> list[str]:
        return [run["workflow_id"] for run in here.run("list", *options).json]

    assert listed("--find", "NO such room") == listed("--state", "failed") == ["pages"]
    assert sorted(listed("--state", "queued")) == ["again", "asks"]
    assert listed("--source", "pages") == ["again"]
    assert sorted(listed("--workflow", "flows/slow.py:pages")) == ["again", "pages"]
    assert listed("--workflow", "launch", "--find", "docs") == ["asks"]
    assert listed("--state", "queued", "--limit", "1", "--offset", "1") == listed("--state", "queued")[1:]
    assert here.run("list", "--state", "queued", "--status", "running").code == 2


def test_a_long_id_is_never_cut_in_a_table(here: Place) -> None:
    name = "wf_" + "a-name-that-somebody-has-to-copy-" + "whole"
    here.start(name, "flows/launch.py:quick")
    assert name in here.terminal("list")[1].replace("\r\n", "")


def test_drain_ends_by_what_became_of_the_run(here: Place) -> None:
    topic = ["--input-json", '{"topic": "docs"}']
    assert here.run("run", "flows/launch.py:quick", *topic, "--drain").code == 0
    assert here.run("run", "flows/launch.py:quick", "--input-json", '{"topic": "bad"}', "--drain").code == 1
    assert here.run("run", "launch", *topic, "--drain", "--id", "asks").code == 3
    assert here.run("run", "flows/slow.py:lonely", "--drain", "--id", "lonely").code == 75
    assert "the agent 'writer'" in here.run("status", "lonely").json["stuck"][0]["reason"]
    flow = here.root / "flows" / "launch.py"
    flow.write_text(flow.read_text().replace('key="review_draft"', 'key="another"'))
    assert here.run("run", "launch", *topic, "--drain", "--id", "asks").code == 6


def test_wait_gives_up_what_no_runner_takes_up_and_says_so(here: Place) -> None:
    with runner(here):
        said = here.run("run", "flows/slow.py:lonely", "--wait", "--id", "lonely")
    assert said.code == 75
    assert here.run("status", "lonely").json["state"] == "stuck"


def test_progress_is_told_on_a_terminal_while_a_run_is_drained(here: Place) -> None:
    (here.root / "go").touch()
    code, seen = here.terminal("run", "flows/slow.py:pages", "--drain", "--id", "wf")
    assert code == 1
    # Whoever looks first finds it queued, or in its runner's hands already.
    assert re.search(r"^wf: (Queued|Running), 0 calls done; ", seen, re.MULTILINE)
    assert seen.index("calls done") < seen.index("wf: Failed")
