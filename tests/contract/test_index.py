"""From receipts to rows: whatever order things are heard of in, the index says what the receipts say."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from tests.contract.ledgers import end_draft, git, open_git, record, request_draft, response_draft, start, step_draft
from tests.contract.queues import FrozenClock, Shop, workflow

from hermes_workflows.core.receipts import Receipt
from hermes_workflows.errors import IntegrityError, TemporarilyLocked
from hermes_workflows.store.index import (
    Refreshed,
    Share,
    all_indexed,
    alone,
    grown,
    rebuild,
    refresh,
    refresh_all,
    review_rows,
    whole,
)
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Head, Ledger
from hermes_workflows.store.queue_port import Change, Indexed, ReviewRow
from hermes_workflows.store.sqlite_queue import SqliteQueue

NOON = "2026-11-29T12:00:00.000Z"

P = TypeVar("P")
R = TypeVar("R")


class Ledgers(MemoryLedger):
    """A memory ledger that counts listings, and some of whose runs cannot be read."""

    def __init__(self) -> None:
        super().__init__(home="home")
        self.listings = 0
        self.broken: set[str] = set()
        self.locked = False

    def heads(self, known: Mapping[str, str] | None = None) -> Iterator[Head]:
        self.listings += 1
        return super().heads(known)

    def at(self, commit: str) -> tuple[Head, list[Receipt]]:
        found = super().at(commit)
        return self.read(found[0].run_id) if found[0].run_id in self.broken else found

    def put_back(self, run_id: str, tip: str) -> bool:
        if self.locked:
            raise TemporarilyLocked(f"{run_id} is being written")
        return super().put_back(run_id, tip)

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        if run_id in self.broken:
            raise IntegrityError(f"{run_id}: steps/a.json is not a receipt")
        return super().read(run_id, since)


@pytest.fixture
def ledger() -> Ledgers:
    return Ledgers()


@pytest.fixture
def shop() -> Shop:
    clock = FrozenClock()
    queue = MemoryQueue(clock=clock)
    return Shop(queue, clock, queue.reopen)


def reviewed(ledger: Ledger, run_id: str, *, answered: bool) -> None:
    start(ledger, run_id)
    record(ledger, run_id, step_draft("a", {"n": 1}, usage={"input_tokens": 3, "cost_usd": 0.5}))
    asked = request_draft("ok")
    record(ledger, run_id, asked)
    if answered:
        record(ledger, run_id, response_draft("ok", asked))


# --- one run ----------------------------------------------------------------------------------------------------


def test_a_run_nobody_indexed_gets_its_row_and_is_woken(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    found = refresh(ledger, shop.queue, "r")
    assert found == shop.queue.indexed("r") == whole(*ledger.read("r"))
    assert [row.work for row in shop.queue.work()] == [workflow("r")]


def test_a_run_that_has_not_moved_is_left_alone(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh(ledger, shop.queue, "r")
    other = shop.another()
    assert refresh(ledger, shop.queue, "r") == shop.queue.indexed("r")
    assert not other.changed()


def test_a_row_that_grew_is_the_row_of_all_receipts(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh(ledger, shop.queue, "r")
    asked = request_draft("ok")
    for draft in (step_draft("a", {"n": 1}), asked, response_draft("ok", asked), step_draft("b"), end_draft()):
        record(ledger, "r", draft)
        refresh(ledger, shop.queue, "r")
    expected = whole(*ledger.read("r"))
    found = shop.queue.indexed("r")
    assert found is not None
    assert found.summary == expected.summary
    assert (found.tip, found.folder) == (expected.tip, expected.folder)


def test_a_moved_run_is_woken_again(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh(ledger, shop.queue, "r")
    shop.claim()
    shop.finish("r/")
    record(ledger, "r", step_draft("a"))
    refresh(ledger, shop.queue, "r")
    assert shop.claim() == ["r/"]


def test_an_ended_run_is_not_woken(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    record(ledger, "r", end_draft(output={"n": 1}))
    found = refresh(ledger, shop.queue, "r")
    assert found is not None
    assert (found.summary.status, found.summary.result) == ("completed", {"n": 1})
    assert shop.queue.work() == []


def test_a_run_of_another_workspace_is_shown_but_not_woken(shop: Shop) -> None:
    elsewhere = MemoryLedger(home="elsewhere")
    start(elsewhere, "r")
    refresh(elsewhere, shop.queue, "r")
    assert shop.queue.indexed("r") is not None
    assert shop.queue.work() == []


def test_a_run_whose_ref_vanished_is_forgotten(ledger: Ledgers, shop: Shop) -> None:
    reviewed(ledger, "r", answered=False)
    refresh(ledger, shop.queue, "r")
    shop.stick("r")
    assert refresh(MemoryLedger(), shop.queue, "r") is None
    queue = shop.queue
    assert (queue.indexed("r"), queue.work(), queue.reviews(), queue.stuck("r")) == (None, [], [], [])


def test_a_ref_that_was_put_back_takes_the_row_back(ledger: Ledgers, shop: Shop) -> None:
    reviewed(ledger, "r", answered=True)
    refresh(ledger, shop.queue, "r")
    restored = Ledgers()
    start(restored, "r")
    refresh(restored, shop.queue, "r")
    assert shop.queue.indexed("r") == whole(*restored.read("r"))
    assert shop.queue.reviews() == []


def test_a_history_that_was_exchanged_is_read_whole(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    record(ledger, "r", step_draft("a"))
    refresh(ledger, shop.queue, "r")
    other = Ledgers()
    start(other, "r")
    asked = request_draft("ok")
    record(other, "r", asked)
    record(other, "r", response_draft("ok", asked))
    refresh(other, shop.queue, "r")
    found = shop.queue.indexed("r")
    assert found is not None
    assert found.summary == whole(*other.read("r")).summary


def test_a_run_that_was_sealed_says_so(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    record(ledger, "r", end_draft())
    refresh(ledger, shop.queue, "r")
    ledger.seal(keep=0)
    found = refresh(ledger, shop.queue, "r")
    assert found is not None
    assert found.sealed
    assert shop.queue.indexed("r") == found


def test_an_unreadable_run_raises_and_changes_nothing(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    ledger.broken = {"r"}
    with pytest.raises(IntegrityError, match="not a receipt"):
        refresh(ledger, shop.queue, "r")
    assert shop.queue.indexed("r") is None


# --- reviews ----------------------------------------------------------------------------------------------------


def test_a_review_row_says_what_its_two_receipts_say(ledger: Ledgers) -> None:
    reviewed(ledger, "r", answered=True)
    _, receipts = ledger.read("r")
    asked, answered = review_rows("r", receipts)
    assert asked == ReviewRow("r", "ok", "open", "Ship it?", requested_at=NOON)
    assert answered == ReviewRow(
        run_id="r",
        key="ok",
        status="completed",
        answered_at=NOON,
        answer="yes",
        provenance={"kind": "human", "by": "ada", "channel": "cli", "verified": "none"},
    )


def test_an_answer_heard_of_later_or_earlier_makes_the_same_row(ledger: Ledgers, shop: Shop) -> None:
    reviewed(ledger, "r", answered=True)
    head, receipts = ledger.read("r")
    asked, answered = whole(head, receipts[:3]), grown(whole(head, receipts[:3]), head, receipts[3:])
    rows = []
    for order in ((asked, answered), (answered, asked)):
        queue = MemoryQueue(clock=shop.clock)
        for indexed in order:
            queue.apply(Change(index=[indexed]), "ada")
        rows.append(queue.reviews())
    assert rows[0] == rows[1]
    assert [(row.status, row.prompt, row.answer) for row in rows[0]] == [("completed", "Ship it?", "yes")]


# --- all runs ---------------------------------------------------------------------------------------------------


def test_all_rows_are_brought_up_to_date_and_vanished_runs_forgotten(ledger: Ledgers, shop: Shop) -> None:
    old = MemoryLedger()
    start(old, "gone")
    refresh(old, shop.queue, "gone")
    start(ledger, "r")
    start(ledger, "s")
    refresh(ledger, shop.queue, "s")
    assert refresh_all(ledger, shop.queue) == Refreshed(changed=2)
    assert sorted(shop.queue.tips()) == ["r", "s"]
    assert refresh_all(ledger, shop.queue) == Refreshed(changed=0)


def test_nothing_is_read_while_no_ref_has_moved(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh_all(ledger, shop.queue, "stamp 1")
    refresh_all(ledger, shop.queue, "stamp 1")
    assert ledger.listings == 1
    refresh_all(ledger, shop.queue, "stamp 2")
    assert ledger.listings == 2


def test_a_run_that_cannot_be_read_is_named_and_looked_at_again(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    start(ledger, "s")
    ledger.broken = {"r"}
    found = refresh_all(ledger, shop.queue, "stamp")
    assert found.unreadable == {"r": "r: steps/a.json is not a receipt"}
    assert [*shop.queue.tips()] == ["s"]
    ledger.broken = set()
    assert refresh_all(ledger, shop.queue, "stamp") == Refreshed(changed=1)


def test_a_run_that_cannot_be_read_gets_no_row_of_a_new_file(ledger: Ledgers) -> None:
    start(ledger, "r")
    start(ledger, "s")
    ledger.broken = {"r"}
    assert [row.summary.run_id for row in all_indexed(ledger)] == ["s"]


def test_where_nothing_can_be_put_back_the_ledger_is_read(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh(ledger, shop.queue, "r")
    record(ledger, "r", step_draft("a"))
    ledger.locked = True
    found = refresh(ledger, shop.queue, "r")
    assert found is not None
    assert found.summary.seq == 1


def test_a_row_that_is_newer_than_the_listing_stays(
    ledger: Ledgers, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else records and indexes a receipt after the runs were listed."""
    start(ledger, "r")
    asked = shop.queue.indexed

    def indexed(run_id: str) -> Indexed | None:
        monkeypatch.setattr(shop.queue, "indexed", asked)
        record(ledger, "r", step_draft("a"))
        refresh(ledger, shop.queue, "r")
        return asked(run_id)

    monkeypatch.setattr(shop.queue, "indexed", indexed)
    refresh_all(ledger, shop.queue)
    found = shop.queue.indexed("r")
    assert found == replace(whole(*ledger.read("r")), reviews=())


def test_a_rebuild_mends_rows(ledger: Ledgers, shop: Shop) -> None:
    reviewed(ledger, "r", answered=False)
    found = refresh(ledger, shop.queue, "r")
    assert found is not None
    shop.put(replace(found, folder="elsewhere", summary=replace(found.summary, status="failed", seq=99)))
    rebuild(ledger, shop.queue)
    assert shop.queue.indexed("r") == replace(found, reviews=())
    assert [row.status for row in shop.queue.reviews()] == ["open"]


def handed_over(work: Callable[[P], R], parts: Sequence[P], carry: Callable[[R], R]) -> Iterator[R]:
    """As when another process has done all of it."""
    for part in parts:
        yield pickle.loads(pickle.dumps(carry(work(part))))


def told(ledger: Ledgers, path: Path, share: Share) -> list[object]:
    """What a new index says whose rows came that way, and of which runs there are none."""
    rows = list(all_indexed(ledger, share))
    with closing(SqliteQueue.open(path, clock=FrozenClock(), rebuild=lambda: rows, home="home")) as queue:
        assert share is alone or not any("summary" in vars(row) for row in rows), "none is taken apart to be put there"
        work = sorted(row.work.run_id for row in queue.work())
        new = [queue.list_indexed(), queue.reviews(), queue.tips(), work, [row.summary for row in rows]]
        again = rebuild(ledger, queue, share)
        assert [queue.list_indexed(), queue.reviews(), queue.tips()] == new[:3]
        return [*new, again]


def test_rows_that_another_process_has_made_say_the_same_and_queue_the_same_work(
    ledger: Ledgers, tmp_path: Path
) -> None:
    reviewed(ledger, "asks", answered=False)
    reviewed(ledger, "goes-on", answered=True)
    reviewed(ledger, "over", answered=False)
    record(ledger, "over", end_draft("failed"))
    start(ledger, "damaged")
    ledger.broken = {"damaged"}
    several, one = told(ledger, tmp_path / "several", handed_over), told(ledger, tmp_path / "one", alone)
    assert several == one
    assert one[3] == ["asks", "goes-on"]
    assert one[-1] == Refreshed(3, {"damaged": "damaged: steps/a.json is not a receipt"})


def test_a_rebuild_gives_no_run_the_row_of_another_one(tmp_path: Path, shop: Shop) -> None:
    with closing(open_git(tmp_path)) as ledger:
        for run_id in ("wf_a", "wf_b"):
            start(ledger, run_id)
        git(ledger, "update-ref", "refs/runs/wf_b", "refs/runs/wf_a")
        again = open_git(tmp_path)
        assert list(rebuild(again, shop.queue).unreadable) == ["wf_b"]
        assert shop.queue.matching("wf_") == ["wf_a"]
        again.close()


def test_a_rebuild_leaves_leases_alone(ledger: Ledgers, shop: Shop) -> None:
    start(ledger, "r")
    refresh(ledger, shop.queue, "r")
    shop.claim()
    rebuild(ledger, shop.queue)
    assert shop.renew("r/") == "held"


def test_a_deleted_file_is_made_again_with_the_same_status_results_and_reviews(tmp_path: Path) -> None:
    ledger, path, clock = open_git(tmp_path), tmp_path / "workflows.sqlite", FrozenClock()
    with closing(SqliteQueue.open(path, clock=clock, rebuild=lambda: all_indexed(ledger))) as queue:
        reviewed(ledger, "open", answered=False)
        reviewed(ledger, "answered", answered=True)
        reviewed(ledger, "ended", answered=False)
        record(ledger, "ended", end_draft("failed"))
        refresh_all(ledger, queue)
        before = (queue.list_indexed(), queue.reviews())
        assert len(before[0]) == 3
        for file in tmp_path.glob("workflows.sqlite*"):
            file.unlink()
        assert (queue.list_indexed(), queue.reviews()) == before
        assert sorted(row.work.run_id for row in queue.work()) == ["answered", "open"]
