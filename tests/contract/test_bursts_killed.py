"""Bursts whose process is killed at any of its calls to the system: what was acknowledged is there, once, and whole."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import end_draft, git, impatient, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock

from hermes_workflows.store import ahead, objects, peek
from hermes_workflows.store.index import all_indexed, refresh, refresh_all
from hermes_workflows.store.sqlite_queue import SqliteQueue

_CALLS = ("open", "pwrite", "ftruncate", "link", "rename", "unlink", "mkdir", "utime", "close", "write")
_ACKNOWLEDGE = os.write
_AT_LEAST = 20
_APART = 7
"""How many calls lie between two that are looked at: all of them have been, once, and take a minute."""

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)


def dying(at: int) -> None:
    """Kill this process at its call number `at`."""
    made = 0

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal made
            made += 1
            if made == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in _CALLS:
        setattr(os, name, deadly(getattr(os, name)))


def in_child(act: Callable[[Callable[[str], int]], None], at: int) -> tuple[list[str], bool]:
    """What `act` acknowledged in a process that was killed at call `at`, and whether it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dying(at)
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


def every(folder: Path, act: Callable[[Path], Callable[..., None]]) -> Iterator[tuple[int, list[str]]]:
    """Each call of `act` in turn, the folder as it was before it."""
    shutil.copytree(folder / "before", folder / "now")
    at = 1
    while True:
        acknowledged, ended = in_child(act(folder / "now"), at)
        assert not ended or at > _AT_LEAST, "the calls that a burst makes are no longer those that are counted here"
        yield at, acknowledged
        if ended:
            return
        shutil.rmtree(folder / "now")
        shutil.copytree(folder / "before", folder / "now")
        at += _APART


@pytest.mark.parametrize("packed_from", [1, 1000], ids=["packs", "loose"])
def test_a_process_that_is_killed_at_any_call_of_a_burst_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    (tmp_path / "before").mkdir()
    ledger = open_git(tmp_path / "before")
    start(ledger)
    # The first of a burst comes right after one of the same process.
    monkeypatch.setattr(ahead.Ahead, "takes", lambda self, entries, tip: all(map(ahead._are_results, entries)))
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
