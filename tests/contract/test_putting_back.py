"""A run's ref that somebody else has moved: accepted where only something was added, else kept and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.forging import RUN, indexed, object_path, problems, replaced, told
from tests.contract.ledgers import end_draft, finished, git, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock
from tests.contract.workspaces import FLOW

from hermes_workflows.errors import Conflict, StoreFailure
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.store import index
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Rejected
from hermes_workflows.workspace import Surroundings

IDENTITY = {f"GIT_{who}_{what}": "eve" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    made = open_git(tmp_path)
    start(made)
    record(made, "wf_a", step_draft("one", 1))
    record(made, "wf_a", step_draft("two", 2))
    yield made
    assert git(made, "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


@pytest.fixture
def queue(ledger: GitLedger) -> MemoryQueue:
    return indexed(ledger)


def value(ledger: GitLedger, ref: str = RUN) -> str:
    return git(ledger, "rev-parse", ref).strip()


def refreshed(ledger: GitLedger, queue: MemoryQueue) -> tuple[str, ...]:
    """What another process puts back, which has seen nothing but the index."""
    other = open_git(ledger.path.parent)
    done = index.refresh_all(other, queue)
    other.close()
    return done.put_back


def commit_on_top(ledger: GitLedger, name: str, content: bytes) -> str:
    """A commit by plain git that adds one file to the run's folder."""
    file = ledger.path.parent / "content"
    file.write_bytes(content)
    blob = git(ledger, "hash-object", "-w", str(file)).strip()
    staged = {"GIT_INDEX_FILE": str(ledger.path.parent / "staged")}
    git(ledger, "read-tree", RUN, env=staged)
    git(ledger, "update-index", "--add", "--cacheinfo", f"100644,{blob},runs/2026-11-29/wf_a/{name}", env=staged)
    tree = git(ledger, "write-tree", env=staged).strip()
    made = git(ledger, "commit-tree", tree, "-p", RUN, "-m", "by hand", env=IDENTITY).strip()
    git(ledger, "update-ref", RUN, made)
    return made


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_set_back_is_kept_aside_and_put_back(ledger: GitLedger, queue: MemoryQueue, packed: bool) -> None:
    ours, theirs = value(ledger), value(ledger, f"{RUN}~1")
    git(ledger, "update-ref", RUN, theirs)
    if packed:
        git(ledger, "pack-refs", "--all")
    assert refreshed(ledger, queue) == ("wf_a",)
    assert value(ledger) == ours
    assert list(ledger.rejected()) == [Rejected("wf_a", theirs, f"refs/rejected/wf_a/{theirs}")]
    assert refreshed(ledger, queue) == ()


def test_it_is_reported_until_somebody_has_looked(ledger: GitLedger, queue: MemoryQueue) -> None:
    replaced(ledger, b'"output": 1,', b'"output": 7,')
    theirs = value(ledger)
    assert "was moved" in told(problems(ledger, queue))
    assert refreshed(ledger, queue) == ("wf_a",)
    (found,) = problems(ledger, queue)
    assert (found.run_id, found.commit, found.path) == ("wf_a", theirs, f"refs/rejected/wf_a/{theirs}")
    git(ledger, "update-ref", "-d", found.path)
    assert problems(ledger, queue) == []


def test_one_run_that_is_asked_for_is_put_back_as_well(ledger: GitLedger, queue: MemoryQueue) -> None:
    ours = value(ledger)
    git(ledger, "update-ref", RUN, f"{RUN}~2")
    row = index.refresh(open_git(ledger.path.parent), queue, "wf_a")
    assert row is not None
    assert (row.tip, value(ledger)) == (ours, ours)


def test_a_ref_that_was_deleted_comes_back(ledger: GitLedger, queue: MemoryQueue) -> None:
    ours = value(ledger)
    git(ledger, "update-ref", "-d", RUN)
    assert refreshed(ledger, queue) == ("wf_a",)
    assert value(ledger) == ours
    assert list(ledger.rejected()) == []


def test_what_another_process_has_recorded_is_accepted(ledger: GitLedger, queue: MemoryQueue) -> None:
    other = open_git(ledger.path.parent)
    tip = record(other, "wf_a", step_draft("three", 3)).head.tip
    assert refreshed(ledger, queue) == ()
    assert value(ledger) == tip
    other.close()


def test_a_file_that_plain_git_adds_is_accepted(ledger: GitLedger, queue: MemoryQueue) -> None:
    tip = commit_on_top(ledger, "README.md", b"# hello\n")
    assert refreshed(ledger, queue) == ()
    assert value(ledger) == tip


@pytest.mark.parametrize(
    ("name", "content"),
    [("hooks/x", b"evil"), ("steps/one.json", b"{}"), ("steps/three.json", b"no receipt"), ("wf_b/run.json", b"{}")],
)
def test_a_file_that_may_not_be_there_is_not(ledger: GitLedger, queue: MemoryQueue, name: str, content: bytes) -> None:
    ours = value(ledger)
    commit_on_top(ledger, name, content)
    assert refreshed(ledger, queue) == ("wf_a",)
    assert value(ledger) == ours


def test_a_receipt_that_says_it_came_before_what_is_there_is_not(ledger: GitLedger, queue: MemoryQueue) -> None:
    ours = value(ledger)
    commit_on_top(ledger, "steps/three.json", step_draft("three", 3).render(1))
    assert refreshed(ledger, queue) == ("wf_a",)
    assert value(ledger) == ours


def test_what_was_put_aside_and_is_no_commit_of_a_run_is_told_under_the_runs_name(ledger: GitLedger) -> None:
    main = value(ledger, "main")
    git(ledger, "update-ref", f"refs/rejected/wf_a/{main}", main)
    assert list(ledger.rejected()) == [Rejected("wf_a", main, f"refs/rejected/wf_a/{main}")]


def test_a_merge_is_not_accepted(ledger: GitLedger, queue: MemoryQueue) -> None:
    ours = value(ledger)
    arguments = ("commit-tree", f"{RUN}^{{tree}}", "-p", RUN, "-p", "main", "-m", "merge")
    git(ledger, "update-ref", RUN, git(ledger, *arguments, env=IDENTITY).strip())
    assert refreshed(ledger, queue) == ("wf_a",)
    assert value(ledger) == ours


def test_a_runner_goes_on_from_its_own_commit(ledger: GitLedger) -> None:
    """Without an index, and before anything has looked: the result of a step must not land on somebody's history."""
    ours = value(ledger)
    git(ledger, "update-ref", RUN, f"{RUN}~1")
    done = record(ledger, "wf_a", step_draft("three", 3))
    assert done.base == ours
    assert [receipt.key for receipt in ledger.read("wf_a")[1]] == ["", "one", "two", "three"]
    assert [each.run_id for each in ledger.rejected()] == ["wf_a"]


def test_a_ref_of_a_sealed_run_is_not_missed(ledger: GitLedger, queue: MemoryQueue) -> None:
    record(ledger, "wf_a", end_draft())
    index.refresh_all(ledger, queue)
    ledger.seal(keep=0)
    assert refreshed(ledger, queue) == ()
    assert git(ledger, "for-each-ref", "refs/runs") == ""


def test_a_ledger_that_was_set_back_loses_no_run(ledger: GitLedger, queue: MemoryQueue) -> None:
    for name in ("wf_b", "wf_c"):
        finished(ledger, name)
        ledger.seal(keep=0)
    index.refresh_all(ledger, queue)
    git(ledger, "update-ref", "refs/heads/ledger", "ledger~1")
    assert refreshed(ledger, queue) == ("wf_c",)
    again = open_git(ledger.path.parent)
    assert again.seal(keep=0) == 1
    assert {(head.run_id, head.sealed) for head in again.heads()} == {("wf_a", False), ("wf_b", True), ("wf_c", True)}
    assert problems(again, queue) == []
    again.close()


def test_runs_whose_seal_can_no_longer_be_reached_come_back_and_are_sealed_again(tmp_path: Path) -> None:
    made = open_git(tmp_path)
    for name in ("wf_a", "wf_b", "wf_c"):
        finished(made, name)
        made.seal(keep=0)
    queue = indexed(made)
    object_path(made, "ledger~1").unlink()
    made.close()
    again = open_git(tmp_path)
    assert set(index.refresh_all(again, queue).put_back) == {"wf_a", "wf_b"}
    assert again.seal(keep=0) == 2
    assert [(len(again.read(head.run_id)[1]), head.sealed) for head in open_git(tmp_path).heads()] == [(2, True)] * 3
    again.close()


def test_a_backup_that_is_older_than_the_index_is_believed(ledger: GitLedger, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    git(tmp_path, "clone", "-q", "--mirror", str(ledger.path), str(tmp_path / "backup" / "workflows.git"))
    git(tmp_path / "backup" / "workflows.git", "config", "hermes.workspace", ledger.home)
    record(ledger, "wf_a", step_draft("three", 3))
    queue = indexed(ledger)
    restored = open_git(tmp_path / "backup")
    assert refreshed(restored, queue) == ()
    row = queue.indexed("wf_a")
    assert row is not None
    assert row.tip == value(restored) != value(ledger)
    restored.close()


def test_nothing_is_moved_where_nothing_can_be_compared(ledger: GitLedger, queue: MemoryQueue) -> None:
    ours = value(ledger)
    (ledger.path / RUN).write_bytes(b"")
    assert refreshed(ledger, queue) == ()
    assert "holds no commit id" in told(problems(ledger, queue))
    (ledger.path / RUN).write_text(ours + "\n")
    assert problems(ledger, MemoryQueue(clock=FrozenClock())) == []


def test_an_id_is_not_free_because_its_ref_was_deleted(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    registry = parse("{}", tmp_path / ".hermes" / "workflows.registry.json")
    around = Surroundings(FrozenClock(), {})
    with closing(open_workspace(registry, registry.dbs["default"], around, create=True)) as workspace:
        assert isinstance(workspace.ledger, GitLedger)
        workspace.start("flow.py:launch", {"topic": "docs"}, run_id="wf")
        tip = value(workspace.ledger, "refs/runs/wf")
        git(workspace.ledger, "update-ref", "-d", "refs/runs/wf")
        with pytest.raises(Conflict, match="another input"):
            workspace.start("flow.py:launch", {"topic": "other"}, run_id="wf")
        assert value(workspace.ledger, "refs/runs/wf") == tip


def test_a_repository_that_was_moved_away_is_not_begun_anew(ledger: GitLedger, tmp_path: Path) -> None:
    tip = value(ledger)
    away = ledger.path.rename(tmp_path / "away")
    for attempt in (lambda: list(ledger.heads()), lambda: ledger.put_back("wf_a", tip)):
        with pytest.raises(StoreFailure, match="is not there any more"):
            attempt()
    assert not ledger.path.exists()
    away.rename(ledger.path)
    assert value(ledger) == tip


def test_what_cannot_be_read_for_a_moment_is_not_taken_for_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has too many files open must not reject what another one has recorded."""
    ledger, other = open_git(tmp_path), open_git(tmp_path)
    start(ledger)
    record(ledger, "wf_a", step_draft("one"))
    newest = record(other, "wf_a", step_draft("two")).head.tip
    read, failed = ledger.objects.read, []

    def fails_once(oid: bytes, kind: bytes) -> bytes:
        if oid.hex() == newest and not failed:
            failed.append(oid)
            raise StoreFailure("cannot read: Too many open files")
        return read(oid, kind)

    monkeypatch.setattr(ledger.objects, "read", fails_once)
    with pytest.raises(StoreFailure):
        record(ledger, "wf_a", step_draft("three"))
    assert record(ledger, "wf_a", step_draft("three")).base == newest
    assert list(ledger.rejected()) == []
