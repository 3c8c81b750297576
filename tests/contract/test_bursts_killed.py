"""Processes that are killed at any of their calls to the system: what was acknowledged is there, once, and whole.

The points are each write, sync, link and rename, whose last ones move refs, and each statement of SQLite, with both
sides of its commits. `KILLS_APART` says how many lie between two that are looked at.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import end_draft, git, impatient, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock, calls

from hermes_workflows.store import ahead, durability, objects, peek
from hermes_workflows.store.index import all_indexed, refresh, refresh_all
from hermes_workflows.store.queue_port import Change, Claim
from hermes_workflows.store.sqlite_queue import SqliteQueue

_DECISIVE = ("fsync", "fdatasync", "link", "rename", "replace")
_CALLS = ("open", "pwrite", "ftruncate", "unlink", "mkdir", "utime", "close", "write", *_DECISIVE)
_ACKNOWLEDGE = os.write
_AT_LEAST = 20
_OWNED = ("a", "b")
# `make soak` looks at each.
_APART = int(os.environ.get("KILLS_APART", "7"))

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)


def dying(at: int, names: Sequence[str]) -> None:
    """Kill this process at its call number `at`, of those that `names` and the syncs and commits are."""
    made = 0

    def point() -> None:
        nonlocal made
        made += 1
        if made == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            point()
            return real(*arguments, **options)

        return call

    class Deadly(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            commits = statement == "COMMIT"
            if commits or names is _CALLS:
                point()
            done = super().execute(statement, *arguments)
            if commits:
                point()
            return done

    for name in names:
        setattr(os, name, deadly(getattr(os, name)))
    # As the camera of test_power_cuts has it: to begin to write something out promises nothing.
    started, waited = durability._write_out, deadly(durability._write_out)
    durability._write_out = lambda file, flags: (started if flags == durability._START else waited)(file, flags)
    sqlite3.connect = partial(sqlite3.connect, factory=Deadly)  # type: ignore[assignment]


def in_child(
    act: Callable[[Callable[[str], int]], None], at: int, names: Sequence[str] = _CALLS
) -> tuple[list[str], bool]:
    """What `act` acknowledged in a process that was killed at call `at`, and whether it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dying(at, names)
            act(lambda key: _ACKNOWLEDGE(writing, f"{key}\n".encode()))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        acknowledged = told.read().split()
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return acknowledged, os.WIFEXITED(status)


def a_life(folder: Path) -> Callable[..., None]:
    """A run of steps in bursts, to its end; the index hears of each."""

    def live(acknowledge: Callable[[str], int]) -> None:
        ledger = open_git(folder, bursts=True, patience=impatient())
        with closing(indexed(folder)) as index:
            for key in ("a", "b", "c", "d"):
                record(ledger, "wf_a", step_draft(key))
                acknowledge(key)
                refresh(ledger, index, "wf_a")
                if key == "c":
                    ledger.land()
            record(ledger, "wf_a", end_draft())
        ledger.close()

    return live


def is_right(folder: Path, acknowledged: list[str]) -> None:
    """Nothing acknowledged is missing, nothing is there twice, nothing blocks, and the index tells the same."""
    ledger = open_git(folder, bursts=True, patience=impatient(ours=0.2, theirs=0.2, stale=3600.0))
    found = [receipt.key for receipt in ledger.read("wf_a")[1] if receipt.key]
    assert found[: len(acknowledged)] == acknowledged
    assert len(found) <= len(acknowledged) + 1
    assert not peek.is_ahead(ledger.path)
    assert "error" not in git(ledger, "fsck", "--strict", check=False)
    if ledger.file("wf_a", "result.json") is None:
        record(ledger, "wf_a", step_draft("more"))
        ledger.land()
    with closing(indexed(folder)) as index:
        refresh_all(ledger, index)
        assert [index.indexed("wf_a")] == list(all_indexed(ledger))
    ledger.close()


def indexed(folder: Path) -> SqliteQueue:
    return SqliteQueue.open(folder / "workflows.sqlite", clock=FrozenClock(), rebuild=tuple)


def every(
    folder: Path, act: Callable[[Path], Callable[..., None]], names: Sequence[str] = _CALLS, apart: int = _APART
) -> Iterator[tuple[int, list[str]]]:
    """Each call of `act` in turn, the folder as it was before it."""
    shutil.copytree(folder / "before", folder / "now")
    at = 1
    while True:
        acknowledged, ended = in_child(act(folder / "now"), at, names)
        assert not ended or at > _AT_LEAST, "the calls that a burst makes are no longer those that are counted here"
        yield at, acknowledged
        if ended:
            return
        shutil.rmtree(folder / "now")
        shutil.copytree(folder / "before", folder / "now")
        at += apart


@pytest.mark.parametrize("packed_from", [1, 1000], ids=["packs", "loose"])
def test_a_process_that_is_killed_at_any_call_of_a_burst_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    (tmp_path / "before").mkdir()
    ledger = open_git(tmp_path / "before")
    start(ledger)
    # The first of a burst comes right after one of the same process.
    monkeypatch.setattr(ahead.Ahead, "takes", lambda self, entries, tip: ahead._are_results(entries, "wf_a"))
    for _, acknowledged in every(tmp_path, a_life):
        is_right(tmp_path / "now", acknowledged)


@pytest.mark.parametrize("packed_from", [1, 1000], ids=["packs", "loose"])
def test_whoever_puts_in_what_a_dead_writer_left_may_be_killed_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    (tmp_path / "before").mkdir()
    ledger = open_git(tmp_path / "before", bursts=True)
    start(ledger)
    keys = [f"s{n}" for n in range(4)]
    for key in keys:
        record(ledger, "wf_a", step_draft(key))

    def recover(folder: Path) -> Callable[..., None]:
        return lambda acknowledge: open_git(folder, patience=impatient()).close()

    for _ in every(tmp_path, recover):
        is_right(tmp_path / "now", keys)
    ledger.close()


def an_owner(folder: Path) -> Callable[..., None]:
    """A runner, from the first row of its queue to the sealed run. It acknowledges rows, receipts, and rows again."""

    def live(acknowledge: Callable[[str], int]) -> None:
        ledger = open_git(folder, durability="power", patience=impatient())
        with closing(indexed(folder)) as queue:
            queue.apply(Change(offer=calls("wf_a", *_OWNED)), "ada")
            acknowledge("offered")
            for lease in queue.apply(Change(claim=Claim(len(_OWNED))), "ada"):
                record(ledger, "wf_a", step_draft(lease.work.key))
                acknowledge(lease.work.key)
                queue.apply(Change(finish=[lease]), "ada")
                acknowledge(f"finished-{lease.work.key}")
            record(ledger, "wf_a", end_draft())
            refresh(ledger, queue, "wf_a")
            ledger.seal(keep=0)
        ledger.close()

    return live


@pytest.mark.parametrize(
    ("names", "apart"),
    [(_DECISIVE, 1), (_CALLS, _APART)],
    ids=["each sync, rename and commit", "each write and statement"],
)
def test_a_runner_that_is_killed_at_any_write_loses_nothing_and_is_in_nobodys_way(
    tmp_path: Path, names: Sequence[str], apart: int
) -> None:
    (tmp_path / "before").mkdir()
    start(open_git(tmp_path / "before"))
    for _, told in every(tmp_path, an_owner, names, apart):
        is_right(tmp_path / "now", [key for key in told if key in _OWNED])
        with closing(indexed(tmp_path / "now")) as queue:
            left = {lease.work.key for lease in queue.apply(Change(claim=Claim(10)), "bob")}
        finished = {key for key in _OWNED if f"finished-{key}" in told}
        begun = {key for key in _OWNED if key in told} - finished
        # Of the one that was under way when it died, either may be.
        assert left - begun <= set(_OWNED) - finished
        assert left >= (set(_OWNED) - finished - begun if "offered" in told else set())
