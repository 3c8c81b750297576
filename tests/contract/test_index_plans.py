"""What SQLite reads to answer: with 100,000 runs in the file, to read every row is to make people wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.contract.queues import run

from hermes_workflows.store import index_table, sql, tables
from hermes_workflows.store.wanted import LIVING, Wanted, WantedReviews

NEWEST = ("2026-11-29T12:00:00.000Z", "r")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.row_factory = sqlite3.Row
        made.executescript(tables.SCHEMA)
        yield made


def plan(connection: sqlite3.Connection, statement: str, **values: Any) -> str:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
    return "; ".join(row["detail"] for row in rows)


def listing(connection: sqlite3.Connection, wanted: Wanted) -> str:
    statement, values = sql.wanted(sql.RUNS, wanted)
    return plan(connection, statement, **values, limit=50, offset=0)


def test_runs_that_no_row_would_move_are_looked_for_among_the_unfinished_ones(connection: sqlite3.Connection) -> None:
    read = plan(connection, sql.UNQUEUED)
    assert "SEARCH runs USING INDEX runs_by_status" in read
    assert "SCAN" not in read


def test_the_open_questions_of_ended_runs_are_found_among_their_own(connection: sqlite3.Connection) -> None:
    assert "SEARCH reviews USING PRIMARY KEY (run_id=?)" in plan(connection, sql.OPEN_REVIEWS, run_ids='["r"]')


@pytest.mark.parametrize(
    ("wanted", "read"),
    [
        (Wanted(), "SCAN runs USING COVERING INDEX runs_newest"),
        (Wanted(older=NEWEST), "SEARCH runs USING COVERING INDEX runs_newest"),
        (Wanted(text="two words"), "SCAN runs USING COVERING INDEX runs_newest"),
        (Wanted(("failed",), "flow", "r", "word"), "SCAN runs USING COVERING INDEX runs_newest"),
        (Wanted(("failed",)), "SEARCH runs USING COVERING INDEX runs_by_status"),
        (Wanted(workflow="flow"), "SEARCH runs USING COVERING INDEX runs_by_workflow"),
        (Wanted(("failed",), "flow"), "SEARCH runs USING COVERING INDEX runs_by_workflow"),
        (Wanted(source="r"), "SEARCH runs USING COVERING INDEX runs_by_source"),
    ],
)
def test_a_list_reads_one_index_and_only_the_rows_that_it_shows(
    connection: sqlite3.Connection, wanted: Wanted, read: str
) -> None:
    found = listing(connection, wanted)
    assert read in found
    # The rows themselves are read by id alone, after the index has said which.
    assert found.startswith("SEARCH runs USING INDEX sqlite_autoindex_runs_1")


def test_runs_that_have_not_ended_are_found_without_reading_a_row(connection: sqlite3.Connection) -> None:
    assert "COVERING INDEX runs_" in listing(connection, Wanted(LIVING))


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (WantedReviews(), "SCAN reviews USING COVERING INDEX reviews_in_order"),
        (WantedReviews("open"), "SEARCH reviews USING COVERING INDEX reviews_by_status"),
        (WantedReviews("completed", "flow", "ana"), "SEARCH reviews USING COVERING INDEX reviews_by_status"),
    ],
)
def test_a_page_of_the_inbox_reads_only_the_questions_that_it_shows(
    connection: sqlite3.Connection, wanted: WantedReviews, index: str
) -> None:
    given = wanted._asdict()
    for statement in (sql.INBOX, sql.COUNT_REVIEWS):
        found = plan(connection, sql.narrowed(statement, **given), **given, limit=9, offset=0)
        assert index in found
    assert "SEARCH reviews USING PRIMARY KEY" in plan(
        connection, sql.narrowed(sql.INBOX, **given), **given, limit=9, offset=0
    )
    assert "COVERING INDEX reviews_by_status" in plan(connection, sql.OPEN_QUESTIONS)


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (sql.STARTED_FROM, {"run_id": "r"}, "SEARCH runs USING COVERING INDEX runs_by_source"),
        (sql.COUNTS, {}, "COVERING INDEX runs_by_workflow"),
        (sql.LATELY, {"workflow": "flow", "limit": 9}, "SEARCH runs USING INDEX runs_by_workflow"),
        (sql.RUN, {"run_id": "r"}, "SEARCH runs"),
        (sql.RUN_IDS_FROM, {**sql.from_prefix("r"), "limit": 9}, "SEARCH runs"),
    ],
)
def test_every_other_question_has_an_index(
    connection: sqlite3.Connection, statement: str, values: dict[str, Any], index: str
) -> None:
    found = plan(connection, statement, **values)
    assert index in found
    assert "TEMP B-TREE" not in found


def test_a_receipt_that_changes_nothing_one_looks_for_writes_to_no_index(connection: sqlite3.Connection) -> None:
    index_table.put(connection, [run("r", given="tea")])
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    index_table.put(connection, [run("r", seq=1, tip="t1", given="tea")])
    assert len(seen) == 1
    index_table.put(connection, [run("r", seq=2, status="failed", given="tea")])
    assert any("INSERT INTO runs" in statement for statement in seen)
    values = dict.fromkeys(("run_id", "seq", "tip", "folder", "sealed", "summary", "waiting_on", "status", "text"))
    values |= dict.fromkeys(("workflow", "started_at", "source"))
    assert "SEARCH runs USING INDEX sqlite_autoindex_runs_1" in plan(connection, sql.PUT_RUN_AGAIN, **values)
