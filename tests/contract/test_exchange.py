"""What leaves a workspace and what it brings in, by a remote (FORMAT §2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.exchanging import WITHOUT_GIT, bundle, desk, run, store, whole_run
from tests.contract.ledgers import (
    DAY,
    NOON,
    TickingClock,
    end_draft,
    git,
    record,
    step_draft,
)
from tests.contract.remotes import ENVIRONMENT, SOMEBODY, add_remote, bare, refs_of

from hermes_workflows import exchange
from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, Execution, RunRequest, RunStarted, draft
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Adopted, Entry
from hermes_workflows.store.repository import GENESIS
from hermes_workflows.verifying import verify_all
from hermes_workflows.workspace import Workspace


@pytest.fixture(params=["git", "dulwich"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    return ENVIRONMENT if request.param == "git" else WITHOUT_GIT


@pytest.fixture
def ours(tmp_path: Path, environment: dict[str, str]) -> Iterator[Workspace]:
    made = desk(tmp_path, "ours", environment)
    yield made
    assert git(store(made), "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


@pytest.fixture
def theirs(tmp_path: Path, environment: dict[str, str]) -> Iterator[Workspace]:
    made = desk(tmp_path, "theirs", environment)
    yield made
    made.close()


@pytest.fixture
def hub(tmp_path: Path, ours: Workspace, theirs: Workspace) -> Path:
    made = bare(tmp_path)
    add_remote(store(ours), made)
    add_remote(store(theirs), made)
    return made


def test_two_workspaces_that_never_met_share_a_remote(hub: Path, ours: Workspace, theirs: Workspace) -> None:
    for workspace, name in ((ours, "wf_ours"), (theirs, "wf_theirs")):
        whole_run(workspace, name)
        workspace.ledger.seal()
        assert not exchange.push(workspace).of("refused")
    assert refs_of(hub).keys() == {
        "refs/heads/main",
        f"refs/heads/ledger/{ours.ledger.home}",
        f"refs/heads/ledger/{theirs.ledger.home}",
        "refs/runs/wf_ours",
        "refs/runs/wf_theirs",
    }
    came = exchange.fetch(ours)
    assert came.new == (f"ledger/{theirs.ledger.home}", "runs/wf_theirs")
    assert ours.find("origin/wf_theirs").receipts == theirs.find("wf_theirs").receipts
    assert git(hub, "fsck", "--full", "--strict", "--no-dangling") == ""


def test_a_sealed_run_comes_along_in_its_ledger(hub: Path, ours: Workspace, theirs: Workspace) -> None:
    tip = whole_run(theirs)
    theirs.ledger.seal(keep=0)
    exchange.push(theirs)
    assert "refs/runs/wf_a" not in refs_of(hub)
    exchange.fetch(ours)
    assert ours.find("origin/wf_a").head.tip == tip


def test_a_neighbours_sealed_runs_are_seen_without_a_remote_between(ours: Workspace, theirs: Workspace) -> None:
    tip = whole_run(theirs)
    theirs.ledger.seal(keep=0)
    add_remote(store(ours), store(theirs).path, "next")
    exchange.fetch(ours)
    assert ours.find("next/wf_a").head.tip == tip
    run(ours, "wf_b")
    (refused,) = exchange.push(ours).of("refused")
    assert "a workspace's own store" in refused.reason


def test_a_run_that_was_sent_while_it_went_on_does_not_stay_so_when_it_is_sealed(
    hub: Path, ours: Workspace, theirs: Workspace
) -> None:
    run(theirs, "wf_a")
    exchange.push(theirs)
    tip = record(theirs.ledger, "wf_a", end_draft()).head.tip
    theirs.ledger.seal(keep=0)
    assert "refs/runs/wf_a" in [one.there for one in exchange.push(theirs).of("sent")]
    exchange.fetch(ours)
    assert ours.find("origin/wf_a").head.tip == tip


@pytest.mark.parametrize("keep", [0, 1])
def test_a_run_of_ours_comes_back_as_no_news_although_it_has_gone_on(hub: Path, ours: Workspace, keep: int) -> None:
    run(ours, "wf_a")
    exchange.push(ours)
    record(ours.ledger, "wf_a", end_draft())
    ours.ledger.seal(keep=keep)
    came = exchange.fetch(ours)
    assert not [*came.new, *came.moved]


def test_what_is_there_is_not_sent_again(hub: Path, ours: Workspace) -> None:
    run(ours, "wf_a")
    exchange.push(ours)
    run(ours, "wf_b")
    done = exchange.push(ours)
    assert [one.there for one in done.of("sent")] == ["refs/runs/wf_b"]
    assert len(done.of("unchanged")) == 2


def test_only_own_runs_are_pushed(hub: Path, ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    whole_run(theirs, "wf_theirs")
    exchange.import_bundle(ours, bundle(theirs, "wf_theirs", tmp_path / "file.bundle"))
    run(ours, "wf_ours")
    exchange.push(ours)
    assert refs_of(hub, "refs/runs").keys() == {"refs/runs/wf_ours"}


def test_a_main_that_is_ahead_there_is_no_fault(hub: Path, ours: Workspace, theirs: Workspace) -> None:
    exchange.push(ours)
    merged = git(hub, "commit-tree", "-m", "merged", "-p", GENESIS, f"{GENESIS}^{{tree}}", env=SOMEBODY).strip()
    git(hub, "update-ref", "refs/heads/main", merged)
    done = exchange.push(ours)
    assert [one.ref for one in done.of("behind")] == ["refs/heads/main"]
    assert not done.of("refused")
    assert refs_of(hub)["refs/heads/main"] == merged
    assert refs_of(store(ours))["refs/heads/main"] == GENESIS


def test_a_run_that_was_changed_there_is_refused_and_said_so(hub: Path, ours: Workspace) -> None:
    tip = run(ours, "wf_a")
    exchange.push(ours)
    forged = git(hub, "commit-tree", "-m", "forged", "-p", tip, f"{tip}^{{tree}}", env=SOMEBODY).strip()
    git(hub, "update-ref", "refs/runs/wf_a", forged)
    record(ours.ledger, "wf_a", step_draft("one"))
    (refused,) = exchange.push(ours).of("refused")
    assert (refused.ref, "fetch first" in refused.reason) == ("refs/runs/wf_a", True)
    exchange.fetch(ours)
    (refused,) = exchange.push(ours).of("refused")
    assert "nothing is ever forced" in refused.reason
    assert refs_of(hub)["refs/runs/wf_a"] == forged


def test_refs_among_the_runs_that_are_none_are_named_and_harm_nobody(
    hub: Path, ours: Workspace, theirs: Workspace
) -> None:
    tip = whole_run(theirs)
    exchange.push(theirs)
    git(hub, "update-ref", "refs/runs/wf_other", tip)
    git(hub, "update-ref", "refs/runs/nothing", GENESIS)
    git(hub, "update-ref", "refs/runs/text", git(hub, "rev-parse", f"{GENESIS}:README.md").strip())
    came = exchange.fetch(ours)
    assert came.no_runs.keys() == {"runs/nothing", "runs/text", "runs/wf_other"}
    assert came.no_runs["runs/wf_other"] == "it is a commit of run wf_a"
    assert [head.run_id for _, head in ours.ledger.fetched()] == ["wf_a"]
    assert ours.runs() == []


def test_fetched_runs_are_never_queued(hub: Path, ours: Workspace, theirs: Workspace) -> None:
    run(theirs, "wf_living")
    exchange.push(theirs)
    exchange.fetch(ours)
    ours.runs()
    assert ours.queue.work() == []


def test_children_that_only_others_have_are_missed_by_nobody(
    hub: Path, ours: Workspace, theirs: Workspace, tmp_path: Path
) -> None:
    """What a parent saw end elsewhere is no claim about a run of ours, nor about one that is not here."""
    child = whole_run(theirs, "wf_a.child")
    parent = run(theirs, "wf_a", step_draft("child", child="wf_a.child", tip=child))
    exchange.push(theirs)
    exchange.fetch(ours)
    exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    source = {"run": "wf_a", "commit": parent, "how": "fork", "seq": "1"}
    own = RunStarted(
        key="",
        request=RunRequest(workflow="module:function"),
        execution=Execution(started_at=NOON, workspace=ours.ledger.home, source=source),
        path=layout.RUN,
    )
    adopted = Adopted(parent, (layout.step("child"),))
    ours.ledger.create(Entry("wf_fork", (draft(own, Author("starter")),)), DAY, adopted)
    for another in (False, True):
        if another:
            whole_run(ours, "wf_a.child")
        assert not any(verify_all(ours.ledger, MemoryQueue(clock=TickingClock())).values())
