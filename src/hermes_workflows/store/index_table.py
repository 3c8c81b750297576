"""The status index, the inbox and the heartbeats: what is put into and read from a connection somebody else opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ..core.summary import ENDED
from . import sql
from .held import is_past
from .liveness import Process
from .queue_port import Counts, InboxPage, Indexed, Known, ReviewRow, RunnerRow, Stuck, Took
from .rows import (
    indexed_of,
    merged,
    review_of,
    review_values,
    run_values,
    runner_of,
    runner_values,
    stuck_of,
    withdrawn,
)
from .texts import dump, load

if TYPE_CHECKING:
    from .wanted import Wanted, WantedReviews


def put(connection: Connection, rows: Iterable[Indexed]) -> None:
    ended: dict[str, str] = {}
    for indexed in rows:
        # Not its summary: what another process has handed over would have to be taken apart for it.
        values = run_values(indexed)
        if connection.execute(sql.PUT_RUN_AGAIN, values).rowcount == 0:
            connection.execute(sql.PUT_RUN, values)
        for review in indexed.reviews:
            _put_review(connection, review, values["workflow"])
        if values["status"] in ENDED:
            ended[values["run_id"]] = values["workflow"]
    if ended:
        _close(connection, ended)


def _put_review(connection: Connection, review: ReviewRow, workflow: str) -> None:
    row = connection.execute(sql.REVIEW, {"run_id": review.run_id, "key": review.key}).fetchone()
    known = merged(review_of(row) if row else None, review)
    connection.execute(sql.PUT_REVIEW, review_values(known, workflow))


def _close(connection: Connection, workflows: Mapping[str, str]) -> None:
    """Ended runs, and of which workflows they are: they wait for nobody and are stuck at nothing."""
    for statement in (sql.UNSTUCK, sql.DROP_BODY):
        connection.executemany(statement, [{"run_id": run_id} for run_id in workflows])
    for row in connection.execute(sql.OPEN_REVIEWS, {"run_ids": dump(list(workflows))}).fetchall():
        review = review_of(row)
        connection.execute(sql.PUT_REVIEW, review_values(withdrawn(review), workflows[review.run_id]))


def put_stuck(connection: Connection, marks: Iterable[Stuck], now: str) -> None:
    for mark in marks:
        connection.execute(sql.PUT_STUCK, vars(replace(mark, since=mark.since or now)))


def unstick(connection: Connection, run_ids: Iterable[str]) -> None:
    for run_id in run_ids:
        connection.execute(sql.UNSTUCK, {"run_id": run_id})
        connection.execute(sql.FORGIVE, {"run_id": run_id})


def forget(connection: Connection, run_id: str) -> None:
    for statement in (*sql.REWIND, *sql.FORGET_WORK):
        connection.execute(statement, {"run_id": run_id})


def rewind(connection: Connection, run_id: str) -> None:
    for statement in sql.REWIND:
        connection.execute(statement, {"run_id": run_id})


def one(connection: Connection, run_id: str) -> Indexed | None:
    row = connection.execute(sql.RUN, {"run_id": run_id}).fetchone()
    return indexed_of(row) if row else None


def page(connection: Connection, wanted: Wanted, limit: int, offset: int) -> list[Indexed]:
    statement, values = sql.wanted(sql.RUNS, wanted)
    rows = connection.execute(statement, {**values, "limit": limit, "offset": offset})
    return [indexed_of(row) for row in rows]


def counts(connection: Connection) -> list[Counts]:
    return [Counts(**dict(row)) for row in connection.execute(sql.COUNTS)]


def lately(connection: Connection, workflow: str, limit: int) -> list[Took]:
    rows = connection.execute(sql.LATELY, {"workflow": workflow, "limit": limit})
    return [Took(row["started_at"], row["finished_at"], load(row["usage"] or "{}")) for row in rows]


def tips(connection: Connection) -> dict[str, Known]:
    return {run_id: Known(tip, bool(sealed), seq) for run_id, tip, sealed, seq in connection.execute(sql.TIPS)}


def matching(connection: Connection, prefix: str, limit: int) -> list[str]:
    rows = connection.execute(sql.RUN_IDS_FROM, {**sql.from_prefix(prefix), "limit": limit})
    return [row["run_id"] for row in rows]


def started_from(connection: Connection, run_id: str) -> list[str]:
    return [row["run_id"] for row in connection.execute(sql.STARTED_FROM, {"run_id": run_id})]


def reviews(connection: Connection, run_id: str | None, status: str | None) -> list[ReviewRow]:
    statement = sql.narrowed(sql.REVIEWS, run_id=run_id, status=status)
    return [review_of(row) for row in connection.execute(statement, {"run_id": run_id, "status": status})]


def inbox(connection: Connection, wanted: WantedReviews, limit: int, offset: int) -> InboxPage:
    given = wanted._asdict()
    rows = connection.execute(sql.narrowed(sql.INBOX, **given), {**given, "limit": limit, "offset": offset})
    asked = connection.execute(sql.narrowed(sql.ASKED, status=wanted.status), given).fetchall()
    (total,) = connection.execute(sql.narrowed(sql.COUNT_REVIEWS, **given), given).fetchone()
    return InboxPage(
        [(review_of(row), row["workflow"]) for row in rows],
        total,
        sorted({row["workflow"] for row in asked}),
        sorted({row["assignee"] for row in asked if row["assignee"]}),
    )


def open_questions(connection: Connection) -> list[tuple[str, str]]:
    return [(row["run_id"], row["key"]) for row in connection.execute(sql.OPEN_QUESTIONS)]


def stuck(connection: Connection, run_id: str | None) -> list[Stuck]:
    return [stuck_of(row) for row in connection.execute(sql.narrowed(sql.STUCK, run_id=run_id), {"run_id": run_id})]


def runners(connection: Connection) -> list[RunnerRow]:
    return [runner_of(row) for row in connection.execute(sql.RUNNERS)]


def beat(connection: Connection, row: RunnerRow, *, first: bool) -> None:
    for old in runners(connection) if first else ():
        if is_past(old, row):
            goodbye(connection, old.runner_id, Process.of(old))
    connection.execute(sql.HEARTBEAT, runner_values(row))


def drain(connection: Connection, runner_id: str | None) -> None:
    connection.execute(sql.DRAIN, {"runner_id": runner_id})


def goodbye(connection: Connection, runner_id: str, process: Process | None) -> None:
    """Remove a runner's row: that of one process, or of all that had the name."""
    named = process._asdict() if process else {"host": None, "pid": None, "pid_started": None}
    connection.execute(sql.GOODBYE, {"runner_id": runner_id, **named})


def stamp(connection: Connection) -> str:
    row = connection.execute(sql.GET_META, {"name": "stamp"}).fetchone()
    return row["value"] if row else ""


def put_stamp(connection: Connection, value: str) -> None:
    connection.execute(sql.PUT_META, {"name": "stamp", "value": value})
