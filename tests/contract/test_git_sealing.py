"""Sealing in git: grafts, second parents, and refs that are dropped by comparison (FORMAT §2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.ledgers import DAY, end_draft, finished, git, impatient, open_git, record, start, step_draft

from hermes_workflows.core.receipts import Author
from hermes_workflows.errors import NotFound
from hermes_workflows.store import peek
from hermes_workflows.store.commits import Commit
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.repository import GENESIS
from hermes_workflows.store.trees import Item


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    made = open_git(tmp_path)
    yield made
    assert git(made, "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


def test_a_seal_grafts_the_folder_and_names_the_tip(ledger: GitLedger) -> None:
    tip = finished(ledger, "wf_a").head.tip
    ledger.seal()
    assert git(ledger, "rev-parse", "ledger^1", "ledger^2").split() == [GENESIS, tip]
    place = f"runs/{DAY}/wf_a"
    assert git(ledger, "rev-parse", f"ledger:{place}") == git(ledger, "rev-parse", f"{tip}:{place}")
    assert git(ledger, "log", "-1", "--format=%B", "ledger").rstrip() == (
        f"seal wf_a: completed\n\nHermes-Run: wf_a\nHermes-Tip: {tip}\nHermes-Status: completed"
    )


def test_the_ledger_holds_all_days_one_commit_a_run(ledger: GitLedger) -> None:
    for number, day in enumerate(["2026-11-28", "2026-11-29", "2026-11-28"]):
        finished(ledger, f"wf_{number}", day)
    ledger.seal()
    finished(ledger, "wf_3", "2026-11-27")
    ledger.seal()
    subjects = git(ledger, "log", "--first-parent", "--format=%s", "--reverse", "ledger").splitlines()
    assert subjects[1:] == [f"seal wf_{number}: completed" for number in range(4)]
    assert git(ledger, "ls-tree", "-d", "--name-only", "-r", "ledger:runs").split() == [
        "2026-11-27",
        "2026-11-27/wf_3",
        "2026-11-28",
        "2026-11-28/wf_0",
        "2026-11-28/wf_2",
        "2026-11-29",
        "2026-11-29/wf_1",
    ]


def test_everything_stays_reachable_when_refs_are_dropped(ledger: GitLedger) -> None:
    for number in range(30):
        finished(ledger, f"wf_{number}")
    ledger.seal(keep=2)
    assert set(peek.list_refs(ledger.path, peek.RUNS)) == {"refs/runs/wf_28", "refs/runs/wf_29"}
    git(ledger, "gc", "-q", "--prune=now")
    assert len(ledger.read("wf_0")[1]) == 2
    assert len(list(ledger.heads())) == 30


def test_another_process_sees_what_was_sealed(ledger: GitLedger) -> None:
    other = open_git(ledger.path.parent)
    for name in ("wf_a", "wf_b"):
        finished(ledger, name)
        assert other.seal(keep=0) == 1
        assert ledger.seal(keep=0) == 0
        assert [head.sealed for head in (*ledger.heads(), *other.heads())].count(False) == 0
        assert ledger.head(name) == other.head(name)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("with_git", [False, True])
def test_refs_are_dropped_with_git_and_without(
    ledger: GitLedger, monkeypatch: pytest.MonkeyPatch, packed: bool, with_git: bool
) -> None:
    for name in ("wf_a", "wf_b"):
        finished(ledger, name)
    start(ledger, "wf_open")
    if packed:
        git(ledger, "pack-refs", "--all")
    with monkeypatch.context() as patched:
        if not with_git:
            patched.setenv("PATH", "")
        ledger.seal(keep=0)
    kept = {ledger._refs._next_value(ref).spare for ref in ("refs/runs/wf_open", "refs/heads/ledger")}
    assert {str(path) for path in (ledger.path / "hermes/pending").iterdir()} <= kept
    assert set(git(ledger, "for-each-ref", "--format=%(refname)").split()) == {
        "refs/heads/ledger",
        "refs/heads/main",
        "refs/runs/wf_open",
    }


@pytest.mark.parametrize("with_git", [False, True])
def test_a_ref_that_moved_is_not_dropped(ledger: GitLedger, monkeypatch: pytest.MonkeyPatch, with_git: bool) -> None:
    old = start(ledger).head.tip
    new = record(ledger, "wf_a", step_draft("work")).head.tip
    if not with_git:
        monkeypatch.setenv("PATH", "")
    ledger._refs.drop({"refs/runs/wf_a": old})
    assert peek.read_ref(ledger.path, "refs/runs/wf_a") == new


def test_a_ref_that_git_has_locked_is_dropped_the_next_time(ledger: GitLedger) -> None:
    finished(ledger, "wf_a")
    (ledger.path / "refs/runs/wf_a.lock").write_text("")
    assert ledger.seal(keep=0) == 1
    assert peek.read_ref(ledger.path, "refs/runs/wf_a")
    (ledger.path / "refs/runs/wf_a.lock").unlink()
    assert ledger.seal(keep=0) == 0
    assert peek.read_ref(ledger.path, "refs/runs/wf_a") is None


def test_a_sealed_run_whose_ref_came_back_is_dropped_again(ledger: GitLedger) -> None:
    tip = finished(ledger, "wf_a").head.tip
    ledger.seal(keep=0)
    git(ledger, "update-ref", "refs/runs/wf_a", tip)
    assert [(head.run_id, head.sealed) for head in ledger.heads()] == [("wf_a", False)]
    assert ledger.seal(keep=0) == 0
    assert [(head.run_id, head.sealed) for head in ledger.heads()] == [("wf_a", True)]


def test_a_sealed_run_whose_ref_came_back_at_an_earlier_state_has_still_ended(ledger: GitLedger) -> None:
    early = start(ledger).head.tip
    ended = record(ledger, "wf_a", end_draft()).head
    ledger.seal(keep=0)
    git(ledger, "update-ref", "refs/runs/wf_a", early)
    ledger.seal()
    head = ledger.head("wf_a")
    assert head is not None
    assert (head.tip, head.sealed) == (ended.tip, True)


def test_a_commit_on_the_ledger_that_is_no_seal_hides_nothing(ledger: GitLedger) -> None:
    finished(ledger, "wf_a")
    ledger.seal(keep=0)
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    stray = git(ledger, "commit-tree", "ledger^{tree}", "-p", "ledger", "-m", "mine\n\nHermes-Run: wf_x", env=identity)
    git(ledger, "update-ref", "refs/heads/ledger", stray.strip())
    finished(ledger, "wf_b")
    assert ledger.seal(keep=0) == 1
    assert [head.run_id for head in ledger.heads()] == ["wf_b", "wf_a"]


def test_a_seal_that_git_was_faster_than_is_made_by_the_next_job(ledger: GitLedger) -> None:
    finished(ledger, "wf_a")
    (ledger.path / "refs/heads/ledger.lock").write_text("")
    jammed = open_git(ledger.path.parent, patience=impatient(stale=0.02))
    assert jammed.seal(keep=0) == 1
    assert ledger.head("wf_a") == jammed.head("wf_a")


def test_a_finished_tip_is_looked_at_once(ledger: GitLedger) -> None:
    for number in range(3):
        finished(ledger, f"wf_{number}")
    ledger.seal()
    assert len(list(ledger.heads())) == 3
    reads: list[bytes] = []
    read = ledger.objects.read

    def counted(oid: bytes, kind: bytes) -> bytes:
        reads.append(oid)
        return read(oid, kind)

    ledger.objects.read = counted  # type: ignore[method-assign]
    ledger.seal()
    # The ledger's commit, its root and what leads to each run; nothing of the runs themselves.
    assert len(reads) <= 6


def test_a_run_is_sealed_while_others_write(ledger: GitLedger) -> None:
    start(ledger, "wf_open")
    for number in range(5):
        finished(ledger, f"wf_{number}")
        record(ledger, "wf_open", step_draft(f"s{number}"))
        assert ledger.seal(keep=1) == 1
    record(ledger, "wf_open", end_draft("failed"))
    ledger.seal(keep=0)
    assert git(ledger, "log", "-1", "--format=%s", "ledger") == "seal wf_open: failed\n"


def test_what_an_index_recalls_of_a_sealed_run_saves_reading_the_seals(ledger: GitLedger) -> None:
    tips = {f"wf_{number}": finished(ledger, f"wf_{number}").head.tip for number in range(5)}
    ledger.seal(keep=0)
    other = open_git(ledger.path.parent)
    other.ask(tips.get)
    reads: list[bytes] = []
    read = other.objects.read
    other.objects.read = lambda oid, kind: reads.append(oid) or read(oid, kind)  # type: ignore[method-assign, func-returns-value]
    assert other.head("wf_0") == ledger.head("wf_0")
    seals = set(git(ledger, "rev-list", "--first-parent", "ledger").split())
    assert len(seals & {oid.hex() for oid in reads}) == 1
    other.close()


def test_a_sealed_run_is_reached_without_the_trees_on_the_way(ledger: GitLedger) -> None:
    tip = finished(ledger, "wf_a").head.tip
    ledger.seal(keep=0)
    other = open_git(ledger.path.parent)
    list(other.heads())
    reads: list[str] = []
    read = other.objects.read
    other.objects.read = lambda oid, kind: reads.append(oid.hex()) or read(oid, kind)  # type: ignore[method-assign, func-returns-value]
    assert other.at(tip) == ledger.at(tip)
    way = [git(ledger, "rev-parse", f"{tip}{path}").strip() for path in ("^{tree}", ":runs", f":runs/{DAY}")]
    assert tip in reads
    assert not set(way) & set(reads)
    other.close()


def test_a_ledger_that_was_removed_while_it_is_open_hides_no_run(ledger: GitLedger) -> None:
    tips = [finished(ledger, f"wf_{number}").head.tip for number in range(2)]
    ledger.seal(keep=2)
    other = open_git(ledger.path.parent)
    list(other.heads())
    # Nobody has the day with both runs any more, as after `git gc` has removed it.
    other._sealed._days[DAY] = (bytes(20), frozenset())
    assert [other.at(tip)[0].tip for tip in tips] == tips
    other.close()


def test_a_ledger_that_has_a_file_where_a_run_is_makes_no_run_of_one(ledger: GitLedger) -> None:
    tip = finished(ledger, "wf_a").head.tip
    run = bytes.fromhex(git(ledger, "rev-parse", f"{tip}:runs/{DAY}/wf_a").strip())
    message = git(ledger, "log", "-1", "--format=%B", tip)
    trees = ledger._snapshots.trees
    with closing(ledger.disk.barrier()) as barrier:

        def write(kind: bytes, body: bytes) -> bytes:
            return ledger.objects.write(kind, body, barrier)

        root = trees.put(ledger._snapshots.start, {f"runs/{DAY}/wf_a": Item(0o160000, run)}, write)
        who = Author("mallory")
        commit = write(b"commit", Commit(root.oid, (bytes.fromhex(tip),), message, who, who, 1).serialise())
    git(ledger, "update-ref", "refs/heads/ledger", commit.hex())
    list(ledger.heads())
    with pytest.raises(NotFound):
        ledger.at(commit.hex())
    git(ledger, "update-ref", "-d", "refs/heads/ledger")


@pytest.mark.parametrize("beside", ["runs/2026-11-28/wf_b", f"runs/{DAY}/wf_b", "elsewhere"])
def test_a_commit_that_holds_more_than_a_sealed_run_is_read_as_it_is(ledger: GitLedger, beside: str) -> None:
    tip = finished(ledger, "wf_a").head.tip
    ledger.seal(keep=0)
    list(ledger.heads())
    run = git(ledger, "rev-parse", f"{tip}:runs/{DAY}/wf_a").strip()
    index = {"GIT_INDEX_FILE": str(ledger.path / "index-of-a-test"), "GIT_WORK_TREE": str(ledger.path)}
    git(ledger, "read-tree", tip, env=index)
    git(ledger, "read-tree", f"--prefix={beside}", run, env=index)
    tree = git(ledger, "write-tree", env=index).strip()
    message = git(ledger, "log", "-1", "--format=%B", tip)
    who = ("-c", "user.name=mallory", "-c", "user.email=mallory@example.com")
    commit = git(ledger, *who, "commit-tree", tree, "-p", tip, "-m", message).strip()
    if beside == "elsewhere":
        assert ledger.at(commit)[0].folder == f"runs/{DAY}/wf_a"
    else:
        with pytest.raises(NotFound):
            ledger.at(commit)


@pytest.mark.parametrize("recalled", ["0" * 40, GENESIS, "of another run", "of an earlier state"])
def test_what_an_index_recalls_wrongly_is_not_believed(ledger: GitLedger, recalled: str) -> None:
    early = start(ledger, "wf_a").head.tip
    tip = record(ledger, "wf_a", end_draft()).head.tip
    known = {"of another run": finished(ledger, "wf_b").head.tip, "of an earlier state": early}
    ledger.seal(keep=0)
    other = open_git(ledger.path.parent)
    other.ask(lambda _: known.get(recalled, recalled))
    head = other.head("wf_a")
    assert head is not None
    assert (head.tip, head.sealed) == (tip, True)
    other.close()
