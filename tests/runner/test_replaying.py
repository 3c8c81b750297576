"""`replay`: recorded runs of a workspace decided again by the code that lies there now."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_workflows.clock import SystemClock
from hermes_workflows.errors import Divergence, InvalidInput, NotFound
from hermes_workflows.loader import CannotLoad
from hermes_workflows.opening import open_workspace
from hermes_workflows.recorded import Recorded, open_receipts
from hermes_workflows.registry import parse
from hermes_workflows.runner.replaying import Replay, Wanted, replay_all
from hermes_workflows.runner.slices import Decider, SliceLimits
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.workspace import Surroundings

FLOW = """
from hermes_workflows import ask, bash, workflow

@workflow
async def flow(inputs: dict) -> str:
    await bash("echo >> executed", name="mark")
    if inputs.get("ask"):
        return await ask("Well?", key="well", returns=str)
    return (await bash("echo done", name="say")).stdout

@workflow
async def other() -> None:
    await bash("true")
"""


@dataclass
class Site:
    root: Path
    opened: list[Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = '{"workflows": {"short": {"workflow_ref": "flow.py:flow"}}}'
        self.registry = parse(text, self.root / ".hermes" / "workflows.registry.json")
        self.paths = self.registry.dbs["default"]
        self.around = Surroundings(SystemClock(), {"PATH": "/usr/bin:/bin"})
        (self.root / "flow.py").write_text(FLOW)

    def run(self, *run_ids: str, ref: str = "flow.py:flow", given: Any = None) -> None:
        workspace = open_workspace(self.registry, self.paths, self.around, create=True)
        for run_id in run_ids:
            workspace.start(ref, given or ({} if ref.endswith(":flow") else None), run_id=run_id)
        Runner([workspace], RunnerOptions(worker_id="ada", idle_exit_after=0.0)).run()
        workspace.close()

    def change(self, old: str, new: str) -> None:
        (self.root / "flow.py").write_text(FLOW.replace(old, new))

    def replay(self, *names: str, **wanted: Any) -> dict[str, Replay]:
        workspace = open_receipts(self.registry, self.paths, self.around.clock, self.around.environment)
        self.opened.append(workspace)
        decider = Decider(SliceLimits(dead_man=None))
        try:
            return {each.run_id: each for each in replay_all([workspace], Wanted(names, **wanted), decider)}
        finally:
            decider.close()

    def state(self) -> dict[str, tuple[int, bytes]]:
        """Every file of the workspace: its time and its content."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for workspace in made.opened:
        workspace.close()


def test_a_replay_executes_nothing_and_touches_no_file(site: Site) -> None:
    site.run("wf-1")
    site.run("wf-2", given={"ask": True})
    before = site.state()
    done = site.replay()
    assert {each.error for each in done.values()} == {None}
    assert done["wf-2"].open == ("well",)
    assert site.state() == before
    site.paths.sqlite.unlink()
    before = site.state()
    assert len(site.replay(workflow="short", last=5)) == 2
    assert site.state() == before


def test_each_receipt_is_read_once(site: Site) -> None:
    site.run("wf-1")
    assert site.replay("wf-1")["wf-1"].receipts == 4
    # The first commit and its tree; the run's, and the trees of the root, runs, the day, the run, steps, its source
    # and the version of it.
    assert site.opened[0].ledger.objects.reads == 4 + 2 + 8


def test_a_changed_request_is_named_with_its_line_and_difference(site: Site) -> None:
    site.run("wf-1")
    site.change("echo done", "echo finished")
    error = site.replay("wf-1")["wf-1"].error
    assert isinstance(error, Divergence)
    assert error.details is not None
    assert (error.details["key"], error.details["site"]) == ("say", "flow.py:9")
    assert '-  "command": "echo done"' in error.details["request_diff"]
    assert '+  "command": "echo finished"' in error.details["request_diff"]


def test_another_end_is_a_divergence_though_every_receipt_fits(site: Site) -> None:
    site.run("wf-1")
    site.change(".stdout", ".stdout.strip()")
    error = site.replay("wf")["wf-1"].error
    assert isinstance(error, Divergence)
    assert 'ended as completed with "done\\n" before' in error.message
    assert '+  "output": "done",' in (error.details or {})["request_diff"]


def test_a_new_call_at_the_end_is_a_divergence_with_its_line(site: Site) -> None:
    site.run("wf-1")
    site.change('return (await bash("echo done", name="say")).stdout', SAID_AND_MORE)
    error = site.replay("wf-1")["wf-1"].error
    assert isinstance(error, Divergence)
    assert "it completed then, and now waits for bash 'new', flow.py:10" in error.message
    assert (error.details or {})["site"] == "flow.py:10"


SAID_AND_MORE = """said = (await bash("echo done", name="say")).stdout
    await bash("true", name="new")
    return said"""


def test_only_the_moment_that_is_named_has_to_fit(site: Site) -> None:
    site.run("wf-1")
    site.change("echo done", "echo finished")
    assert site.replay("wf-1@mark")["wf-1"].error is None
    assert site.replay("wf-1@say")["wf-1"].error is not None


def test_input_that_no_longer_fits_and_code_that_is_gone_are_told_and_hide_no_other_run(site: Site) -> None:
    site.run("wf-1")
    site.run("wf-2", ref="flow.py:other")
    site.change("inputs: dict", "inputs: list")
    error = site.replay()["wf-1"].error
    assert isinstance(error, Divergence)
    assert "the recorded input does not fit" in error.message
    site.change("async def other", "async def renamed")
    done = site.replay()
    assert isinstance(done["wf-2"].error, CannotLoad)
    assert done["wf-1"].error is None


def test_a_fetched_run_is_replayed_by_the_code_here_and_cannot_say_which_file_is_imported(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Site(tmp_path_factory.mktemp("other"))
    (other.root / "setup.py").write_text(FLOW)
    other.run("good")
    other.run("bad", ref="setup.py:flow")
    site.run("mine")
    (site.root / "setup.py").write_text("raise AssertionError('imported')")
    fetch = ["git", "-C", site.paths.receipts, "fetch", "-q", other.paths.receipts]
    subprocess.run([*fetch, "refs/runs/*:refs/remotes/origin/runs/*"], check=True)
    assert site.replay().keys() == {"mine"}
    done = site.replay(fetched=True)
    assert done.keys() == {"mine", "good", "bad"}
    assert done["good"].error is None
    assert isinstance(done["bad"].error, InvalidInput)
    assert "none of this workspace's" in done["bad"].error.message
    assert [each.name for each in (done["good"], done["mine"])] == ["origin/good", "mine"]
    assert site.replay("origin/good")["good"].error is None
    assert site.replay(done["bad"].commit)["bad"].error is not None


def test_runs_are_chosen_by_workflow_and_by_their_age(site: Site) -> None:
    for run_id in ("wf-1", "wf-2", "wf-3"):
        site.run(run_id)
    site.run("o-1", ref="flow.py:other")
    assert site.replay(workflow="flow.py:other").keys() == {"o-1"}
    assert site.replay(workflow="flow.py").keys() == {"wf-1", "wf-2", "wf-3", "o-1"}
    assert list(site.replay(workflow="short", last=2)) == ["wf-3", "wf-2"]
    assert list(site.replay(last=2)) == ["o-1", "wf-3"]
    with pytest.raises(NotFound, match="no run of a workflow 'shrt'") as caught:
        site.replay(workflow="shrt")
    assert "short" in str(caught.value.hint)
