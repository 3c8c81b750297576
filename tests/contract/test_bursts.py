"""Receipts that are durable before git has them: nobody of ours misses one, whatever happens to their writer."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.contract.ledgers import (
    append,
    end_draft,
    finished,
    git,
    impatient,
    open_git,
    record,
    request_draft,
    start,
    step_draft,
)
from tests.contract.test_durability import cost, needs_ext4

from hermes_workflows.errors import StoreFailure
from hermes_workflows.store import ahead, awaited, objects, peek
from hermes_workflows.store import burst as bursts
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Appended, Entry

RUN = "refs/runs/wf_a"


def opened(folder: Path, **options: Any) -> GitLedger:
    return open_git(folder, **{"bursts": True, "patience": impatient(), **options})


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put into git because time has passed: the tests say when."""
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)


def burst(ledger: GitLedger, steps: int = 5) -> str:
    """A run whose start is in git, and its steps ahead of it; the newest commit."""
    start(ledger)
    for n in range(steps):
        newest = record(ledger, "wf_a", step_draft(f"s{n}")).head.tip
    return newest


def killed(ledger: GitLedger) -> None:
    """What SIGKILL leaves: files, and no locks."""
    for each in ledger._ahead._bursts.values():
        each.file.close()
    ledger._ahead._bursts.clear()


def keys(ledger: GitLedger) -> list[str]:
    return [receipt.key for receipt in ledger.read("wf_a")[1] if receipt.key]


def in_git(ledger: GitLedger) -> str:
    return git(ledger, "rev-parse", RUN).strip()


def test_a_step_of_a_burst_asks_for_no_times_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for them makes the next sync write the inode as well (`links`)."""
    ledger = opened(tmp_path)
    burst(ledger)
    (path,) = (ledger.path / peek.AHEAD).iterdir()
    inode, asked = path.stat().st_ino, []

    def watched(real: Callable[..., os.stat_result], *arguments: Any, **options: Any) -> os.stat_result:
        found = real(*arguments, **options)
        asked.append(found.st_ino)
        return found

    for name in ("stat", "fstat", "lstat"):
        monkeypatch.setattr(os, name, partial(watched, getattr(os, name)))
    record(ledger, "wf_a", step_draft("next"))
    assert inode not in asked


def test_a_burst_is_read_at_once_where_it_is_made_and_git_has_it_when_it_lands(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    head = ledger.head("wf_a")
    assert head is not None
    assert (head.tip, keys(ledger)) == (newest, ["s0", "s1", "s2", "s3", "s4"])
    assert git(ledger, "rev-list", "--count", RUN).strip() == "2", "genesis and the start"
    ledger.land()
    assert in_git(ledger) == newest
    assert git(ledger, "rev-list", "--count", RUN).strip() == "7"
    assert not peek.is_ahead(ledger.path)
    assert git(ledger, "fsck", "--full", "--strict") == ""


@needs_ext4
def test_a_step_of_a_burst_costs_one_fsync_and_no_file(tmp_path: Path) -> None:
    ledger = opened(tmp_path, durability="power")
    burst(ledger, 3)
    files = sorted(ledger.path.rglob("*"))
    for n in range(3, 6):
        assert cost(ledger, lambda n=n: record(ledger, "wf_a", step_draft(f"s{n}"))) == {"objects": 0, "fsyncs": 1}  # type: ignore[misc]
    assert sorted(ledger.path.rglob("*")) == files


def test_a_long_burst_becomes_one_pack(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger, 40)
    loose = int(git(ledger, "count-objects").split()[0])
    ledger.land()
    told = dict(line.split(": ") for line in git(ledger, "count-objects", "-v").splitlines())
    assert (told["packs"], int(told["count"])) == ("1", loose)
    assert git(ledger, "fsck", "--full", "--strict") == ""


@pytest.mark.parametrize("draft", [request_draft("review"), end_draft()], ids=["a question", "an end"])
def test_what_people_wait_for_is_in_git_before_it_counts(tmp_path: Path, draft: Any) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    assert record(ledger, "wf_a", draft).head.tip == in_git(ledger)


def test_a_decision_is_in_git_before_it_counts(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    seq = ledger.read("wf_a")[1][-1].seq
    outcome = append(ledger, Entry("wf_a", (step_draft("decided"),), decided_at=seq))
    assert isinstance(outcome, Appended)
    assert outcome.head.tip == in_git(ledger)


def test_slow_steps_are_in_git_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 0.0)
    ledger = opened(tmp_path)
    assert burst(ledger) == in_git(ledger)


def test_steps_of_many_runs_at_once_are_in_git_each(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger, 2)
    start(ledger, "wf_b")
    for outcome in ledger.append([Entry(run, (step_draft("both"),)) for run in ("wf_a", "wf_b")]):
        assert isinstance(outcome, Appended)
    assert not peek.is_ahead(ledger.path)
    assert keys(ledger) == ["s0", "s1", "both"]


def test_a_burst_lands_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 0.01)
    ledger = opened(tmp_path)
    newest = burst(ledger)
    while thread := ledger._ahead._thread:
        thread.join(10)
    assert in_git(ledger) == newest


def due(ledger: GitLedger) -> None:
    """What the ledger's own thread does now and then, once a burst has lasted for long enough."""
    for each in ledger._ahead._bursts.values():
        each.due = 0.0
    ledger._ahead.look()


def test_a_beginning_that_others_have_put_into_git_is_no_ref_that_somebody_moved(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    middle = burst(ledger, 3)
    newest = record(ledger, "wf_a", step_draft("more")).head.tip
    (mine,) = ledger._ahead._bursts.values()
    # As whoever takes the file of a suspended writer does, of what it had when it was read.
    ledger._ahead._awaited.put("wf_a", mine.old, middle, mine.batch)
    assert in_git(ledger) == middle
    ledger.land()
    assert in_git(ledger) == newest
    assert list(ledger.rejected()) == []


def test_a_burst_that_goes_on_is_put_into_git_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    put = ledger._ahead._awaited.put

    def slowly(*arguments: Any) -> None:
        """Meanwhile another step is recorded, without waiting."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(record, ledger, "wf_a", step_draft(f"beside{len(keys(ledger))}")).result(timeout=5)
        put(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ledger._ahead._awaited, "put", slowly)
        due(ledger)
        due(ledger)
    assert git(ledger, "rev-list", "--count", RUN).strip() == "8", "genesis, the start, and all but the newest"
    assert peek.is_ahead(ledger.path)
    assert keys(ledger) == ["s0", "s1", "s2", "s3", "s4", "beside5", "beside6"]
    due(ledger)
    assert not peek.is_ahead(ledger.path), "nothing came any more"
    assert git(ledger, "fsck", "--full", "--strict") == ""


def test_who_dies_after_a_part_was_put_into_git_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    for each in ledger._ahead._bursts.values():
        ledger._ahead._put_beginning(each)
    newest = record(ledger, "wf_a", step_draft("after")).head.tip
    killed(ledger)
    other = opened(tmp_path)
    assert in_git(other) == newest
    assert keys(other)[-1] == "after"
    assert list(other.rejected()) == []
    assert git(other, "fsck", "--full", "--strict") == ""


def test_a_burst_that_met_a_full_disk_does_not_end_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands where git has it when its record is refused, and is in the list of what is put into git."""
    monkeypatch.setattr(ahead.Ahead, "_watch", lambda self: None)
    ledger = opened(tmp_path)
    for run_id in ("wf_b", "wf_a"):
        start(ledger, run_id)
        record(ledger, run_id, step_draft("s"))
    ahead_of_git = ledger._ahead
    ahead_of_git._put_beginning(ahead_of_git._bursts["wf_a"])
    put, recorded = ahead_of_git._awaited.put, []

    def slowly(run_id: str, *arguments: Any) -> None:
        put(run_id, *arguments)
        if run_id == "wf_b":
            with ThreadPoolExecutor(1) as pool:
                pool.submit(meanwhile).result(timeout=5)

    def meanwhile() -> None:
        with monkeypatch.context() as full:
            full.setattr(ledger.disk, "sync_content", lambda descriptor: refuse())
            with pytest.raises(StoreFailure):
                record(ledger, "wf_a", step_draft("refused"))
        recorded.extend(record(ledger, "wf_a", step_draft(f"t{n}")).head.tip for n in range(3))

    monkeypatch.setattr(ahead_of_git._awaited, "put", slowly)
    due(ledger)
    assert keys(ledger) == ["s", "t0", "t1", "t2"]
    ledger.land()
    assert in_git(ledger) == recorded[-1]


def test_a_burst_that_git_cannot_be_given_is_tried_seldom_and_leaves_no_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead.Ahead, "_watch", lambda self: None)
    monkeypatch.setattr(bursts, "_LANDS_FROM", 1)
    monkeypatch.setattr(objects, "PACKED_FROM", 1)
    ledger = opened(tmp_path)
    burst(ledger)
    (ledger.path / RUN).write_text("")
    packs = set((ledger.path / "objects/pack").iterdir())
    tried: list[str] = []
    put = ledger._ahead._awaited.put
    monkeypatch.setattr(ledger._ahead._awaited, "put", lambda *given: (tried.append(given[0]), put(*given)))
    for _ in range(50):
        ledger._ahead.look()
    assert tried == ["wf_a"]
    assert set((ledger.path / "objects/pack").iterdir()) == packs


def refuse() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_closing_lands(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    ledger.close()
    assert in_git(ledger) == newest


# -- others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "look",
    [
        lambda ledger: ledger.head("wf_a").tip,
        lambda ledger: ledger.read("wf_a")[0].tip,
        lambda ledger: next(ledger.heads()).tip,
        lambda ledger: record(ledger, "wf_a", step_draft("other")).base,
    ],
    ids=["head", "read", "heads", "append"],
)
def test_others_wait_until_git_has_what_they_ask_for(tmp_path: Path, look: Callable[[GitLedger], str]) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    assert look(opened(tmp_path)) == newest
    assert not peek.is_ahead(ledger.path)


def test_whoever_is_in_a_burst_lists_where_it_stands(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    assert [head.tip for head in ledger.heads()] == [newest]
    assert peek.is_ahead(ledger.path)
    assert in_git(ledger) != newest


def test_two_who_add_in_turns_lose_nothing(tmp_path: Path) -> None:
    ledgers = [opened(tmp_path), opened(tmp_path)]
    start(ledgers[0])
    for n in range(24):
        record(ledgers[n // 3 % 2], "wf_a", step_draft(f"s{n}"))
    assert keys(ledgers[0]) == keys(ledgers[1]) == [f"s{n}" for n in range(24)]
    for ledger in ledgers:
        ledger.close()
    assert git(ledgers[0], "fsck", "--full", "--strict") == ""


def test_the_stamp_of_the_refs_moves_with_every_step_of_a_burst(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    seen = set()
    start(ledger)
    for n in range(5):
        record(ledger, "wf_a", step_draft(f"s{n}"))
        seen.add(peek.stamp(ledger.path))
    ledger.land()
    assert len(seen | {peek.stamp(ledger.path)}) == 6


# -- writers that die --------------------------------------------------------------------------------------------


def test_what_a_killed_writer_left_is_put_into_git_by_whoever_opens_the_ledger(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    killed(ledger)
    assert in_git(opened(tmp_path)) == newest
    assert not peek.is_ahead(ledger.path)


def test_what_a_killed_writer_left_is_put_into_git_by_whoever_asks_for_the_run(tmp_path: Path) -> None:
    other, ledger = opened(tmp_path), opened(tmp_path)
    newest = burst(ledger)
    killed(ledger)
    head = other.head("wf_a")
    assert head is not None
    assert head.tip == newest == in_git(ledger)


def test_a_file_that_was_cut_short_holds_what_was_whole_before(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    tips = [start(ledger).head.tip, *(record(ledger, "wf_a", step_draft(f"s{n}")).head.tip for n in range(3))]
    (path,) = (ledger.path / peek.AHEAD).iterdir()
    whole = path.read_bytes()
    killed(ledger)
    shutil.copytree(ledger.path, tmp_path / "before")
    seen = []
    for length in range(len(whole), 0, -97):
        shutil.rmtree(ledger.path)
        shutil.copytree(tmp_path / "before", ledger.path)
        path.write_bytes(whole[:length])
        found = in_git(opened(tmp_path))
        assert found in tips
        seen.append(tips.index(found))
    assert seen == sorted(seen, reverse=True)
    assert {*seen} == {0, 1, 2, 3}


@pytest.mark.parametrize("moment", range(12))
def test_a_writer_that_dies_while_a_burst_lands_leaves_it_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    class Killed(BaseException):
        pass

    ledger = opened(tmp_path)
    newest = burst(ledger, 40 if moment % 2 else 5)
    calls = 0
    for name in ("rename", "link", "unlink"):
        real = getattr(os, name)

        def dying(*arguments: Any, real: Any = real, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > moment // 2:
                raise Killed
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, dying)
    with pytest.raises(Killed):
        ledger.land()
    monkeypatch.undo()
    killed(ledger)
    assert in_git(opened(tmp_path)) == newest
    assert len(keys(opened(tmp_path))) == (40 if moment % 2 else 5)
    assert git(ledger, "fsck", "--full", "--strict").replace("dangling", "") == ""


def test_a_file_that_came_back_after_its_run_went_on_changes_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    burst(ledger)
    (path,) = (ledger.path / peek.AHEAD).iterdir()
    left = path.read_bytes()
    newest = record(ledger, "wf_a", end_draft()).head.tip
    path.write_bytes(left)
    assert in_git(opened(tmp_path)) == newest
    assert not path.exists()
    opened(tmp_path).seal(keep=0)
    path.write_bytes(left)
    assert opened(tmp_path).head("wf_a").tip == newest  # type: ignore[union-attr]
    assert peek.read_ref(ledger.path, RUN) is None
    assert not path.exists()


def test_a_foreign_file_is_no_burst(tmp_path: Path) -> None:
    finished(opened(tmp_path), "wf_a")
    folder = tmp_path / "workflows.git" / peek.AHEAD
    folder.mkdir()
    for name, content in (
        ("a" * 40, b""),
        ("b" * 40, b"\0" * 4096),
        ("c" * 40, b"hermes-ahead 1 wf_a\n" + b"\xff" * 999),
    ):
        (folder / name).write_bytes(content)
    assert len(list(opened(tmp_path).heads())) == 1


# -- writers that live, and do not go on -------------------------------------------------------------------------


def test_a_reader_does_not_wait_long_for_a_writer_that_is_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited, "_READERS_WAIT", 0.01)
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    newest = burst(ledger)
    other = opened(tmp_path)
    assert other.head("wf_a").tip == in_git(ledger) != newest  # type: ignore[union-attr]


def test_who_cannot_see_the_end_of_a_burst_is_told_so_and_may_take_it_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited, "_READERS_WAIT", 0.01)
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    newest = burst(ledger)
    waited: list[float] = []
    other = opened(tmp_path, patience=impatient(ours=3600.0, sleep=waited.append))
    assert (ledger.is_behind("wf_a"), other.is_behind("wf_a")) == (False, True)
    other.take_over("wf_a")
    assert sum(waited) < 1
    assert not other.is_behind("wf_a")
    assert other.head("wf_a").tip == newest  # type: ignore[union-attr]
    record(ledger, "wf_a", step_draft("late"))
    ledger.close()
    assert keys(other) == ["s0", "s1", "s2", "s3", "s4", "late"]


def test_a_suspended_writer_loses_its_burst_and_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    newest = burst(ledger)
    other = opened(tmp_path, patience=impatient(ours=0.01))
    assert record(other, "wf_a", step_draft("other")).base == newest
    record(ledger, "wf_a", step_draft("late"))
    record(ledger, "wf_a", step_draft("later"))
    ledger.close()
    other.close()
    assert keys(opened(tmp_path)) == ["s0", "s1", "s2", "s3", "s4", "other", "late", "later"]
    assert not peek.is_ahead(ledger.path)
    assert git(ledger, "fsck", "--full", "--strict") == ""


def test_two_writers_that_end_each_others_runs_do_not_wait_for_each_other(tmp_path: Path) -> None:
    ada, bob = (opened(tmp_path, patience=impatient(ours=60.0)) for _ in range(2))
    for ledger, own in ((ada, "wf_a"), (bob, "wf_b")):
        start(ledger, own)
        for n in range(3):
            record(ledger, own, step_draft(f"s{n}"))
    both = Barrier(2)

    def end(ledger: GitLedger, run_id: str) -> Appended:
        both.wait(60)
        return record(ledger, run_id, end_draft())

    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(end, ada, "wf_b"), pool.submit(end, bob, "wf_a")]
        assert len({future.result(timeout=30).head.run_id for future in ends}) == 2


def test_an_end_after_a_suspension_comes_after_what_others_recorded_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    burst(ledger)
    other = opened(tmp_path, patience=impatient(ours=0.01))
    newest = record(other, "wf_a", step_draft("other")).head.tip
    other.land()
    assert record(ledger, "wf_a", end_draft()).base == newest
    assert git(ledger, "fsck", "--full", "--strict") == ""


def test_a_writer_that_was_suspended_while_others_went_on_lands_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(monkeypatch)
    ledger = opened(tmp_path)
    burst(ledger)
    other = opened(tmp_path, patience=impatient(ours=0.01))
    newest = record(other, "wf_a", step_draft("other")).head.tip
    ledger.land()
    assert in_git(ledger) == newest
    assert list(ledger.rejected()) == []


def suspend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing lands by itself, also when somebody waits for it."""
    monkeypatch.setattr(bursts.Burst, "is_wanted", False)


# -- trouble -----------------------------------------------------------------------------------------------------


def test_what_was_acknowledged_comes_before_what_git_was_made_to_show_meanwhile(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    record(ledger, "wf_a", step_draft("landed"))
    ledger.land()
    newest = record(ledger, "wf_a", step_draft("ahead")).head.tip
    git(ledger, "update-ref", RUN, first)
    ledger.land()
    assert in_git(ledger) == newest
    assert [each.commit for each in ledger.rejected()] == [first]


def test_an_end_that_meets_another_ref_comes_after_what_was_acknowledged(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    first = start(ledger).head.tip
    record(ledger, "wf_a", step_draft("landed"))
    ledger.land()
    newest = record(ledger, "wf_a", step_draft("ahead")).head.tip
    git(ledger, "update-ref", RUN, first)
    assert record(ledger, "wf_a", end_draft()).base == newest
    assert keys(opened(tmp_path)) == ["landed", "ahead"]
    assert git(ledger, "rev-parse", f"{RUN}^").strip() == newest
    assert [each.commit for each in ledger.rejected()] == [first]


@pytest.mark.parametrize("killed_after", [False, True])
def test_a_full_disk_refuses_a_step_and_keeps_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: bool
) -> None:
    ledger = opened(tmp_path)
    newest = burst(ledger)
    real = os.pwrite

    def full(descriptor: int, data: Any, offset: int) -> int:
        if len(data) > 500:
            return real(descriptor, bytes(data[:300]), offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(StoreFailure, match="No space left"):
            record(ledger, "wf_a", step_draft("big", "x" * 2000))
    if killed_after:
        killed(ledger)
        assert in_git(opened(tmp_path)) == newest
    else:
        record(ledger, "wf_a", step_draft("small"))
        killed(ledger)
        assert keys(opened(tmp_path)) == ["s0", "s1", "s2", "s3", "s4", "small"]
