"""One file and many users of it: eight processes, four threads, a killed writer, and what a step costs them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.contract.queue_files import Files
from tests.contract.queues import (
    beat,
    call,
    calls,
    claim_until_empty,
    offer_for_ever,
    open_and_offer,
    run,
    spawn,
)

from hermes_workflows.store.queue_port import Change, Claim
from hermes_workflows.store.sqlite_queue import SqliteQueue


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    files = Files(tmp_path)
    yield files
    for queue in files.opened:
        queue.close()


# --- many processes ---------------------------------------------------------------------------------------------


def test_eight_processes_claim_four_hundred_rows_each_once(files: Files) -> None:
    keys = [f"k-{number}" for number in range(400)]
    files.open().apply(Change(offer=calls("big", *keys)), "ada")
    had = [name for names in spawn(claim_until_empty, files.path, 8).answers() for name in names]
    assert sorted(had) == sorted([f"big/{key}" for key in keys] + ["kept/"])


def test_eight_processes_that_open_a_missing_file_make_one(files: Files) -> None:
    made = spawn(open_and_offer, files.path, 8).answers()
    assert sum(made) == 1
    assert len(files.open().work()) == 80


def test_a_process_killed_while_it_writes_leaves_whole_transactions(files: Files) -> None:
    files.open().close()
    crew = spawn(offer_for_ever, files.path, 1)
    while crew.told.get(timeout=120) < 20:
        pass
    [process] = crew.processes
    process.kill()
    process.join()
    keys = [row.work.key for row in files.open().work("runner-0")]
    assert len(keys) >= 42
    assert sorted(key[2:] for key in keys if key[0] == "a") == sorted(key[2:] for key in keys if key[0] == "b")


def test_threads_share_one_handle(files: Files) -> None:
    queue = files.open()
    queue.apply(Change(offer=calls("big", *map(str, range(200)))), "ada")

    def work(runner: str) -> list[str]:
        had = []
        while leases := queue.apply(Change(claim=Claim(1)), runner):
            assert queue.renew(leases, 30.0) == {leases[0].token: "held"}
            queue.apply(Change(finish=leases), runner)
            had.append(leases[0].work.key)
        return had

    with ThreadPoolExecutor(4) as pool:
        had = [key for keys in pool.map(work, ("ada", "bob", "eve", "kim")) for key in keys]
    assert sorted(had) == sorted(["", *map(str, range(200))])


# --- what a step costs ------------------------------------------------------------------------------------------


def statements(queue: SqliteQueue, change: Change) -> list[str]:
    """The statements one `apply` sends, by their first words."""
    sent: list[str] = []
    connection = queue._database.connection  # type: ignore[union-attr]
    connection.set_trace_callback(lambda text: sent.append(" ".join(text.split()[:3])))
    queue.apply(change, "ada")
    connection.set_trace_callback(None)
    return sent


def test_a_step_is_one_transaction_of_a_fixed_number_of_statements(files: Files) -> None:
    shop = files.shop()
    shop.queue.heartbeat(beat("ada", shop.clock))
    shop.claim()
    for number in range(50):
        shop.offer(call("kept", f"open-{number}"))
    [name] = shop.claim(limit=1)
    # A run's first row is inserted; after each further receipt what has changed of it is updated.
    shop.queue.apply(Change(index=[run("kept", seq=6)]), "ada")
    change = Change(
        finish=[shop.leases[name]],
        offer=[call("kept", "next")],
        index=[run("kept", seq=7)],
        claim=Claim(1),
    )
    sent = statements(files.opened[0], change)
    assert sent[0].startswith("BEGIN IMMEDIATE")
    assert sent[-1] == "COMMIT"
    assert len(sent) == 10


def test_a_claim_of_nothing_reads_four_times_and_writes_nothing(files: Files) -> None:
    shop = files.shop()
    shop.claim()
    sent = statements(files.opened[0], Change(claim=Claim(4)))
    assert [text.split()[0] for text in sent] == ["BEGIN", *["SELECT"] * 4, "COMMIT"]
