"""The index read without opening a workspace: for `status` and `list`, which must start as fast as Python does.

Nothing is created or repaired here, and a read-only folder is no obstacle.
Whatever is wrong raises DatabaseGone: the caller opens the workspace then, which repairs it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..core.clock import Clock
from . import index_table, work_table
from .database import DatabaseGone, open_for_reading, translated
from .queue_port import Indexed, ReviewRow, RunnerRow, Stuck, WorkRow

T = TypeVar("T")

__all__ = ["DatabaseGone", "FastIndex"]


class FastIndex:
    """Answers as `SqliteQueue` does. Every method raises DatabaseGone, TemporarilyLocked or StoreFailure."""

    def __init__(self, path: Path) -> None:
        """Raises also InvalidInput for another program's database, and NewerSchema."""
        self._path = path.resolve()
        self._connection = open_for_reading(self._path)

    def close(self) -> None:
        self._connection.close()

    def indexed(self, run_id: str) -> Indexed | None:
        return self._read(lambda connection: index_table.one(connection, run_id))

    def list_indexed(self, *, status: str | None = None, limit: int = 50, offset: int = 0) -> list[Indexed]:
        return self._read(lambda connection: index_table.page(connection, status, limit, offset))

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        return self._read(lambda connection: index_table.matching(connection, prefix, limit))

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]:
        return self._read(lambda connection: index_table.reviews(connection, run_id, status))

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        return self._read(lambda connection: index_table.stuck(connection, run_id))

    def runners(self) -> list[RunnerRow]:
        return self._read(index_table.runners)

    def work(self, run_id: str | None = None, *, clock: Clock) -> list[WorkRow]:
        moment = work_table.Moment.of(clock)
        return [work_table.shown(row, moment) for row in self._read(lambda found: work_table.rows(found, run_id))]

    def stamp(self) -> str:
        return self._read(index_table.stamp)

    def _read(self, action: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return action(self._connection)
        except sqlite3.Error as error:
            raise translated(error, self._path) from error
