"""The index as `status` and `list` read it: light, without creating or repairing anything."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import FrozenClock, beat, call, run, workflow

from hermes_workflows.core.summary import OpenReview
from hermes_workflows.errors import StoreFailure
from hermes_workflows.store.fast_status import DatabaseGone, FastIndex
from hermes_workflows.store.queue_port import Change, ReviewRow, Stuck
from hermes_workflows.store.sqlite_queue import SqliteQueue

CLOCK = FrozenClock()
NOBODY = 65534


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "workflows.sqlite"
        os.chmod(folder, 0o755)


def filled(path: Path) -> SqliteQueue:
    queue = SqliteQueue.open(path, clock=CLOCK, rebuild=tuple)
    review = ReviewRow("r", "ok", "open", "Ship it?", requested_at="2026-11-29T12:00:00.000Z")
    asked = OpenReview("ok", "Ship it?", None, "2026-11-29T12:00:00.000Z", None, {"type": "object"})
    waiting = run("r", started_at="2026-11-29T12:00:00.000Z", open_reviews={"ok": asked}, reviews=(review,))
    change = Change(
        offer=[workflow("r"), call("r", "a")],
        index=[waiting, run("other")],
        stuck=[Stuck("other", "divergence", "the code differs", "restore it")],
    )
    queue.apply(change, "ada")
    queue.heartbeat(beat("ada", CLOCK))
    queue.put_stamp("here", queue.epoch())
    return queue


def same(light: Any, value: Any) -> bool:
    """Every attribute of `value`, properties included, is one of `light`, all the way down."""
    if isinstance(value, list):
        return len(light) == len(value) and all(map(same, light, value))
    if isinstance(value, dict):
        return list(light) == list(value) and same([*light.values()], [*value.values()])
    if not is_dataclass(value):
        return bool(light == value)
    properties = [name for name, found in vars(type(value)).items() if isinstance(found, property)]
    return all(same(getattr(light, name), getattr(value, name)) for name in [*vars(value), *properties])


def test_it_answers_as_the_queue_does_while_that_is_open(path: Path) -> None:
    with closing(filled(path)) as queue, closing(FastIndex(path)) as index:
        assert same(index.indexed("r"), queue.indexed("r"))
        assert index.indexed("nobody") is queue.indexed("nobody") is None
        assert same(index.list_indexed(limit=1), queue.list_indexed(limit=1))
        assert index.matching("o") == queue.matching("o") == ["other"]
        assert same(index.reviews(status="open"), queue.reviews())
        assert same(index.stuck("other"), queue.stuck("other"))
        assert same(index.runners(), queue.runners())
        assert same(index.work("r", clock=CLOCK), queue.work("r"))
        assert index.stamp() == "here"


def test_it_sees_what_was_written_after_it_was_opened(path: Path) -> None:
    with closing(filled(path)) as queue, closing(FastIndex(path)) as index:
        queue.apply(Change(index=[run("r", seq=1, status="completed")]), "ada")
        found = index.indexed("r")
        assert found is not None
        assert found.summary.status == "completed"


def test_a_missing_file_is_not_created(path: Path) -> None:
    with pytest.raises(DatabaseGone):
        FastIndex(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"garbage", b"SQLite format 3\0" + bytes(9000)])
def test_a_damaged_file_is_not_repaired(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DatabaseGone):
        FastIndex(path)
    assert path.read_bytes() == content


def test_a_copy_without_its_lock_is_read_and_gets_none(path: Path) -> None:
    filled(path).close()
    (lock := path.with_name(f"{path.name}.lock")).unlink()
    with closing(FastIndex(path)) as index:
        assert index.matching("o") == ["other"]
    assert not lock.exists()


def test_damage_that_shows_later_is_reported_the_same_way(path: Path) -> None:
    filled(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\x5a" * (len(whole) - 8192))
    with closing(FastIndex(path)) as index, pytest.raises(DatabaseGone):
        index.list_indexed()


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    filled(path).close()
    os.chmod(path.parent, 0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    yield path
    if root:
        os.seteuid(0)


def test_a_read_only_folder_can_be_read(read_only: Path) -> None:
    with closing(FastIndex(read_only)) as index:
        assert [row.summary.run_id for row in index.list_indexed()] == ["r", "other"]


def test_a_read_only_folder_is_not_read_without_what_was_written_last(path: Path) -> None:
    """What a killed runner left in the `-wal` needs a file beside it to be read, which nobody can make there."""
    kept = path.with_name("kept")
    kept.mkdir()
    with closing(filled(path)):
        for ending in ("", "-wal", ".lock"):
            (kept / f"{path.name}{ending}").write_bytes(path.with_name(path.name + ending).read_bytes())
    kept.chmod(0o555)
    with somebody_else(), pytest.raises((DatabaseGone, StoreFailure)):
        FastIndex(kept / path.name)


def test_a_read_only_folder_cannot_be_worked_in_and_says_so_in_one_line(read_only: Path) -> None:
    with pytest.raises(StoreFailure) as caught:
        SqliteQueue.open(read_only, clock=CLOCK, rebuild=tuple)
    assert "\n" not in caught.value.message
    assert caught.value.hint == "the folder must be writable to run workflows in it"


def test_a_file_that_may_only_be_read_is_not_worked_with_and_says_so(path: Path) -> None:
    filled(path).close()
    kept = SqliteQueue.open(path, clock=CLOCK, rebuild=tuple)
    path.chmod(0o444)
    for each in path.parent.glob(f"{path.name}-*"):
        each.chmod(0o666)
    path.with_name(f"{path.name}.lock").chmod(0o666)
    with closing(kept), somebody_else():
        queue = SqliteQueue.open(path, clock=CLOCK, rebuild=tuple)
        with closing(queue), pytest.raises(StoreFailure, match="cannot be written") as caught:
            queue.apply(Change(offer=[workflow("other")]), "ada")
    assert caught.value.hint == "check the permissions of the file and of its folder"


@contextmanager
def somebody_else() -> Iterator[None]:
    """Permissions hold for everybody but root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_read_only_folder_without_a_file_cannot_be_worked_in_either(read_only: Path) -> None:
    for path in (read_only.with_name("new.sqlite"), read_only.parent / "folder" / "new.sqlite"):
        with pytest.raises(StoreFailure, match=r"new\.sqlite: Permission denied"):
            SqliteQueue.open(path, clock=CLOCK, rebuild=tuple)


MORE = "print(*({} & (set(sys.modules) - there)))"


def test_nothing_heavy_is_imported_for_it() -> None:
    heavy = "{'pydantic', 'dulwich', 'orjson', 'asyncio', 'dataclasses', 'hashlib', 'socket'}"
    # What measures coverage is there before.
    code = f"import sys; there = set(sys.modules); import hermes_workflows.store.fast_status; {MORE.format(heavy)}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
