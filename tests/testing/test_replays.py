"""`assert_replays`: recorded runs against the present code, wherever they are recorded, without executing anything."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.testing.flows import Draft, Review, Topic, publish

from hermes_workflows import agent, ask, bash, workflow
from hermes_workflows.clock import SystemClock
from hermes_workflows.errors import Conflict, NotFound
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.testing import ReplayMismatch, assert_replays, later, run_workflow
from hermes_workflows.workspace import Surroundings

FLOW = """
from hermes_workflows import bash, workflow

@workflow
async def flow() -> str:
    await bash("echo >> executed", name="mark")
    return (await bash("echo done", name="say")).stdout
"""


@dataclass
class Recorded:
    """A workspace on disk with the run `wf-1` of `flow.py`, ended by a real runner."""

    root: Path

    @property
    def repository(self) -> Path:
        return self.root / ".hermes" / "workflows.git"

    def change(self, old: str, new: str) -> None:
        file = self.root / "flow.py"
        file.write_text(file.read_text().replace(old, new))

    def python(self, seed: str, *arguments: str) -> str:
        """What a process with that hash seed says on stderr."""
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ).stderr

    def run(self, run_id: str) -> None:
        registry = parse("{}", self.root / ".hermes" / "workflows.registry.json")
        around = Surroundings(SystemClock(), {"PATH": "/usr/bin:/bin"})
        workspace = open_workspace(registry, registry.dbs["default"], around, create=True)
        workspace.start("flow.py:flow", run_id=run_id)
        Runner([workspace], RunnerOptions(worker_id="ada", idle_exit_after=0.0)).run()
        workspace.close()


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "workflows.registry.json").write_text("{}")
    (tmp_path / "flow.py").write_text(FLOW)
    made = Recorded(tmp_path)
    made.run("wf-1")
    monkeypatch.chdir(tmp_path)
    return made


def test_a_run_of_the_workspace_replays_and_executes_nothing(recorded: Recorded) -> None:
    executed = (recorded.root / "executed").read_text()
    assert_replays("wf-1")
    assert_replays("wf")
    assert (recorded.root / "executed").read_text() == executed == "\n"


def test_a_repository_replays_by_its_path_one_run_or_all(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.run("wf-2")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert_replays(recorded.repository, "wf-2")
    assert_replays(str(recorded.repository))


def test_changed_code_fails_with_key_and_line(recorded: Recorded) -> None:
    recorded.change('name="say"', 'name="tell"')
    with pytest.raises(ReplayMismatch, match=r"does not request bash 'say'.*requests bash 'tell', flow\.py:7"):
        assert_replays("wf-1")


def test_a_changed_request_fails_with_its_difference(recorded: Recorded) -> None:
    recorded.change("echo done", "echo finished")
    with pytest.raises(
        ReplayMismatch, match=r'(?s)bash \'say\' .*-  "command": "echo done".*\+  "command": "echo finished"'
    ):
        assert_replays(recorded.repository)


def test_another_result_fails_though_every_call_is_the_same(recorded: Recorded) -> None:
    recorded.change(".stdout", ".stdout.strip()")
    with pytest.raises(
        ReplayMismatch, match=r'ended as completed with "done\\n" before and ended as completed with "done" now'
    ):
        assert_replays("wf-1")


def test_a_new_call_fails_though_no_receipt_speaks_of_it(recorded: Recorded) -> None:
    recorded.change("return (await", 'await bash("true", name="new")\n    return (await')
    with pytest.raises(ReplayMismatch, match=r"bash 'new'"):
        assert_replays("wf-1")


def test_a_workflow_may_be_given_in_the_place_of_the_recorded_one(recorded: Recorded) -> None:
    @workflow
    async def other() -> str:
        return (await bash("echo done", name="say")).stdout

    with pytest.raises(ReplayMismatch, match="does not request bash 'mark'"):
        assert_replays(recorded.repository, "wf-1", workflow=other)


def test_a_run_that_is_not_there_or_not_clear_is_said_so(recorded: Recorded) -> None:
    recorded.run("wf-2")
    with pytest.raises(NotFound, match="no run 'other'"):
        assert_replays("other")
    with pytest.raises(NotFound, match="no run 'other'"):
        assert_replays(recorded.repository, "other")
    with pytest.raises(Conflict, match="begin with 'wf': "):
        assert_replays("wf")


SETS = """
from hermes_workflows import bash, workflow

@workflow
async def flow() -> None:
    for name in {"attic", "cellar", "garden", "hall", "kitchen", "porch", "study", "tower"}:
        await bash("true", name=name)
"""


def test_a_set_that_runners_iterate_in_one_order_is_a_warning_and_no_failure(recorded: Recorded) -> None:
    (recorded.root / "sets.py").write_text(SETS)
    recorded.python("0", "-m", "hermes_workflows", "run", "sets.py:flow", "--id", "sets", "--drain")
    check = "from hermes_workflows.testing import assert_replays; assert_replays('sets')"
    said = recorded.python("5", "-c", check)
    assert "ReplayWarning: sets replays with PYTHONHASHSEED=0 only" in said


# -- results of tests --------------------------------------------------------------------------------------------


@workflow
async def changed(topic: Topic) -> str:
    draft = await agent("writer", f"Write about {topic.name}.", key="goal/1/writer", returns=Draft)
    return draft.title


def test_a_result_replays_with_the_code_that_made_it_and_not_with_another() -> None:
    run = run_workflow(
        publish, Topic("docs"), agents={"writer": Draft("a", "b")}, answers={"review": Review("approve")}
    )
    assert_replays(run)
    with pytest.raises(ReplayMismatch, match=r"(?s)agent 'goal/1/writer'.*Write about docs"):
        assert_replays(replace(run, workflow=changed))


def test_a_run_that_waits_replays_up_to_where_it_stands() -> None:
    assert_replays(run_workflow(publish, Topic("docs"), agents={"writer": Draft("a", "b")}))


def test_an_expired_and_a_cancelled_call_replay() -> None:
    @workflow
    async def both() -> str:
        import asyncio

        try:
            async with asyncio.timeout(5):
                await agent("slow", returns=str)
        except TimeoutError:
            return await ask("Then?", key="then", returns=str, expires=60, on_expiry="nothing")
        return "answered"

    run = run_workflow(both, agents={"slow": later(10, "late")})
    assert run.result == "nothing"
    assert_replays(run)
