"""Signals, deadlines, evidence and notices through the command line, on a real workspace."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place

FLOW = """
from dataclasses import dataclass
from pathlib import Path

from hermes_workflows import ask, workflow
from hermes_workflows.authoring import child, select, wait_for


@dataclass
class Build:
    version: str


@workflow
async def rollout() -> str:
    build = await wait_for("build", returns=Build)
    place = await select("place", ["staging", "production"], evidence={"Notes": Path("notes.md")}, input=build)
    return f"{build.version} to {place}"


@workflow
async def parent() -> str:
    return await child(below, key="below")


@workflow
async def below() -> str:
    return await ask("Anybody?", key="who", returns=str)
"""
REGISTRY = {
    "workflows": {"rollout": {"workflow_ref": "flows/flow.py:rollout", "deadline": 86400}},
    "notify": ["sh", "-c", "cat >> notices; echo >> notices"],
}
BUILD = '{"version": "1.2"}'


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = place(tmp_path_factory.mktemp("model") / "ws", REGISTRY)
    (made.root / "flows" / "flow.py").write_text(FLOW)
    (made.root / "notes.md").write_text("Two bugs fixed.\n")
    made.run("run", "rollout", "--id", "wf")
    made.run("run", "flows/flow.py:parent", "--id", "up")
    made.work()
    return made.root


@pytest.fixture
def made(model: Path, tmp_path: Path) -> Place:
    """`wf` waits for a signal, `up` for a child that waits for a person; nothing runs, so it can be copied."""
    return Place(Path(shutil.copytree(model, tmp_path / "ws")))


def signal(made: Place, *more: str, payload: str = BUILD) -> Any:
    return made.run("signal", "wf", "build", "--json", payload, *more)


def test_a_signal_moves_a_run_and_says_who_sent_it(made: Place) -> None:
    waits = made.run("status", "wf").json["waits"]
    assert [(wait["name"], wait["returns"]["required"]) for wait in waits] == [("build", ["version"])]
    sent = signal(made, "--by", "ci", "--channel", "webhook", "--message-id", "7")
    assert (sent.code, sent.json["wait"], sent.json["number"]) == (0, "build", 1)
    provenance = sent.json["provenance"]
    assert (provenance["kind"], provenance["by"], provenance["verified"]) == ("manual", "ci", "none")
    made.work()
    assert made.run("status", "wf").json["waiting_on"]["key"] == "place"
    assert "signals/build/1.json" in made.git("ls-tree", "-r", "--name-only", "runs/wf")


def test_a_payload_that_does_not_fit_is_refused_and_nothing_is_recorded(made: Place) -> None:
    before = made.git("rev-parse", "runs/wf")
    refused = signal(made, payload='{"versoin": 1}')
    assert (refused.code, refused.error["code"], refused.stdout) == (2, "invalid_signal", "")
    assert "/versoin" in refused.error["message"]
    assert made.git("rev-parse", "runs/wf") == before


def test_the_same_message_is_recorded_once_and_another_one_is_a_conflict(made: Place) -> None:
    first = signal(made, "--message-id", "7").json
    assert signal(made, "--message-id", "7").json["received_at"] == first["received_at"]
    assert signal(made, "--message-id", "7", payload='{"version": "2"}').code == 5


def test_one_that_nobody_waits_for_is_kept_and_the_sender_is_told(made: Place) -> None:
    sent = made.run("signal", "wf", "biuld", "--json", "-", typed="[1]")
    assert (sent.code, sent.json["wait"], sent.json["payload"]) == (0, None, [1])
    assert "nobody waits for biuld yet, it is kept; wf waits for build" in sent.stderr
    assert made.run("signal", "wf", "biuld").json["number"] == 2


def test_a_terminal_is_told_in_words(made: Place) -> None:
    code, seen = made.terminal("signal", "wf", "build", "--json", BUILD, "--by", "ana")
    assert code == 0
    assert "build 1 recorded as human, by ana through cli, for build, which waits for it" in seen
    assert "next: hermes-workflows runner run" in seen


def test_the_shell_completes_the_names_that_a_run_waits_for(made: Place) -> None:
    for words, offered in (("signal wf b", ["plain,build"]), ("signal nothing b", [])):
        typed = {"COMP_WORDS": f"hermes-workflows {words}", "COMP_CWORD": "3"}
        asking = Place(made.root, {**typed, "_HERMES_WORKFLOWS_COMPLETE": "bash_complete"})
        assert asking.run().stdout.split() == offered


def test_a_choice_is_answered_by_its_name_with_its_evidence_beside_it(made: Place) -> None:
    signal(made)
    made.work()
    shown = made.run("review", "show", "wf", "place").json
    assert shown["evidence"] == [{"title": "Notes", "value": "Two bugs fixed.\n", "path": "notes.md", "missing": None}]
    _, seen = made.terminal("review", "show", "wf", "place")
    assert "Notes:\n  Two bugs fixed.\n" in seen
    assert "answer  staging | production" in seen
    refused = made.run("review", "respond", "wf", "place", "--action", "moon")
    assert "one of staging, production" in refused.error["message"]
    made.run("review", "respond", "wf", "place", "--action", "production")
    made.work()
    assert made.run("status", "wf").json["result"] == "1.2 to production"
    _, seen = made.terminal("show", "wf@place")
    assert "evidence, Notes:\n  Two bugs fixed.\n" in seen


def test_people_are_told_once_of_each_question(made: Place) -> None:
    signal(made)
    made.work()
    made.work()
    told = [json.loads(line) for line in (made.root / "notices").read_text().splitlines()]
    assert [(each["workflow_id"], each["key"], each["event"]) for each in told] == [
        ("up.below", "who", "requested"),
        ("wf", "place", "requested"),
    ]
    assert {row["kind"] for row in made.run("runner", "status").json["work"]} == {"child", "timer"}


@pytest.mark.parametrize("fresh", [True, False])
def test_a_parent_shows_whom_its_child_waits_for(made: Place, fresh: bool) -> None:
    if not fresh:
        made.sqlite.unlink()
    shown = made.run("status", "up").json
    assert (shown["status"], shown["state"]) == ("running", "waiting")
    assert shown["next_action"] == "hermes-workflows review respond up.below who"
    child = shown["children"]["below"]
    assert (child["workflow_id"], child["status"], child["state"]) == ("up.below", "waiting", "waiting")
    _, seen = made.terminal("status", "up")
    assert "child     below: up.below: Waiting on the operator" in seen
    assert {run["workflow_id"]: run["state"] for run in made.run("list").json}["up"] == "waiting"


@pytest.mark.parametrize("command", ["status", "list"])
def test_a_parent_shows_its_child_as_the_receipts_have_it_when_the_index_is_behind(
    made: Place, tmp_path: Path, command: str
) -> None:
    with closing(sqlite3.connect(made.sqlite)) as old, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        old.backup(copy)
    made.run("review", "respond", "up.below", "who", "--json", '"me"')
    for file in made.sqlite.parent.glob(f"{made.sqlite.name}*"):
        file.unlink()
    shutil.copy(tmp_path / "copy", made.sqlite)
    told = [made.run("status", "up").json] if command == "status" else made.run("list").json
    (shown,) = (run for run in told if run["workflow_id"] == "up")
    assert shown["children"]["below"]["state"] == "queued"
    assert shown["state"] in ("running", "queued")  # by when the parent looks at its child again


def test_a_run_has_the_deadline_of_its_alias_or_the_one_it_is_given(made: Place) -> None:
    started, due = (made.run("status", "wf").json[name] for name in ("started_at", "deadline_at"))
    left = datetime.fromisoformat(due) - datetime.fromisoformat(started)
    assert abs(left - timedelta(days=1)) < timedelta(seconds=5)
    at = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    made.run("run", "rollout", "--id", "given", "--deadline", at)
    assert made.run("status", "given").json["deadline_at"] == at.replace("Z", ".000Z")
    assert made.run("status", "up").json["deadline_at"] is None


def test_a_run_past_its_deadline_is_cancelled(made: Place) -> None:
    made.run("run", "rollout", "--id", "brief", "--deadline", "0.2")
    made.run("runner", "run", "--idle-exit-after", "1")
    ended = made.run("status", "brief").json
    assert (ended["status"], ended["cancel_requested"]) == ("cancelled", "deadline")


@pytest.mark.parametrize(
    ("deadline", "said"),
    [
        ("tomorrow", "is no time"),
        ("2030-01-01T00:00:00", "has no zone"),
        ("-5", "lies behind"),
        ("2020-01-01T00:00:00Z", "lies behind"),
        ("nan", "is no time"),
        ("1e300", "beyond the calendar"),
    ],
)
def test_a_deadline_that_is_none_starts_nothing(made: Place, deadline: str, said: str) -> None:
    refused = made.run("run", "rollout", "--id", "new", "--deadline", deadline)
    assert (refused.code, refused.stdout) == (2, "")
    assert said in refused.error["message"]
    assert made.run("status", "new").code == 4


def test_a_signal_after_the_end_is_a_conflict(made: Place) -> None:
    made.run("cancel", "wf")
    made.work()
    refused = signal(made)
    assert (refused.code, refused.error["code"]) == (5, "conflict")
    assert "wf is cancelled and takes no more signals" in refused.error["message"]
