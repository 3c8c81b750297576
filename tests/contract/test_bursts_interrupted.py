"""Bursts, interrupted at the worst moment: each test has something happen exactly between two steps of another."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import (
    DAY,
    append,
    end_draft,
    finished,
    git,
    impatient,
    record,
    run_draft,
    start,
    step_draft,
)
from tests.contract.test_bursts import RUN, burst, in_git, keys, killed, opened, suspend

from hermes_workflows.errors import (
    HermesError,
    IntegrityError,
    InvalidInput,
    NewerSchema,
    StoreFailure,
    TemporarilyLocked,
)
from hermes_workflows.store import ahead, awaited, objects, peek
from hermes_workflows.store import burst as bursts
from hermes_workflows.store.ahead_file import REVOKED, WANTED, AheadFile, path_of
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Adopted, Appended, Entry

STEPS = ["s0", "s1", "s2", "s3", "s4"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put into git because time has passed: the tests say when."""
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Have `act` happen once, right before the next call of `owner.name`."""
    real = getattr(owner, name)

    def first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        act()
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, first)


def failing(descriptor: int, length: int, offset: int) -> bytes:
    """A disk that cannot be read."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def file_of(ledger: GitLedger, run_id: str = "wf_a") -> str:
    return path_of(str(ledger.path), run_id)


# -- writers that were suspended ---------------------------------------------------------------------------------


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_taker_that_dies_after_it_has_revoked_a_burst_loses_nothing(tmp_path: Path, goes_on: bool) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    taken = AheadFile.take(file_of(ledger), by_force=True)
    assert taken is not None
    taken.close()
    if goes_on:
        record(ledger, "wf_a", step_draft("late"))
    killed(ledger)
    assert keys(opened(tmp_path)) == [*STEPS, "late"][: 6 if goes_on else 5]


def test_a_first_step_whose_file_is_taken_at_once_is_recorded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    start(ledger)

    def take() -> None:
        taken = AheadFile.take(file_of(ledger), by_force=True)
        assert taken is not None
        taken.close()

    before(monkeypatch, AheadFile, "is_ours", take)
    record(ledger, "wf_a", step_draft("one"))
    ledger.close()
    assert keys(opened(tmp_path)) == ["one"]


def test_a_burst_that_lands_and_is_followed_by_another_while_somebody_asks_for_it_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    other = opened(tmp_path)

    more = iter(("next", "last"))

    def go_on() -> None:
        ledger.land()
        record(ledger, "wf_a", step_draft(next(more)))

    before(monkeypatch, fcntl, "flock", go_on)
    assert other.head("wf_a").tip == newest  # type: ignore[union-attr]
    assert peek.is_ahead(ledger.path)
    before(monkeypatch, fcntl, "flock", go_on)
    assert AheadFile.take(file_of(ledger)) is None
    ledger.close()
    assert keys(other) == [*STEPS, "next", "last"]


def test_a_burst_that_lands_right_before_a_step_is_planned_is_followed_by_none_from_an_older_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    burst(ledger)
    record(opened(tmp_path, patience=impatient(ours=0.01)), "wf_a", step_draft("other"))
    before(monkeypatch, ledger._ahead, "recording", ledger.land)
    record(ledger, "wf_a", step_draft("late"))
    ledger.close()
    assert keys(opened(tmp_path)) == [*STEPS, "other", "late"]
    assert list(ledger.rejected()) == []


def test_a_run_that_git_moves_between_the_plan_and_the_record_begins_no_burst_from_an_older_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    start(ledger)

    def push() -> None:
        """Past our locks, and by a commit that may stay: it takes nothing away."""
        record(opened(tmp_path / "clone", bursts=False), "wf_a", step_draft("pushed"))
        git(ledger, "fetch", "-q", str(tmp_path / "clone" / "workflows.git"), f"{RUN}:{RUN}")

    (tmp_path / "clone").mkdir()
    shutil.copytree(ledger.path, tmp_path / "clone" / "workflows.git")
    before(monkeypatch, ledger._ahead, "begin", push)
    record(ledger, "wf_a", step_draft("one"))
    ledger.close()
    assert keys(opened(tmp_path)) == ["pushed", "one"]
    assert list(ledger.rejected()) == []


def test_a_step_that_was_refused_after_a_suspension_is_not_found_later(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    taken = AheadFile.take(file_of(ledger), by_force=True)
    assert taken is not None
    _, records = taken.records()
    record(ledger, "wf_a", step_draft("late"))
    assert len(taken.records()[1]) == len(records)
    taken.close()


def test_the_mark_of_a_burst_that_is_gone_is_no_mark_of_the_next(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    ledger.land()
    Path(file_of(ledger) + REVOKED).touch()
    tip = record(ledger, "wf_a", step_draft("next")).head.tip
    assert ledger._ahead.tip("wf_a") == tip


# -- what is found of a dead writer ------------------------------------------------------------------------------


def test_what_cannot_be_put_into_git_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, other = opened(tmp_path), opened(tmp_path)
    newest = burst(ledger)
    first = in_git(ledger)
    killed(ledger)
    foreign = git(ledger, "commit-tree", "-p", first, "-m", "foreign", f"{first}^{{tree}}", env=IDENTITY).strip()
    real = other._refs.move

    def move(*arguments: Any, **options: Any) -> Any:
        # At each attempt of ours git itself has just moved the ref.
        git(ledger, "update-ref", RUN, foreign if in_git(ledger) == first else first)
        return real(*arguments, **options)

    with monkeypatch.context() as busy:
        busy.setattr(other._refs, "move", move)
        other.head("wf_a")
    assert peek.is_ahead(ledger.path)
    assert in_git(opened(tmp_path)) == newest


def test_nobody_adds_to_a_run_before_what_a_dead_writer_left_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    other = opened(tmp_path)
    killed(ledger)
    with monkeypatch.context() as disk:
        disk.setattr(os, "pread", failing)
        assert keys(other) == []
        with pytest.raises(StoreFailure, match="Input/output error"):
            record(other, "wf_a", step_draft("other"))
    record(other, "wf_a", step_draft("other"))
    other.close()
    assert keys(opened(tmp_path)) == [*STEPS, "other"]


IDENTITY = {
    f"GIT_{who}_{what}": "somebody@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def test_a_ref_that_holds_nothing_hides_no_other_run_and_loses_no_burst(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    first = in_git(ledger)
    finished(ledger, "wf_b")
    killed(ledger)
    (ledger.path / RUN).write_bytes(b"")
    other = opened(tmp_path)
    assert "wf_b" in [head.run_id for head in other.heads()]
    (ledger.path / RUN).write_text(f"{first}\n")
    assert in_git(opened(tmp_path)) == newest


@pytest.mark.parametrize(
    ("missing", "said"),
    [(0, "wf_a cannot be moved to"), (1, "object .* is missing")],
    ids=["one further back", "the one that it goes on from"],
)
def test_a_run_is_never_moved_to_a_commit_that_leads_to_nothing(tmp_path: Path, missing: int, said: str) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    landed = []
    for key in ("landed", "more"):
        landed.append(record(ledger, "wf_a", step_draft(key)).head.tip)
        ledger.land()
    record(ledger, "wf_a", step_draft("ahead"))
    killed(ledger)
    git(ledger, "update-ref", RUN, first)
    (ledger.path / "objects" / landed[missing][:2] / landed[missing][2:]).unlink()
    other = opened(tmp_path)
    assert other.head("wf_a").tip == first  # type: ignore[union-attr]
    with pytest.raises(HermesError, match=said):
        record(other, "wf_a", step_draft("other"))
    assert (in_git(other), list(other.rejected())) == (first, [])
    assert peek.is_ahead(ledger.path)


def test_a_copy_under_another_name_is_not_the_runs(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    left = Path(file_of(ledger)).read_bytes()
    killed(ledger)
    Path(file_of(ledger)).unlink()
    Path(file_of(ledger, "wf_b")).write_bytes(left)
    first = in_git(ledger)
    assert in_git(opened(tmp_path)) == first


def enolck(descriptor: int, operation: int, real: Callable[[int, int], None] = fcntl.flock) -> None:
    """What a network's file system says that has lost its locks."""
    if operation & fcntl.LOCK_NB:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    real(descriptor, operation)


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
def test_a_burst_that_cannot_be_put_into_git_is_a_living_writers_only_while_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    monkeypatch.setattr(awaited, "_READERS_WAIT", 0.01)
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    burst(ledger)
    other = opened(tmp_path, patience=impatient(theirs=0.01, stale=3600.0))
    (ledger.path / f"{RUN}.lock").touch()
    assert other.is_behind("wf_a")
    killed(ledger)
    with monkeypatch.context() as disk:
        if not locks:
            disk.setattr(fcntl, "flock", enolck)
        assert not other.is_behind("wf_a")
    assert peek.is_ahead(ledger.path)


def test_another_user_may_put_in_what_a_dead_writer_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    killed(ledger)
    real = os.open

    def foreign(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if path == file_of(ledger) and flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", foreign)
    assert in_git(opened(tmp_path)) == newest


# -- landing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("repack", "-a", "-d", "-q"), ("gc", "--quiet"), ("pack-refs", "--all")])
@pytest.mark.parametrize("packed_from", [1, 1000])
def test_git_tidies_up_between_the_objects_and_their_ref(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    ledger = opened(tmp_path)
    burst(ledger)
    before(monkeypatch, ledger._refs, "_swap", lambda: git(ledger, *command))
    ledger.land()
    ledger.close()
    assert keys(opened(tmp_path)) == STEPS
    assert git(ledger, "fsck", "--full", "--strict") == ""
    assert list(ledger.path.glob("objects/pack/*.keep")) == []


def test_a_folder_that_refuses_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    real = os.unlink

    def refusing(path: Any, *arguments: Any, **options: Any) -> None:
        if path == file_of(ledger):
            raise PermissionError(13, "Permission denied")
        real(path, *arguments, **options)

    with monkeypatch.context() as denied:
        denied.setattr(os, "unlink", refusing)
        with contextlib.suppress(Exception):
            ledger.land()
    assert opened(tmp_path).head("wf_a").tip == newest  # type: ignore[union-attr]
    assert not peek.is_ahead(ledger.path)


def test_a_burst_that_ends_when_it_was_just_found_due_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first receipt meets a full disk, and the next one begins a burst of its own."""
    monkeypatch.setattr(ahead.Ahead, "_watch", lambda self: None)
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    found, is_due = threading.Event(), bursts.Burst.is_due

    def look(burst: bursts.Burst, now: float) -> bool:
        due = is_due(burst, now)
        found.set()
        return due

    def full(descriptor: int) -> None:
        Path(file_of(ledger) + WANTED).touch()
        looking.append(pool.submit(ledger._ahead.look))
        assert found.wait(10)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(bursts.Burst, "is_due", look)
    looking: list[Future[bool]] = []
    with ThreadPoolExecutor(1) as pool:
        # Whoever looks waits for this thread as soon as he has found what is due.
        with ledger._ahead.guard:
            with monkeypatch.context() as disk:
                disk.setattr(ledger.disk, "sync_content", full)
                with pytest.raises(StoreFailure, match="No space left"):
                    record(ledger, "wf_a", step_draft("refused"))
            record(ledger, "wf_a", step_draft("one"))
            stamp = peek.stamp(ledger.path)
        assert looking[0].result(timeout=10), "there is more to come"
    assert keys(ledger) == ["one"]
    assert (in_git(ledger), peek.stamp(ledger.path)) == (first, stamp), "nothing is put into git for the first one"
    ledger.close()
    assert keys(opened(tmp_path)) == ["one"]


def test_where_no_thread_can_begin_nothing_is_recorded_that_would_never_land(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip

    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", none)
        with pytest.raises(StoreFailure, match="can't start new thread"):
            record(ledger, "wf_a", step_draft("refused"))
    assert not peek.is_ahead(ledger.path)
    record(ledger, "wf_a", step_draft("one"))
    assert in_git(ledger) == first
    assert ledger._ahead._thread is not None
    ledger.close()
    assert keys(opened(tmp_path)) == ["one"]


def test_a_run_that_cannot_land_keeps_no_other_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path, patience=impatient(theirs=0.01, stale=3600.0))
    burst(ledger)
    start(ledger, "wf_b")
    newest = record(ledger, "wf_b", step_draft("one")).head.tip
    (ledger.path / f"{RUN}.lock").touch()
    with pytest.raises(TemporarilyLocked):
        ledger.land()
    assert peek.read_ref(ledger.path, "refs/runs/wf_b") == newest


def test_what_cannot_land_when_its_writer_ends_is_put_in_by_whoever_comes_next(tmp_path: Path) -> None:
    ledger = opened(tmp_path, patience=impatient(theirs=0.01, stale=3600.0))
    newest = burst(ledger)
    lock = ledger.path / f"{RUN}.lock"
    lock.touch()
    ledger.close()
    assert peek.is_ahead(ledger.path)
    lock.unlink()
    assert in_git(opened(tmp_path)) == newest


def test_two_first_bursts_of_a_workspace_begin_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    start(ledger)
    before(monkeypatch, os, "mkdir", (ledger.path / peek.AHEAD).mkdir)
    record(ledger, "wf_a", step_draft("one"))
    assert keys(ledger) == ["one"]


def test_files_that_are_too_large_for_a_burst_are_in_git_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "LARGEST", 50_000)
    ledger = opened(tmp_path)
    burst(ledger)
    newest = record(ledger, "wf_a", step_draft("large", "x" * 60_000)).head.tip
    assert in_git(ledger) == newest
    assert keys(opened(tmp_path)) == [*STEPS, "large"]


def test_what_a_fork_adopts_from_a_burst_is_in_git_before_the_fork(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    paths = tuple(receipt.path for receipt in ledger.read("wf_a")[1] if receipt.key)
    ledger.create(Entry("wf_b", (run_draft(),)), DAY, Adopted(newest, paths))
    assert git(ledger, "fsck", "--full", "--strict", "--connectivity-only") == ""


def test_a_landing_that_is_suspended_before_it_writes_its_value_never_writes_into_what_is_the_ref_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no lock of the run: others have taken the burst by force, and gone on."""
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    newest = burst(ledger)
    other = opened(tmp_path, patience=impatient(ours=0.01), bursts=False)
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if data == newest.encode() + b"\n":
            monkeypatch.setattr(os, "write", real)
            # Three moves with that of the burst: a file that holds each second value is the ref again.
            record(other, "wf_a", step_draft("other"))
            record(other, "wf_a", step_draft("more"))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    ledger.land()
    assert keys(opened(tmp_path)) == [*STEPS, "other", "more"]
    assert list(ledger.rejected()) == []


# -- readers -----------------------------------------------------------------------------------------------------


def test_a_stamp_that_is_taken_while_a_burst_lands_is_not_the_one_from_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    start(ledger)
    stamp = peek.stamp(ledger.path)
    record(ledger, "wf_a", step_draft("one"))
    before(monkeypatch, peek, "bursts", ledger.land)
    assert peek.stamp(ledger.path) != stamp


def test_a_stamp_is_taken_although_a_burst_lands_between_the_list_of_them_and_the_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    start(ledger)
    stamp = peek.stamp(ledger.path)
    record(ledger, "wf_a", step_draft("one"))
    before(monkeypatch, peek, "extent", ledger.land)
    taken = peek.stamp(ledger.path)
    assert taken != stamp
    assert taken == peek.stamp(ledger.path)


def test_a_burst_that_the_disk_cannot_read_is_looked_at_again_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    descriptors = len(os.listdir("/dev/fd"))
    with monkeypatch.context() as disk:
        disk.setattr(os, "pread", failing)
        stamp = peek.stamp(ledger.path)
    assert peek.stamp(ledger.path) != stamp
    assert len(os.listdir("/dev/fd")) <= descriptors


def test_a_reader_waits_once_for_all_the_runs_of_a_suspended_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    for run_id in ("wf_a", "wf_b", "wf_c"):
        start(ledger, run_id)
        record(ledger, run_id, step_draft("one"))
    slept: list[float] = []
    other = opened(tmp_path, patience=impatient(sleep=slept.append, monotonic=lambda: sum(slept), pause=0.5))
    assert len(list(other.heads())) == 3
    assert sum(slept) < awaited._READERS_WAIT + 0.5


def test_a_reader_that_has_waited_in_vain_does_not_wait_again_until_something_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command reads a run several times, and `status` is asked for just when nothing moves."""
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    burst(ledger)
    slept: list[float] = []
    other = opened(tmp_path, patience=impatient(sleep=slept.append, monotonic=lambda: sum(slept), pause=0.5))

    def waits() -> bool:
        before = sum(slept)
        other.head("wf_a")
        other.read("wf_a")
        list(other.heads())
        assert sum(slept) < before + awaited._READERS_WAIT + 0.5
        return sum(slept) > before

    assert [waits(), waits()] == [True, False]
    record(ledger, "wf_a", step_draft("more"))
    assert [waits(), waits()] == [True, False]
    slept.append(awaited._WAITS_AGAIN_AFTER)
    assert [waits(), waits()] == [True, False]
    listed = os.listdir(f"{ledger.path}/{peek.AHEAD}")
    ledger.land()
    monkeypatch.setattr(
        os, "listdir", lambda folder, real=os.listdir: listed if peek.AHEAD in str(folder) else real(folder)
    )
    assert not waits(), "it has landed since they were listed"


def test_opening_a_ledger_asks_nobody_to_land(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    opened(tmp_path)
    assert not Path(file_of(ledger) + WANTED).exists()


def test_a_wish_that_a_killed_reader_left_is_no_burst(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    ledger.land()
    Path(file_of(ledger) + WANTED).touch()
    assert not peek.is_ahead(ledger.path)


# -- one process, several of everything --------------------------------------------------------------------------


def never(_: float) -> None:
    raise AssertionError("waited for a burst of its own")


def test_a_reader_does_not_wait_for_a_burst_that_another_thread_has_just_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path, patience=impatient(sleep=never))
    first = start(ledger).head.tip
    before(monkeypatch, ledger._ahead, "settle", lambda: record(ledger, "wf_a", step_draft("one")))
    assert ledger.head("wf_a").tip == first  # type: ignore[union-attr]
    assert keys(ledger) == ["one"]


def test_nobody_takes_a_burst_over_that_another_thread_has_begun_while_he_waited_for_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    other, ledger = opened(tmp_path), opened(tmp_path)
    burst(other)

    def go_on() -> None:
        killed(other)
        for key in ("one", "two"):
            record(ledger, "wf_a", step_draft(key))

    before(monkeypatch, ledger._refs, "locked", go_on)
    ledger.take_over("wf_a")
    first = in_git(ledger)
    record(ledger, "wf_a", step_draft("three"))
    assert in_git(ledger) == first, "it is not revoked: the burst goes on"
    assert keys(ledger) == [*STEPS, "one", "two", "three"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_neither_keeps_the_lock_nor_lands_what_is_its_parents(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    ready, told = os.pipe()
    over, ends = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            ledger.close()
            os.close(ends)
            os.write(told, b"closed")
            os.read(over, 1)
        os._exit(0)
    try:
        assert os.read(ready, 6) == b"closed"
        assert peek.is_ahead(ledger.path)
        assert in_git(ledger) != newest
        killed(ledger)
        assert in_git(opened(tmp_path)) == newest
    finally:
        # It lives until here, and with it whatever it may hold.
        os.close(ends)
        os.waitpid(child, 0)
        for descriptor in (ready, told, over):
            os.close(descriptor)


def test_a_step_and_an_end_of_two_ledgers_in_one_process_come_one_after_the_other(tmp_path: Path) -> None:
    ledger, other = opened(tmp_path), opened(tmp_path)
    burst(ledger)
    record(other, "wf_a", end_draft())
    refused = append(ledger, Entry("wf_a", (step_draft("late"),)))
    assert not isinstance(refused, Appended)
    assert keys(ledger) == STEPS


# -- what a burst's file comes to --------------------------------------------------------------------------------


@pytest.mark.parametrize("landed", [0, 2, 5])
def test_what_a_dead_writer_left_comes_to_the_commits_that_it_had_told(tmp_path: Path, landed: int) -> None:
    """Git has the first `landed` steps of the file; the trees of the others are made anew, from what they added."""
    ledger = opened(tmp_path)
    start(ledger)
    for n in range(5):
        newest = record(ledger, "wf_a", step_draft(f"s{n}", "x" * 5000 * n)).head.tip
        if n + 1 == landed:
            ledger._ahead._put_beginning(ledger._ahead._bursts["wf_a"])
    killed(ledger)
    assert in_git(opened(tmp_path)) == newest
    assert not peek.is_ahead(ledger.path)
    assert git(ledger, "fsck", "--full", "--strict").replace("dangling", "") == ""


def test_a_burst_of_another_version_stays_until_that_one_has_put_it_into_git(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    record(ledger, "wf_a", step_draft("one"))
    killed(ledger)
    path = Path(file_of(ledger))
    path.write_bytes(path.read_bytes().replace(b"hermes-ahead 2", b"hermes-ahead 3", 1))
    other = opened(tmp_path)
    assert in_git(other) == first
    assert [head.run_id for head in other.heads()] == ["wf_a"]
    with pytest.raises(NewerSchema, match="another version"):
        record(other, "wf_a", step_draft("two"))
    assert path.exists()


def test_a_burst_that_comes_to_other_commits_than_it_says_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    record(ledger, "wf_a", step_draft("one"))
    record(ledger, "wf_a", step_draft("two"))
    killed(ledger)
    with monkeypatch.context() as code:
        # As a version would that makes trees in another way.
        code.setattr(awaited, "add", lambda trees, root, addition, write: (bytes(20), root))
        other = opened(tmp_path)
        assert in_git(other) == first
        with pytest.raises(IntegrityError, match="its receipts come to 000000000000"):
            record(other, "wf_a", step_draft("three"))
    assert keys(opened(tmp_path)) == ["one", "two"]


def test_of_receipts_that_are_recorded_together_none_is_left_when_one_cannot_be(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    start(ledger)
    record(ledger, "wf_a", step_draft("one"), files={"source/0123456789ab/b.py": b"x"})
    entries = [
        Entry("wf_a", (step_draft("two"),)),
        Entry("wf_a", (step_draft("three"),), files={"source/0123456789ab/b.py": b"y"}),
    ]
    with pytest.raises(InvalidInput, match="files of a run never change"):
        ledger.append(entries)
    record(ledger, "wf_a", step_draft("four"))
    killed(ledger)
    assert keys(opened(tmp_path)) == ["one", "four"]


def test_of_receipts_that_are_recorded_together_none_is_left_when_the_disk_has_no_room_for_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    entries = [Entry("wf_a", (step_draft(key),)) for key in ("one", "two")]
    real, calls = AheadFile.append, iter(range(9))

    def full(file: AheadFile, addition: Any) -> None:
        if next(calls):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, addition)

    with monkeypatch.context() as disk:
        disk.setattr(AheadFile, "append", full)
        with pytest.raises(StoreFailure, match="No space left"):
            ledger.append(entries)
    killed(ledger)
    assert keys(opened(tmp_path)) == STEPS


def test_receipts_that_are_recorded_together_are_found_together_of_a_dead_writer(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    ledger.append([Entry("wf_a", (step_draft(key),)) for key in ("one", "two")])
    assert in_git(ledger) == first
    killed(ledger)
    assert keys(opened(tmp_path)) == ["one", "two"]


def test_a_first_receipt_that_is_too_large_for_a_burst_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "LARGEST", 50_000)
    ledger = opened(tmp_path)
    start(ledger)
    newest = record(ledger, "wf_a", step_draft("large", "x" * 60_000)).head.tip
    assert in_git(ledger) == newest
    assert list((ledger.path / peek.AHEAD).iterdir()) == []
