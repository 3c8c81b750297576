"""A queue file whose ledger knows three runs: what the SQLite suites break, delete and share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.contract.queues import FrozenClock, Shop, run

from hermes_workflows.store.queue_port import Indexed
from hermes_workflows.store.sqlite_queue import SqliteQueue

RUNS = (
    run("kept", started_at="2026-11-29T12:00:00.000Z", home="here", tip="aa"),
    run("done", started_at="2026-11-29T11:00:00.000Z", home="here", status="completed", result={"n": 2**80}),
    run("foreign", started_at="2026-11-29T10:00:00.000Z", home="elsewhere"),
)


class Files:
    """A queue file whose ledger knows RUNS."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "workflows.sqlite"
        self.clock = FrozenClock()
        self.rebuilt = 0
        self.opened: list[SqliteQueue] = []

    def rebuild(self) -> Iterable[Indexed]:
        self.rebuilt += 1
        return RUNS

    def open(self) -> SqliteQueue:
        queue = SqliteQueue.open(self.path, clock=self.clock, rebuild=self.rebuild, home="here")
        self.opened.append(queue)
        return queue

    def shop(self) -> Shop:
        return Shop(self.open(), self.clock, self.open)

    def delete(self) -> None:
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.unlink()

    def intact(self) -> bool:
        """The file at the path is whole, and its queue answers as the ledger knows it."""
        with closing(sqlite3.connect(self.path)) as connection:
            whole = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return whole and self.open().list_indexed() == list(RUNS)
