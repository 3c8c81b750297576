"""What happens between two steps of ours: somebody removes, moves or holds exactly what we are about to use."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import (
    DAY,
    append,
    finished,
    git,
    impatient,
    open_git,
    record,
    run_draft,
    start,
    step_draft,
)
from tests.contract.test_bursts_interrupted import before

from hermes_workflows.errors import Conflict, HermesError, IntegrityError, NotFound, StoreFailure, TemporarilyLocked
from hermes_workflows.store import ahead, commits, damage, database, git_binary, health, peek, snapshots, trust
from hermes_workflows.store.database import DatabaseGone, damage_of, open_for_reading, set_aside
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry
from hermes_workflows.store.snapshots import Snapshots


def refs_of(ledger: GitLedger) -> set[str]:
    return set(git(ledger, "for-each-ref", "--format=%(refname)", "refs/runs").split())


# -- refs --------------------------------------------------------------------------------------------------------


def test_of_two_that_start_one_run_in_the_same_moment_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_git(tmp_path)
    tip = start(ledger, "wf_b").head.tip
    # Past our locks, as plain git would.
    before(monkeypatch, ledger._refs, "move", lambda: git(ledger, "update-ref", "refs/runs/wf_a", tip))
    with pytest.raises(Conflict, match="run wf_a exists already"):
        ledger.create(Entry("wf_a", (run_draft(),)), DAY)


def test_who_keeps_moving_a_run_past_our_locks_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    monkeypatch.setattr(ledger._refs, "move", lambda moves, barrier: [False] * len(moves))
    with pytest.raises(TemporarilyLocked, match="another program keeps moving refs"):
        append(ledger, Entry("wf_a", (step_draft("a"),)))


def test_a_ref_that_is_damaged_under_our_lock_leaves_no_lock_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    ref = ledger.path / "refs/runs/wf_a"
    before(monkeypatch, ledger._refs, "_take", lambda: ref.write_text("no commit\n"))
    with pytest.raises(HermesError):
        append(ledger, Entry("wf_a", (step_draft("a"),)))
    assert not ref.with_name("wf_a.lock").exists()


def test_git_may_pack_the_refs_between_a_move_and_its_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path, durability="power")
    start(ledger)
    runs = ledger.path / "refs/runs"

    def pack() -> None:
        git(ledger, "pack-refs", "--all")
        runs.rmdir()

    before(monkeypatch, ledger._refs, "_publish", pack)
    record(ledger, "wf_a", step_draft("a"))
    assert refs_of(open_git(tmp_path)) == {"refs/runs/wf_a"}
    assert [each.key for each in open_git(tmp_path).read("wf_a")[1] if each.key] == ["a"]


def test_a_lock_that_git_lets_go_while_we_look_at_it_is_no_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_git(tmp_path, patience=impatient(stale=0.0))
    start(ledger)
    lock = ledger.path / "refs/runs/wf_a.lock"
    lock.write_text("")
    real = os.stat

    def gone(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path) == str(lock):
            lock.unlink(missing_ok=True)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", gone)
    assert record(ledger, "wf_a", step_draft("a")).receipts[0].seq == 1


def test_of_many_runs_only_the_newest_tips_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_REMEMBERED", 2)
    monkeypatch.setattr(ahead, "_REMEMBERED", 2)
    ledger = open_git(tmp_path, bursts=True)
    for run_id in ("wf_a", "wf_b", "wf_c"):
        start(ledger, run_id)
    assert list(ledger._trust._seen) == list(ledger._ahead._newest) == ["wf_b", "wf_c"]
    assert record(ledger, "wf_a", step_draft("a")).receipts[0].seq == 1
    ledger.close()


def test_a_seal_that_git_overtakes_is_left_to_the_next_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    finished(ledger, "wf_a")
    moves: list[int] = []
    before_move = ledger._refs.move
    monkeypatch.setattr(ledger._refs, "move", lambda made, barrier: moves.append(len(made)) or [False] * len(made))
    assert ledger.seal(keep=0) == 0
    monkeypatch.setattr(ledger._refs, "move", before_move)
    assert (moves, ledger.seal(keep=0)) == ([1], 1)


# -- objects -----------------------------------------------------------------------------------------------------


def test_a_disk_that_cannot_be_read_is_told_as_that_and_not_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(open_git(tmp_path))
    ledger = open_git(tmp_path)
    monkeypatch.setattr(ledger.objects, "_written", failing(errno.EIO))
    with pytest.raises(StoreFailure, match=r"cannot read .*Input/output error"):
        ledger.read("wf_a")


def failing(code: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("content", [b"blob 3\0four", b"blob", b"blob x\0abc"])
def test_an_object_that_says_another_size_than_it_has_is_damaged(tmp_path: Path, content: bytes) -> None:
    import hashlib
    import zlib

    ledger = open_git(tmp_path)
    oid = hashlib.sha1(content, usedforsecurity=False).digest()
    path = ledger.path / "objects" / oid.hex()[:2] / oid.hex()[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(content))
    with pytest.raises(IntegrityError, match="damaged"):
        ledger.objects.read(oid, b"blob")


def test_a_file_system_without_nameless_files_gets_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    real = os.open

    def old(path: Any, flags: int, *arguments: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real(path, flags, *arguments)

    monkeypatch.setattr(os, "open", old)
    start(ledger)
    assert list((ledger.path / "objects").rglob("tmp_obj_*")) == []
    assert git(ledger, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("call", ["open", "link"])
def test_what_the_disk_refuses_is_refused_in_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(errno.EACCES))
        with pytest.raises(StoreFailure, match="Permission denied"):
            append(ledger, Entry("wf_a", (step_draft("a"),)))
    assert record(ledger, "wf_a", step_draft("a")).receipts[0].seq == 1


# -- what doctor looks at ----------------------------------------------------------------------------------------


def test_a_lock_that_goes_while_it_is_looked_at_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    # A link to nowhere is there for whoever lists, and gone for whoever looks.
    (ledger.path / "config.lock").symlink_to("nowhere")
    assert list(damage.stale_locks(ledger.path, 10**12)) == []


def test_a_repository_without_a_head_is_known_as_one(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    assert not damage.has_no_head(ledger.path)
    (ledger.path / "HEAD").unlink()
    assert damage.has_no_head(ledger.path)


def test_an_object_that_git_packs_while_it_is_looked_at_is_not_bad(tmp_path: Path) -> None:
    assert not damage._is_bad("a" * 40, tmp_path / "gone")


def test_a_name_that_is_taken_and_gone_at_every_look_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    with monkeypatch.context() as disk:
        disk.setattr(os, "link", failing(errno.EEXIST))
        with pytest.raises(StoreFailure, match="File exists"):
            record(ledger, "wf_a", step_draft("a"))
    assert record(ledger, "wf_a", step_draft("a")).receipts[0].seq == 1
    assert git(ledger, "fsck", "--full", "--strict") == ""


def test_a_ref_that_cannot_be_read_is_told_as_that(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    ref = ledger.path / "refs/runs/wf_a"
    ref.unlink()
    ref.symlink_to(ref)
    with pytest.raises(StoreFailure, match=r"cannot read .*refs/runs/wf_a: Too many levels"):
        ledger.head("wf_a")


def test_runs_that_memory_has_no_room_for_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_KEPT", 2)
    ledger = open_git(tmp_path)
    for run_id in ("wf_a", "wf_b", "wf_c"):
        start(ledger, run_id)
    assert len(ledger._snapshots._kept) == 2
    assert [ledger.read(run_id)[1][0].seq for run_id in ("wf_a", "wf_b", "wf_c")] == [0, 0, 0]


# -- SQLite ------------------------------------------------------------------------------------------------------


def test_a_reader_does_not_wait_for_a_file_that_is_being_made(tmp_path: Path) -> None:
    path = tmp_path / "workflows.sqlite"
    database.replace_database(path, lambda connection: None).close()
    with open(f"{path}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DatabaseGone, match="is being made again"):
            open_for_reading(path)
    with closing(open_for_reading(path)) as connection:
        assert tuple(connection.execute("SELECT 1").fetchone()) == (1,)


def test_a_writer_waits_only_so_long_for_a_file_that_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "workflows.sqlite"
    database.replace_database(path, lambda connection: None).close()
    monkeypatch.setattr(database, "_PAUSE", 0.001)
    monkeypatch.setattr(database, "REPLACE_SECONDS", 0.002)
    with open(f"{path}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TemporarilyLocked, match="is being made again by another process"):
            database.open_database(path)


def test_what_is_not_there_has_no_damage_and_cannot_be_set_aside(tmp_path: Path) -> None:
    assert damage_of(tmp_path / "none.sqlite") is None
    assert set_aside(tmp_path / "none.sqlite") is False


def test_a_damaged_file_is_set_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "workflows.sqlite"
    database.replace_database(path, lambda connection: None).close()
    path.write_bytes(path.read_bytes()[:100] + b"x" * 9000)
    assert damage_of(path)
    assert (set_aside(path), set_aside(path)) == (True, False)
    assert path.with_name("workflows.sqlite.damaged").exists()


def test_a_damaged_file_that_may_not_be_moved_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "workflows.sqlite"
    path.write_bytes(b"no database at all")
    monkeypatch.setattr(os, "replace", failing(errno.EACCES))
    with pytest.raises(StoreFailure, match="Permission denied"):
        set_aside(path)


# -- snapshots ---------------------------------------------------------------------------------------------------


def test_receipts_since_a_commit_of_another_run_are_not_made_up(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    tips = [start(ledger, run_id).head.tip for run_id in ("wf_a", "wf_b")]
    read: Snapshots = ledger._snapshots
    one, other = (read.at(bytes.fromhex(tip)) for tip in tips)
    with pytest.raises(IntegrityError, match="is not one of run wf_a"):
        read.receipts(one, other)


def test_refs_that_go_between_listing_and_reading_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    for run_id in ("wf_a", "wf_b"):
        start(ledger, run_id)
    monkeypatch.setattr(peek, "_content", lambda path, real=peek._content: None if "wf_a" in path else real(path))
    assert list(peek.list_refs(ledger.path, "refs/runs/")) == ["refs/runs/wf_b"]
    assert "refs/runs/wf_a" not in peek.all_refs(ledger.path, "refs/")


def test_refs_that_git_packs_between_two_looks_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_git(tmp_path)
    start(ledger, "wf_a")

    def content(path: str, real: Callable[[str], bytes | None] = peek._content) -> bytes | None:
        found = real(path)
        git(ledger, "pack-refs", "--all")
        return found

    for look in (peek.list_refs, peek.all_refs, peek.ref_names):
        start(ledger, f"wf_{look.__name__}")  # one that stands in a file
        with monkeypatch.context() as beside:
            beside.setattr(peek, "_content", content)
            assert f"refs/runs/wf_{look.__name__}" in look(ledger.path, "refs/runs/")


# -- without git, without a name ---------------------------------------------------------------------------------


def test_without_git_a_signature_is_unknown_and_refs_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert git_binary.signature(str(tmp_path), "c" * 40) == ("unknown", "")
    assert git_binary.delete_refs(str(tmp_path), {"refs/runs/wf_a": "c" * 40}) is False
    assert health.git_version({"PATH": "/nonexistent"}) is None


def test_the_owner_of_a_file_is_told_by_name_or_by_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert health.access(tmp_path).owner == pwd.getpwuid(os.stat(tmp_path).st_uid).pw_name
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert health.access(tmp_path).owner == f"uid {os.stat(tmp_path).st_uid}"


def unknown(uid: int) -> Any:
    raise KeyError(uid)


# -- commits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"parent %(id)s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nno tree\n",
        b"tree %(id)s\ncommitter a <a> 1 +0000\n\nno author\n",
        b"tree %(id)s\nauthor a <a> 1 +0000\ncommitter a <a> soon +0000\n\nno time\n",
        b"tree xyz\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nno id\n",
    ],
)
def test_a_commit_that_lacks_what_every_commit_has_is_damaged(body: bytes) -> None:
    with pytest.raises(IntegrityError, match="is damaged"):
        commits.parse(body % {b"id": b"a" * 40}, b"\x01" * 20)


def test_what_is_no_id_is_no_commit_of_a_run(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    finished(ledger, "wf_a")
    with pytest.raises(NotFound, match="is no commit of a run"):
        ledger.head_at("not hex at all")
