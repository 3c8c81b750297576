"""The index read without opening a workspace: for `status` and `list`, which must start as fast as Python does.

Nothing is created or repaired here, and a read-only folder is no obstacle.
Whatever is wrong raises DatabaseGone: the caller opens the workspace then, which repairs it.

What comes back has the attributes of the queue port's values but is no dataclass: making those classes takes as long
as importing SQLite. So no module with dataclasses, pydantic or dulwich may be imported here.
"""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from . import sql
from .database import DatabaseGone, open_for_reading, translated
from .liveness import standing
from .texts import load
from .wanted import EVERY, Wanted

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.clock import Clock
    from .queue_port import Indexed, ReviewRow, RunnerRow, Stuck, WorkRow

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
        rows = self._rows(sql.RUN, run_id=run_id)
        return _indexed(rows[0]) if rows else None

    def list_indexed(self, wanted: Wanted = EVERY, *, limit: int = 50, offset: int = 0) -> list[Indexed]:
        statement, values = sql.wanted(sql.RUNS, wanted)
        return [_indexed(row) for row in self._rows(statement, **values, limit=limit, offset=offset)]

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        return [row["run_id"] for row in self._rows(sql.RUN_IDS_FROM, **sql.from_prefix(prefix), limit=limit)]

    def started_from(self, run_id: str) -> list[str]:
        return [row["run_id"] for row in self._rows(sql.STARTED_FROM, run_id=run_id)]

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]:
        statement = sql.narrowed(sql.REVIEWS, run_id=run_id, status=status)
        return [_like(load(row["review"])) for row in self._rows(statement, run_id=run_id, status=status)]

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        return [_like(dict(row)) for row in self._rows(sql.narrowed(sql.STUCK, run_id=run_id), run_id=run_id)]

    def runners(self) -> list[RunnerRow]:
        return [_runner(row) for row in self._rows(sql.RUNNERS)]

    def work(self, run_id: str | None = None, *, clock: Clock) -> list[WorkRow]:
        elapsed, boot_id = clock.elapsed(), clock.boot_id
        rows = self._rows(sql.narrowed(sql.WORK, run_id=run_id), run_id=run_id)
        return [_work(row, standing(row, elapsed, boot_id)) for row in rows]

    def stamp(self) -> str:
        return "".join(row["value"] for row in self._rows(sql.GET_META, name="stamp"))

    def _rows(self, statement: str, **values: Any) -> list[sqlite3.Row]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise translated(error, self._path) from error


def _like(fields: dict[str, Any]) -> Any:
    return SimpleNamespace(**fields)


def _indexed(row: sqlite3.Row) -> Indexed:
    fields = load(row["summary"])
    reviews = {key: _like(review) for key, review in fields["open_reviews"].items()}
    # The two properties of RunSummary; which question is the oldest was decided when the row was written.
    derived = {
        "ended": fields["status"] not in ("running", "waiting"),
        "waiting_on": reviews.get(row["waiting_on"]),
        "open_reviews": reviews,
        "open_waits": {key: _like(wait) for key, wait in fields["open_waits"].items()},
        "open_intents": tuple(fields["open_intents"]),
        "late": tuple(fields["late"]),
        "recent": tuple(_like(event) for event in fields["recent"]),
    }
    summary = _like(fields | derived)
    return cast("Indexed", _like({**_place(row), "summary": summary, "reviews": ()}))


def _place(row: sqlite3.Row) -> dict[str, Any]:
    return {"tip": row["tip"], "folder": row["folder"], "sealed": bool(row["sealed"])}


def _runner(row: sqlite3.Row) -> RunnerRow:
    lists = {name: tuple(load(row[name])) for name in ("executing", "agents", "only")}
    told = {"said": load(row["said"]), "draining": bool(row["draining"])}
    return cast("RunnerRow", _like({**dict(row), **lists, **told}))


def _work(row: sqlite3.Row, status: str) -> WorkRow:
    names = ("run_id", "kind", "key", "fingerprint", "visible_at", "name")
    seen = {name: row[name] for name in ("runner", "claims", "offered_at", "claimed_at")}
    return cast("WorkRow", _like({"work": _like({name: row[name] for name in names}), "status": status, **seen}))
