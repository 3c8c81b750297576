"""What only a file can do: vanish, break, be another program's, be opened by many processes at once."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import pytest
from tests.contract.queue_files import RUNS, Files
from tests.contract.queues import (
    call,
    calls,
    workflow,
)
from tests.contract.test_bursts_interrupted import before

from hermes_workflows.core.summary import Event, OpenReview, OpenWait, RunSummary
from hermes_workflows.errors import InvalidInput, NewerSchema, StoreFailure, TemporarilyLocked
from hermes_workflows.store import database, sqlite_queue, tables
from hermes_workflows.store.database import Database, DatabaseGone
from hermes_workflows.store.queue_port import Change, Claim, Indexed, ReviewRow, RunnerRow
from hermes_workflows.store.sqlite_queue import SqliteQueue


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    files = Files(tmp_path)
    yield files
    for queue in files.opened:
        queue.close()


# --- made from the ledger ---------------------------------------------------------------------------------------


def test_a_new_file_knows_every_run_and_wakes_the_unfinished_ones_of_this_workspace(files: Files) -> None:
    queue = files.open()
    assert queue.list_indexed() == list(RUNS)
    assert [row.work for row in queue.work()] == [workflow("kept")]


def test_no_transaction_waits_for_the_disk(files: Files) -> None:
    connection = files.open()._database.connection  # type: ignore[union-attr]
    settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    # With a write-ahead log, 1 (NORMAL) syncs at checkpoints only: what a power cut takes, the ledger still has.
    assert settings == ["wal", 1]


def test_an_existing_file_is_not_made_again(files: Files) -> None:
    files.open().close()
    files.open()
    assert files.rebuilt == 1


@pytest.mark.parametrize("left", [0, 1, 100, 4096, 5000, -4096, -1])
def test_a_truncated_file_is_made_again(files: Files, left: int) -> None:
    files.open().close()
    size = files.path.stat().st_size
    os.truncate(files.path, left if left >= 0 else size + left)
    assert files.open().list_indexed() == list(RUNS)
    assert files.intact()


@pytest.mark.parametrize("content", [b"garbage " * 4000, b"SQLite format 3\0" + bytes(9000), b"x"])
def test_a_file_of_garbage_is_made_again_and_kept_aside(files: Files, content: bytes) -> None:
    files.path.write_bytes(content)
    assert files.open().list_indexed() == list(RUNS)
    assert files.path.with_name("workflows.sqlite.damaged").read_bytes() == content


def test_damage_that_shows_only_in_a_page_makes_the_file_again(files: Files) -> None:
    files.open().close()
    whole = files.path.read_bytes()
    files.path.write_bytes(whole[:4096] + b"\x5a" * (len(whole) - 4096))
    assert files.open().list_indexed() == list(RUNS)
    assert files.intact()


def test_damage_that_sqlite_cannot_see_makes_the_file_again(files: Files) -> None:
    files.open().close()
    with closing(sqlite3.connect(files.path)) as connection:
        connection.execute("UPDATE runs SET summary = substr(summary, 3)")
        connection.commit()
    assert files.open().list_indexed() == list(RUNS)


def test_an_old_wal_is_not_taken_for_the_new_file_s_own(files: Files) -> None:
    queue = files.open()
    queue.apply(Change(offer=calls("kept", *"abc")), "ada")
    kept = files.path.with_name("workflows.sqlite-wal").read_bytes()
    queue.close()
    files.delete()
    files.path.with_name("workflows.sqlite-wal").write_bytes(kept)
    assert [row.work for row in files.open().work()] == [workflow("kept")]
    assert files.intact()


# --- gone under a live process ----------------------------------------------------------------------------------


def test_a_file_that_is_deleted_under_a_live_runner_is_made_again_with_its_leases(files: Files) -> None:
    shop = files.shop()
    shop.offer(*calls("kept", "a", "b"))
    shop.claim("ada", limit=2)
    files.delete()
    assert shop.claim("bob") == []
    assert shop.status() == {"kept/": "leased", "kept/a": "leased"}
    assert shop.renew("kept/a") == "held"
    shop.finish("kept/a")
    assert files.intact()


def test_a_run_that_advanced_while_its_row_vanished_gets_one_more_turn(files: Files) -> None:
    shop = files.shop()
    assert shop.claim("ada") == ["kept/"]
    files.delete()
    shop.finish("kept/")
    assert shop.claim("ada") == ["kept/"]


def test_every_live_process_enters_its_own_leases_again(files: Files) -> None:
    shop, other = files.shop(), files.open()
    shop.offer(call("kept", "b"))
    shop.claim("ada", limit=1)
    shop.claim("bob", queue=other)
    files.delete()
    assert shop.renew("kept/") == "held"
    assert other.changed()
    assert other.renew([shop.leases["kept/b"]], 30.0) == {shop.leases["kept/b"].token: "held"}
    assert shop.status() == {"kept/": "leased", "kept/b": "leased"}
    assert files.rebuilt == 2


def test_a_lease_is_not_entered_over_that_of_somebody_who_was_first(files: Files) -> None:
    shop = files.shop()
    shop.claim("ada")
    files.delete()
    other = files.open()
    assert shop.claim("bob", queue=other) == ["kept/"]
    shop.offer(call("kept", "a"))
    assert [row.runner for row in other.work("kept")] == ["bob", None]


def test_an_idle_runner_notices_that_its_file_is_another_one(files: Files) -> None:
    queue = files.open()
    assert not queue.changed()
    files.delete()
    assert queue.changed()
    files.open().apply(Change(offer=[call("kept", "a")]), "bob")
    assert [row.work.key for row in queue.work()] == ["", "a"]


def test_looking_at_a_file_that_nobody_writes_asks_sqlite_nothing(files: Files) -> None:
    queue, other = files.open(), files.open()
    wal = files.path.with_name("workflows.sqlite-wal")
    os.utime(wal, (1, 1))
    asked: list[str] = []
    assert queue._database is not None
    queue._database.connection.set_trace_callback(asked.append)
    assert [queue.changed() for _ in range(10)] == [False] * 10
    assert asked == ["PRAGMA data_version"]
    other.apply(Change(offer=[call("kept", "a")]), "bob")
    assert [queue.changed(), queue.changed()] == [True, False]


def test_two_commits_in_one_moment_of_the_file_system_are_both_noticed(files: Files) -> None:
    queue, other = files.open(), files.open()
    wal = files.path.with_name("workflows.sqlite-wal")
    other.apply(Change(offer=[call("kept", "a")]), "ada")
    assert other._database is not None
    other._database.connection.execute("PRAGMA wal_checkpoint(RESTART)")
    now, size = time.time_ns(), wal.stat().st_size
    os.utime(wal, ns=(now, now))
    queue.changed()
    # The next one begins the -wal again: neither its time nor its size tells.
    other.apply(Change(offer=[call("kept", "b")]), "ada")
    os.utime(wal, ns=(now, now))
    assert wal.stat().st_size == size
    assert queue.changed()


def test_an_epoch_lasts_as_long_as_its_file(files: Files) -> None:
    queue = files.open()
    before = queue.epoch()
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    assert queue.epoch() == before
    files.delete()
    queue.list_indexed()
    assert queue.epoch() != before


def test_a_file_that_was_left_and_is_opened_again_is_another_epoch(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk took no new one in its place. Nobody knows what of its `-wal` is left; its inode says nothing."""
    queue = files.open()
    before = queue.epoch()
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    files.path.with_name("workflows.sqlite-wal").unlink()
    with monkeypatch.context() as disk:
        disk.setattr(sqlite_queue, "replace_database", refused)
        with pytest.raises(StoreFailure, match="disk is full"):
            queue.work()
    inode = files.path.stat().st_ino
    queue.work()
    assert (files.rebuilt, files.path.stat().st_ino) == (1, inode)
    assert queue.epoch() != before


def refused(*_: object, **__: object) -> NoReturn:
    raise StoreFailure("the disk is full", hint="free some")


def test_what_was_compared_says_nothing_of_a_file_that_was_made_since(files: Files) -> None:
    queue = files.open()
    epoch = queue.epoch()
    files.delete()
    queue.put_stamp("all refs of then", epoch)
    assert queue.stamp() == ""
    queue.put_stamp("all refs of now", queue.epoch())
    assert queue.stamp() == "all refs of now"


def test_a_wal_that_is_deleted_under_a_live_process_is_noticed(files: Files) -> None:
    queue = files.open()
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    files.path.with_name("workflows.sqlite-wal").unlink()
    assert queue.list_indexed() == list(RUNS)
    assert files.intact()


def test_a_file_that_is_cut_under_a_live_process_is_made_again(files: Files) -> None:
    queue = files.open()
    os.truncate(files.path, 0)
    assert queue.list_indexed() == list(RUNS)
    assert files.intact()


def test_a_cut_is_noticed_although_sqlite_need_not_read_what_was_cut_off(files: Files) -> None:
    queue = files.open()
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    before = queue.list_indexed()
    os.truncate(files.path, files.path.stat().st_size - 4096)
    assert queue.list_indexed() == before
    assert files.intact()


def test_a_file_that_is_overwritten_under_a_live_process_is_made_again(files: Files) -> None:
    queue = files.open()
    with open(files.path, "r+b") as file:
        file.write(b"\x5a" * files.path.stat().st_size)
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    assert files.open().list_indexed() == list(RUNS)
    assert files.intact()


def test_whoever_closes_a_replaced_file_leaves_the_new_one_s_wal_alone(files: Files) -> None:
    old = files.open()
    old.apply(Change(offer=[call("kept", "old")]), "ada")
    files.delete()
    new = files.open()
    new.apply(Change(offer=[call("kept", "new")]), "ada")
    old.close()
    assert files.path.with_name("workflows.sqlite-wal").exists()
    assert [row.work.key for row in files.open().work()] == ["", "new"]


def test_what_a_killed_builder_left_is_swept(files: Files) -> None:
    files.path.with_name("workflows.sqlite.0a0b0c0d.new").write_bytes(b"half")
    files.open()
    assert not list(files.path.parent.glob("*.new*"))


# --- other people's files ---------------------------------------------------------------------------------------


def test_another_program_s_database_is_refused_and_left_alone(files: Files) -> None:
    with closing(sqlite3.connect(files.path)) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    before = files.path.read_bytes()
    with pytest.raises(InvalidInput, match="another program"):
        files.open()
    assert files.path.read_bytes() == before


@pytest.mark.parametrize("step", [-1, 1])
def test_an_older_file_is_made_again_and_a_newer_one_refused(files: Files, step: int) -> None:
    files.open().close()
    with closing(sqlite3.connect(files.path)) as connection:
        connection.execute(f"PRAGMA user_version = {tables.SCHEMA_VERSION + step}")
    if step > 0:
        with pytest.raises(NewerSchema, match="newer version"):
            files.open()
    else:
        files.open()
    assert files.rebuilt == (1 if step > 0 else 2)


def test_a_changed_shape_needs_a_new_version() -> None:
    """Fails when a table or a stored value changes: raise SCHEMA_VERSION, then write the new number here."""
    stored = (RunSummary, OpenReview, OpenWait, Event, ReviewRow, RunnerRow)
    shape = tables.SCHEMA + repr([[field.name for field in fields(kind)] for kind in stored])
    assert (tables.SCHEMA_VERSION, zlib.crc32(shape.encode())) == (7, 3479957683)


def test_a_folder_at_the_path_is_one_clear_error(files: Files) -> None:
    files.path.mkdir()
    with pytest.raises(StoreFailure, match=r"workflows\.sqlite: Is a directory"):
        files.open()
    assert {path.name for path in files.path.parent.iterdir()} == {"workflows.sqlite", "workflows.sqlite.lock"}


@pytest.mark.parametrize(
    ("name", "said"), [("file/queue.sqlite", "Not a directory"), ("q" * 245, "unable to open database file")]
)
def test_a_place_that_can_hold_no_file_is_one_clear_error(files: Files, name: str, said: str) -> None:
    (files.path.parent / "file").touch()
    with pytest.raises(StoreFailure, match=said) as caught:
        SqliteQueue.open(files.path.with_name("x").parent / name, clock=files.clock, rebuild=files.rebuild)
    assert caught.value.hint == "the folder must be writable to run workflows in it"


def test_a_file_that_vanishes_while_it_is_opened_is_made_again(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.open().close()
    before(monkeypatch, database.Stamp, "of", files.delete)
    assert files.open().list_indexed() == list(RUNS)
    assert files.intact()


def test_an_error_that_is_not_the_files_is_not_told_as_one(files: Files) -> None:
    for error in (sqlite3.ProgrammingError("a cursor was closed"), sqlite3.IntegrityError("NOT NULL")):
        assert database.translated(error, files.path) is error


def test_a_link_leads_to_one_file_under_both_names(files: Files) -> None:
    queue = files.open()
    link = files.path.with_name("link.sqlite")
    link.symlink_to(files.path)
    linked = SqliteQueue.open(link, clock=files.clock, rebuild=files.rebuild, home="here")
    files.opened.append(linked)
    files.delete()
    linked.apply(Change(offer=[call("kept", "a")]), "ada")
    assert link.is_symlink()
    assert [row.work.key for row in queue.work()] == ["", "a"]


def test_a_full_disk_loses_nothing_and_stops_nothing_for_good(files: Files) -> None:
    queue = files.open()
    connection = queue._database.connection  # type: ignore[union-attr]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFailure, match="disk is full"):
        queue.apply(Change(offer=calls("kept", *map(str, range(500)))), "ada")
    connection.execute("PRAGMA max_page_count = 100000")
    queue.apply(Change(offer=[call("kept", "a")]), "ada")
    assert [row.work.key for row in queue.work()] == ["", "a"]


class Unlucky(SqliteQueue):
    """On a disk that fails right after a file was opened, `failures` times."""

    failures = 0

    def _enter_leases(self, database: Database) -> None:
        if self.failures:
            self.failures -= 1
            raise DatabaseGone(f"{database.path}: disk I/O error")
        super()._enter_leases(database)


@pytest.mark.parametrize(("failures", "refused"), [(1, False), (2, False), (100, True)])
def test_a_disk_that_breaks_a_new_file_as_well_is_tried_again_and_no_lease_is_lost(
    files: Files, failures: int, refused: bool
) -> None:
    queue = Unlucky.open(files.path, clock=files.clock, rebuild=files.rebuild, home="here")
    files.opened.append(queue)
    (lease,) = queue.apply(Change(claim=Claim(1)), "ada")
    files.delete()
    queue.failures = failures  # type: ignore[attr-defined]
    if refused:
        with pytest.raises(StoreFailure, match="I/O error"):
            queue.work()
        queue.failures = 0  # type: ignore[attr-defined]
    assert [row.status for row in queue.work()] == ["leased"]
    assert queue.renew([lease], 30.0) == {lease.token: "held"}


def test_a_new_file_that_somebody_else_is_writing_is_taken_a_moment_later_with_its_leases(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = files.open()
    (lease,) = queue.apply(Change(claim=Claim(1)), "ada")
    files.delete()
    files.open().work()
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(files.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TemporarilyLocked, match="another process"):
            queue.work()
        other.execute("ROLLBACK")
    assert queue.changed()
    assert [row.status for row in queue.work()] == ["leased"]
    assert queue.renew([lease], 30.0) == {lease.token: "held"}


def test_while_one_thread_makes_the_file_again_another_is_told_to_come_back(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> Iterable[Indexed]:
        begun.set()
        assert go_on.wait(30)
        return RUNS

    queue = SqliteQueue.open(files.path, clock=files.clock, rebuild=files.rebuild, home="here")
    files.opened.append(queue)
    monkeypatch.setattr(queue, "_rebuild", slowly)
    monkeypatch.setattr(sqlite_queue, "BUSY_SECONDS", 0.01)
    files.delete()
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(queue.work)
        assert begun.wait(30)
        with pytest.raises(TemporarilyLocked, match="is being made again"):
            queue.work()
        go_on.set()
        assert made.result(30) == queue.work()


def test_a_file_somebody_else_is_writing_is_temporarily_locked(files: Files) -> None:
    queue = files.open()
    queue._database.connection.execute("PRAGMA busy_timeout = 0")  # type: ignore[union-attr]
    with closing(sqlite3.connect(files.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TemporarilyLocked, match="another process"):
            queue.apply(Change(offer=[call("kept", "a")]), "ada")
        other.execute("ROLLBACK")
    assert queue.apply(Change(claim=Claim(1)), "ada")
