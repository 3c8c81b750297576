"""What a crash left in a repository is found, and what is safe to repair is repaired without losing anything."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from tests.contract.ledgers import end_draft, finished, git, open_git, record, start, step_draft, with_one_step

from hermes_workflows.errors import StoreFailure, TemporarilyLocked
from hermes_workflows.store import damage, peek
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.mending import Mender
from hermes_workflows.store.repository import GENESIS, missing_settings

HOUR, DAY = 3600.0, 86400.0
RUN = "refs/runs/wf_a"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    with closing(with_one_step(tmp_path)) as made:
        yield made


@pytest.fixture
def mender(ledger: GitLedger) -> Iterator[Mender]:
    made = Mender(ledger.path)
    yield made
    made.close()


def loose(ledger: GitLedger, oid: str) -> Path:
    return ledger.path / "objects" / oid[:2] / oid[2:]


def damaged(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(content)
    return path


def kept(ledger: GitLedger) -> list[str]:
    return sorted(os.listdir(ledger.path / "hermes" / "damaged"))


def old(path: Path, seconds: float = HOUR) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - seconds,) * 2)
    return path


# -- locks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["packed-refs.lock", "refs/runs/wf_a.lock", "objects/info/commit-graph.lock"])
def test_a_lock_that_nobody_touches_any_more_is_taken_away(ledger: GitLedger, mender: Mender, name: str) -> None:
    old(ledger.path / name, seconds=DAY)
    (lock,) = damage.stale_locks(ledger.path, time.time())
    assert lock.path == ledger.path / name
    assert mender.sweep(lock) == f"took {name} away"
    assert list(damage.stale_locks(ledger.path, time.time())) == []
    assert len(kept(ledger)) == 1


def test_a_lock_of_a_git_that_is_at_work_is_left_alone(ledger: GitLedger) -> None:
    old(ledger.path / "packed-refs.lock", seconds=damage.STALE_SECONDS / 2)
    old(ledger.path / "HEAD.lock", seconds=-HOUR)
    old(ledger.path / "objects" / "maintenance.lock", seconds=HOUR)
    assert list(damage.stale_locks(ledger.path, time.time())) == []


def test_a_lock_that_somebody_else_has_taken_meanwhile_is_left_alone(ledger: GitLedger, mender: Mender) -> None:
    path = old(ledger.path / "packed-refs.lock")
    (lock,) = damage.stale_locks(ledger.path, time.time())
    path.touch()
    assert mender.sweep(lock) is None
    assert path.exists()


def test_a_lock_that_git_has_let_go_meanwhile_needs_no_sweeping(ledger: GitLedger, mender: Mender) -> None:
    old(ledger.path / "packed-refs.lock")
    (lock,) = damage.stale_locks(ledger.path, time.time())
    lock.path.unlink()
    assert mender.sweep(lock) is None


def test_nothing_is_taken_away_under_a_writer_of_ours(ledger: GitLedger, mender: Mender) -> None:
    """It may be suspended between comparing and renaming: without its lock two would be first."""
    old(ledger.path / f"{RUN}.lock")
    (lock,) = damage.stale_locks(ledger.path, time.time())
    with ledger._refs.locked(["wf_a"]), pytest.raises(TemporarilyLocked):
        Mender(ledger.path, patience=0.05).sweep(lock)
    assert lock.path.exists()
    assert mender.sweep(lock)


# -- objects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "empty"), [(b"", True), (b"x\x9c garbage", False)])
def test_a_damaged_object_that_nothing_refers_to_is_moved_away(
    ledger: GitLedger, mender: Mender, content: bytes, empty: bool
) -> None:
    path = damaged(ledger.path / "objects" / "00" / ("0" * 38), content)
    (bad,) = damage.bad_objects(ledger.path, mender.objects)
    assert (bad.path, bad.empty, bad.needed) == (path, empty, False)
    assert mender.put_aside(bad) == f"moved object {'0' * 40} to hermes/damaged"
    assert (ledger.path / "hermes" / "damaged" / kept(ledger)[0]).read_bytes() == content
    assert git(ledger, "fsck", "--full", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("what", ["commit", "tree", "blob"])
def test_a_damaged_object_that_receipts_need_is_named_and_stays(ledger: GitLedger, mender: Mender, what: str) -> None:
    folder = ledger.head("wf_a")
    assert folder
    suffix = {"commit": "", "tree": f":{folder.folder}", "blob": f":{folder.folder}/run.json"}[what]
    damaged(loose(ledger, git(ledger, "rev-parse", f"{RUN}{suffix}").strip()))
    (bad,) = damage.bad_objects(ledger.path, mender.objects)
    assert bad.needed
    assert mender.put_aside(bad) is None
    assert bad.path.exists()


def test_a_damaged_object_that_a_pack_has_as_well_is_moved_away_and_the_run_can_be_read_again(
    ledger: GitLedger, mender: Mender
) -> None:
    tip = git(ledger, "rev-parse", RUN).strip()
    git(ledger, "repack", "-adq")
    damaged(loose(ledger, tip))
    (bad,) = damage.bad_objects(ledger.path, mender.objects)
    assert not bad.needed
    assert mender.put_aside(bad)
    assert len(open_git(ledger.path.parent).read("wf_a")[1]) == 2


def test_whole_objects_and_what_a_git_at_work_has_begun_are_no_finding(ledger: GitLedger, mender: Mender) -> None:
    (ledger.path / "objects" / git(ledger, "rev-parse", RUN)[:2] / "tmp_obj_begun").write_bytes(b"x\x9c half")
    assert damage.bad_objects(ledger.path, mender.objects) == []


@pytest.mark.parametrize("content", [b"", b"PACK"])
def test_a_pack_that_was_cut_off_is_named(ledger: GitLedger, content: bytes) -> None:
    git(ledger, "repack", "-adq")
    (pack,) = (ledger.path / "objects" / "pack").glob("*.pack")
    assert list(damage.bad_packs(ledger.path)) == []
    whole = pack.read_bytes()
    damaged(pack, content)
    assert list(damage.bad_packs(ledger.path)) == [(pack, "is empty or cut off")]
    damaged(pack, whole[:-20] + bytes(20))
    assert list(damage.bad_packs(ledger.path)) == [(pack, "does not fit its index")]
    pack.with_suffix(".idx").unlink()
    assert list(damage.bad_packs(ledger.path)) == [(pack, "has no index")]


# -- refs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_an_emptied_ref_is_set_to_the_newest_commit_of_its_run(ledger: GitLedger, mender: Mender, packed: bool) -> None:
    if packed:  # an older value lies in packed-refs, and an acknowledged receipt came after it
        git(ledger, "pack-refs", "--all")
    tip = record(ledger, "wf_a", step_draft("two")).head.tip
    start(ledger, "wf_b")
    (ledger.path / RUN).write_bytes(b"")
    assert damage.empty_refs(ledger.path) == [RUN]
    assert mender.restore(RUN) == f"set {RUN} to {tip}"
    assert peek.read_ref(ledger.path, RUN) == tip
    assert open_git(ledger.path.parent).verify("wf_a") == []
    assert mender.restore(RUN) is None


def test_a_commit_that_is_not_whole_is_not_the_newest(ledger: GitLedger, mender: Mender) -> None:
    """Its writer died before the barrier: it was never acknowledged."""
    tip = git(ledger, "rev-parse", RUN).strip()
    torn = record(ledger, "wf_a", step_draft("torn")).head.tip
    damaged(loose(ledger, git(ledger, "rev-parse", f"{torn}^{{tree}}").strip()))
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN) == f"set {RUN} to {tip}"


def test_a_receipt_that_was_acknowledged_and_is_damaged_is_not_dropped(ledger: GitLedger, mender: Mender) -> None:
    tip = record(ledger, "wf_a", step_draft("rotten")).head.tip
    damaged(loose(ledger, git(ledger, "rev-parse", f"{tip}^{{tree}}").strip()))
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN, tip) is None
    assert (ledger.path / RUN).read_bytes() == b""


def test_of_two_commits_that_could_be_the_newest_none_is_chosen(ledger: GitLedger, mender: Mender) -> None:
    before = git(ledger, "rev-parse", RUN).strip()
    record(ledger, "wf_a", step_draft("two"))
    git(ledger, "update-ref", RUN, before)
    record(open_git(ledger.path.parent), "wf_a", step_draft("another"))
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN) is None
    assert (ledger.path / RUN).read_bytes() == b""


def test_an_older_value_that_is_the_newest_commit_needs_no_move(ledger: GitLedger, mender: Mender) -> None:
    tip = git(ledger, "rev-parse", RUN).strip()
    git(ledger, "pack-refs", "--all")
    (ledger.path / RUN).parent.mkdir(parents=True, exist_ok=True)
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN) == f"set {RUN} to {tip}"
    assert peek.read_ref(ledger.path, RUN) == tip


def test_of_a_run_of_which_nothing_is_whole_nothing_is_chosen(ledger: GitLedger, mender: Mender) -> None:
    start(ledger, "wf_b")
    damaged(loose(ledger, git(ledger, "rev-parse", "refs/runs/wf_b^{tree}").strip()))
    (ledger.path / "refs/runs/wf_b").write_bytes(b"")
    assert mender.restore("refs/runs/wf_b") is None
    assert (ledger.path / "refs/runs/wf_b").read_bytes() == b""


def test_a_ref_that_somebody_else_mends_first_is_left_alone(
    ledger: GitLedger, mender: Mender, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = git(ledger, "rev-parse", RUN).strip()
    (ledger.path / RUN).write_bytes(b"")
    unlocked = mender._refs.alone

    def alone() -> AbstractContextManager[None]:
        (ledger.path / RUN).write_text(f"{tip}\n")
        return unlocked()

    monkeypatch.setattr(mender._refs, "alone", alone)
    assert mender.restore(RUN) is None
    assert peek.read_ref(ledger.path, RUN) == tip
    assert not (ledger.path / "hermes" / "damaged").exists()


def test_where_nothing_can_be_put_aside_nothing_is_repaired(ledger: GitLedger, mender: Mender) -> None:
    path = damaged(ledger.path / "objects" / "00" / ("0" * 38))
    (bad,) = damage.bad_objects(ledger.path, mender.objects)
    (ledger.path / "hermes").mkdir(exist_ok=True)
    (ledger.path / "hermes" / "damaged").write_text("a file")
    with pytest.raises(StoreFailure, match=r"cannot repair .*File exists"):
        mender.put_aside(bad)
    assert path.exists()


@pytest.mark.parametrize("ref", ["refs/remotes/origin/runs/wf_a", "refs/rejected/wf_a/x", "refs/heads/run/wf_a"])
def test_what_somebody_else_brought_here_is_never_taken_for_ours(ledger: GitLedger, mender: Mender, ref: str) -> None:
    """A run that goes on from ours, whole in itself, as a hostile remote may send it."""
    ours = git(ledger, "rev-parse", RUN).strip()
    theirs = record(ledger, "wf_a", step_draft("forged")).head.tip
    git(ledger, "update-ref", ref, theirs)
    git(ledger, "update-ref", "refs/remotes/other/runs/wf_a", theirs)
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN) is None
    assert mender.restore(RUN, ours) is None
    assert (ledger.path / RUN).read_bytes() == b""


def test_what_was_fetched_back_is_ours_when_the_index_knows_it(ledger: GitLedger, mender: Mender) -> None:
    tip = git(ledger, "rev-parse", RUN).strip()
    git(ledger, "update-ref", "refs/remotes/origin/runs/wf_a", tip)
    (ledger.path / RUN).write_bytes(b"")
    assert mender.restore(RUN) is None
    assert mender.restore(RUN, tip) == f"set {RUN} to {tip}"


def test_an_emptied_ledger_branch_is_set_to_its_last_seal(ledger: GitLedger, mender: Mender) -> None:
    finished(ledger, "wf_b")
    ledger.seal(keep=0)
    record(ledger, "wf_a", end_draft())
    ledger.seal(keep=0)
    seal = git(ledger, "rev-parse", peek.LEDGER).strip()
    (ledger.path / peek.LEDGER).write_bytes(b"")
    assert mender.restore(peek.LEDGER) == f"set {peek.LEDGER} to {seal}"
    fresh = open_git(ledger.path.parent)
    assert sorted(head.run_id for head in fresh.heads()) == ["wf_a", "wf_b"]
    assert fresh.verify_seals() == []


def test_an_emptied_main_is_genesis_again(ledger: GitLedger, mender: Mender) -> None:
    (ledger.path / "refs/heads/main").write_bytes(b"")
    assert mender.restore("refs/heads/main") == f"set refs/heads/main to {GENESIS}"
    assert open_git(ledger.path.parent).head("wf_a")


def test_what_was_fetched_is_removed_and_fetched_again(ledger: GitLedger, mender: Mender) -> None:
    ref = "refs/remotes/origin/runs/wf_x"
    (ledger.path / ref).parent.mkdir(parents=True)
    (ledger.path / ref).write_bytes(b"")
    assert mender.restore(ref) == f"removed {ref}: the next fetch brings it again"
    assert damage.empty_refs(ledger.path) == []


def test_another_ref_that_nobody_can_know_is_left(ledger: GitLedger, mender: Mender) -> None:
    (ledger.path / "refs/heads/topic").write_bytes(b"")
    assert mender.restore("refs/heads/topic") is None
    assert damage.empty_refs(ledger.path) == ["refs/heads/topic"]


def test_an_emptied_head_is_written_again(ledger: GitLedger, mender: Mender) -> None:
    assert mender.restore_head() is None
    (ledger.path / "HEAD").write_bytes(b"")
    assert mender.restore_head() == "let HEAD point at refs/heads/main"
    assert git(ledger, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_a_restored_mirror_is_told_what_its_config_lacks(ledger: GitLedger, tmp_path: Path) -> None:
    assert missing_settings(ledger.path) == []
    mirror = tmp_path / "mirror.git"
    git(tmp_path, "clone", "-q", "--mirror", str(ledger.path), str(mirror))
    lacking = missing_settings(mirror)
    assert ("receive.hideRefs", "refs/runs") in lacking
    for name, value in lacking:
        git(mirror, "config", "--add", name, value)
    assert missing_settings(mirror) == []
