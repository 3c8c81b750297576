"""What reading runs costs, counted: objects of git's, and statements of SQLite's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.ledgers import end_draft, git, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock

from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.index import rebuild, refresh_all
from hermes_workflows.store.sqlite_queue import SqliteQueue

STEPS = 20
# The run's commit, and the trees on the way to its receipts: the root, runs, the day, the run, its steps.
ON_THE_WAY = 6


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    """Three finished runs of twenty steps, packed."""
    with closing(open_git(tmp_path)) as made:
        for run_id in ("wf_a", "wf_b", "wf_c"):
            start(made, run_id)
            record(made, run_id, *(step_draft(f"step-{number}", run_id) for number in range(STEPS)))
            record(made, run_id, end_draft())
        git(made, "repack", "-adq")
        git(made, "pack-refs", "--all")
    with closing(open_git(tmp_path)) as cold:
        yield cold


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[SqliteQueue]:
    with closing(SqliteQueue.open(tmp_path / "q.db", clock=FrozenClock(), rebuild=lambda: ())) as opened:
        yield opened


def reads(ledger: GitLedger, work: Callable[[], object]) -> int:
    before = ledger.objects.reads
    work()
    return ledger.objects.reads - before


def test_a_history_is_each_receipt_once_and_the_way_to_them(ledger: GitLedger) -> None:
    assert reads(ledger, lambda: ledger.read("wf_b")) == STEPS + 2 + ON_THE_WAY


def test_the_next_receipts_of_a_run_do_not_cost_the_ones_before(ledger: GitLedger) -> None:
    tip = ledger.read("wf_b")[0].tip
    assert reads(ledger, lambda: ledger.read("wf_b", since=tip)) == 0


def test_a_rebuild_reads_each_receipt_once_and_no_way_twice(ledger: GitLedger, queue: SqliteQueue) -> None:
    # The listing has looked at each commit before; the one it looked at last is still known.
    assert reads(ledger, lambda: rebuild(ledger, queue)) == 3 * (STEPS + 2 + ON_THE_WAY) + 2


def test_comparing_reads_what_has_moved_and_nothing_of_what_stands(ledger: GitLedger, queue: SqliteQueue) -> None:
    rebuild(ledger, queue)
    assert reads(ledger, lambda: refresh_all(ledger, queue)) == 0
    with closing(open_git(ledger.path.parent)) as other:
        start(other, "wf_d")
    # What it is, and then its receipt.
    assert 0 < reads(ledger, lambda: refresh_all(ledger, queue)) <= ON_THE_WAY + 2
    assert queue.tips()["wf_d"].tip == ledger.read("wf_d")[0].tip


def test_a_rebuild_is_one_transaction_and_asks_for_no_single_row(ledger: GitLedger, queue: SqliteQueue) -> None:
    rebuild(ledger, queue)
    sent: list[str] = []
    connection = queue._database.connection  # type: ignore[union-attr]
    connection.set_trace_callback(lambda text: sent.append(text.split()[0]))
    rebuild(ledger, queue)
    connection.set_trace_callback(None)
    assert sent == ["SELECT", "BEGIN", *3 * ["UPDATE"], *6 * ["DELETE"], "SELECT", "COMMIT"]
