"""Maintenance: less space, nothing lost, one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.contract.forging import problems
from tests.contract.ledgers import finished, git, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock

from hermes_workflows.errors import NotFound, StoreFailure, TemporarilyLocked
from hermes_workflows.registry import parse
from hermes_workflows.runner import housekeeping
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.maintenance import Housekeeper, clutter, loose_objects
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.workspace import Surroundings, Workspace


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    made = open_git(tmp_path)
    start(made)
    for number in range(20):
        record(made, "wf_a", step_draft(f"step-{number}", "a result " * 20))
    yield made
    assert git(made, "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


def workspace(ledger: GitLedger, registry: str = "{}") -> Workspace:
    known = parse(registry, ledger.path.parent / ".hermes" / "workflows.registry.json")
    clock = FrozenClock()
    paths = known.database(str(ledger.path.with_suffix(".sqlite")), ledger.path.parent)
    assert paths.receipts == ledger.path
    return Workspace(known, paths, ledger, MemoryQueue(clock=clock), Surroundings(clock, {}))


@pytest.mark.parametrize("full", [False, True])
def test_it_takes_less_space_afterwards_and_everything_is_there(ledger: GitLedger, full: bool) -> None:
    receipts = ledger.read("wf_a")[1]
    done = workspace(ledger).maintain(full=full)
    assert done.failed == ()
    assert (done.after.loose, done.after.packs) == (0, 1)
    assert done.after.size < done.before.size / 5
    assert ledger.read("wf_a")[1] == receipts
    assert open_git(ledger.path.parent).read("wf_a")[1] == receipts
    assert problems(ledger) == []


def test_a_run_is_packed_as_what_each_receipt_changed_beside_others_of_its_shape(ledger: GitLedger) -> None:
    runs = [f"wf_{number}" for number in range(8)]
    for run_id in runs:
        start(ledger, run_id)
    for number in range(40):
        for run_id in runs:
            record(ledger, run_id, step_draft(f"step-{number}", run_id))
    workspace(ledger).maintain()
    (index,) = (ledger.path / "objects" / "pack").glob("*.idx")
    packed = (line.split() for line in git(ledger, "verify-pack", "-v", str(index)).splitlines())
    sizes = [int(words[3]) for words in packed if words[1:2] == ["tree"]]
    # Five folders a receipt, of which that of the steps has forty names at the end: 50 bytes each, 99 without paths.
    assert sum(sizes) < 70 * len(sizes)


def test_it_seals_what_has_finished_and_drops_old_refs(ledger: GitLedger) -> None:
    for number in range(5):
        finished(ledger, f"wf_{number}")
    assert workspace(ledger, '{"keep_runs": 2}').maintain().sealed == 5
    refs = git(ledger, "for-each-ref", "--format=%(refname)", "refs/runs").split()
    assert refs == ["refs/runs/wf_3", "refs/runs/wf_4", "refs/runs/wf_a"]
    assert not (ledger.path / "refs/runs/wf_3").exists()
    assert len(list(ledger.heads())) == 6


def test_objects_that_nothing_refers_to_yet_stay(ledger: GitLedger) -> None:
    """Those of a writer that is about to move its ref: loose ones, and ones that lie in a pack already."""
    git(ledger, "update-ref", "refs/heads/other", "refs/runs/wf_a")
    tip = record(ledger, "wf_a", step_draft("last")).head.tip
    git(ledger, "update-ref", "-d", "refs/runs/wf_a")
    for _ in range(2):
        workspace(ledger).maintain()
        assert git(ledger, "cat-file", "-t", tip).strip() == "commit"
    workspace(ledger).maintain(full=True)
    assert git(ledger, "cat-file", "-t", tip).strip() == "commit"
    git(ledger, "update-ref", "refs/runs/wf_a", tip)


def test_one_does_it_and_the_others_are_told(ledger: GitLedger) -> None:
    with Housekeeper(ledger.path).leased(), pytest.raises(TemporarilyLocked, match="maintained by another process"):
        workspace(ledger).maintain()
    assert workspace(ledger).maintain().failed == ()


def test_without_git_it_says_so(ledger: GitLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "")
        with pytest.raises(NotFound, match="no git on PATH"):
            workspace(ledger).maintain()


def test_what_git_could_not_do_is_told_and_the_rest_done(ledger: GitLedger) -> None:
    (ledger.path / "packed-refs.lock").write_text("")
    done = workspace(ledger).maintain()
    (ledger.path / "packed-refs.lock").unlink()
    assert len(done.failed) == 1
    assert done.failed[0].startswith("git pack-refs: ")
    assert done.after.loose == 0


def test_what_a_killed_writer_has_left_is_no_reason_to_tidy_nothing(ledger: GitLedger) -> None:
    (ledger.path / "objects/pack/tmp_pack_of_somebody").write_bytes(b"PACK")
    assert workspace(ledger).maintain().failed == ()


def test_a_stopped_one_starts_nothing_more(ledger: GitLedger) -> None:
    keeper = Housekeeper(ledger.path)
    before = keeper.size()
    keeper.stop()
    assert keeper.tidy() == ()
    assert Housekeeper(ledger.path).size() == before


def test_the_runner_packs_when_it_is_idle_and_there_is_enough(
    ledger: GitLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace(ledger)
    job, clock = housekeeping.Housekeeping(place), place.clock
    assert isinstance(clock, FrozenClock)
    for limit, idle in ((loose_objects(ledger.path) + 1, 60.0), (0, 1.0)):
        monkeypatch.setattr(housekeeping, "LOOSE_LIMIT", limit)
        clock.advance(housekeeping.LOOK_SECONDS)
        job.look(idle)
        assert job._thread is None
    clock.advance(housekeeping.LOOK_SECONDS)
    job.look(60.0)
    assert job._thread is not None
    job._thread.join(60)
    job.close()
    assert Housekeeper(ledger.path).size().packs == 1


def test_a_repository_that_is_gone_has_nothing_to_tidy(tmp_path: Path) -> None:
    assert clutter(tmp_path / "gone") == 0


def test_whoever_is_stopped_before_it_begins_starts_no_git(ledger: GitLedger) -> None:
    keeper = Housekeeper(ledger.path)
    keeper.stop()
    assert keeper.stopped
    with pytest.raises(StoreFailure, match="git cannot read"):
        keeper.size()


def test_a_git_at_work_ends_with_its_children_when_it_is_stopped(
    ledger: GitLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program, begun = tmp_path / "bin" / "git", tmp_path / "begun"
    os.mkfifo(begun)
    # The child holds the pipe that its parent's words go into.
    program.write_text(f"#!/bin/sh\n/bin/sleep 600 &\necho begun > {begun}\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    keeper = Housekeeper(ledger.path)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(keeper.tidy)
        assert begun.read_text() == "begun\n"
        keeper.stop()
        assert done.result(60) == ()
    monkeypatch.undo()


def test_without_git_nothing_can_be_tidied(ledger: GitLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NotFound, match="there is no git on PATH"):
        Housekeeper(ledger.path).size()
