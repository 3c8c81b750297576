"""`status`, `watch`, `run --wait` and `--drain`: why a run does not move, seen by whoever operates it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place
from tests.acceptance.nursery import Child, until

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
    assert "wf: Queued, 0 calls done; work is queued" in seen
    assert seen.index("calls done") < seen.index("wf: Failed")
