"""Work that is queued stays queued, whatever whoever brings the index up to date believes to see meanwhile.

A runner that has a run's body offers a timer once, and waits for the row that it becomes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.contract.ledgers import git, impatient, open_git, record, start, step_draft
from tests.contract.queues import FrozenClock, Shop, call, open_shop
from tests.contract.test_index import Ledgers

from hermes_workflows.errors import IntegrityError, StoreFailure
from hermes_workflows.store import ahead, awaited
from hermes_workflows.store.burst import Burst
from hermes_workflows.store.index import all_indexed, rebuild, refresh, refresh_all, whole
from hermes_workflows.store.ports import Head
from hermes_workflows.store.queue_port import Change
from hermes_workflows.store.sqlite_queue import SqliteQueue

LOOKS: dict[str, Callable[[Any, Any], Any]] = {
    "one run": lambda ledger, queue: refresh(ledger, queue, "wf_a"),
    "all runs": refresh_all,
    "all again": rebuild,
}


class Unlisted(Ledgers):
    """Its listings have no run; asked for by its name, a run is there or damaged."""

    damaged = False

    def heads(self, known: Mapping[str, str] | None = None) -> Iterator[Head]:
        return iter(())

    def head(self, run_id: str) -> Head | None:
        if self.damaged:
            raise IntegrityError(f"refs/runs/{run_id} holds no commit id")
        return super().head(run_id)


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(request.param, tmp_path) as shop:
        yield shop


@pytest.mark.parametrize("and_git", ["has none of it", "has its objects", "has lost the ref"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_who_cannot_see_the_end_of_a_burst_takes_nothing_from_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[Any, Any], Any], and_git: str
) -> None:
    """Its writer is suspended, or its disk is full: git lacks what the row says, and readers leave."""
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    monkeypatch.setattr(awaited, "_READERS_WAIT", 0.0)
    monkeypatch.setattr(Burst, "is_wanted", False)
    slept: list[float] = []
    patience = impatient(sleep=slept.append, monotonic=lambda: sum(slept))
    writer, reader = open_git(tmp_path, bursts=True, patience=impatient()), open_git(tmp_path, patience=patience)
    start(writer)
    path = tmp_path / "workflows.sqlite"
    with closing(
        SqliteQueue.open(path, clock=FrozenClock(), rebuild=lambda: all_indexed(writer), home=writer.home)
    ) as queue:
        for n in range(3):
            record(writer, "wf_a", step_draft(f"s{n}"))
        row = whole(*writer.read("wf_a"))
        queue.apply(Change(index=[row], offer=[call("wf_a", "sleep", "timer")]), "ada")
        if and_git == "has its objects":
            with monkeypatch.context() as disk:
                disk.setattr(writer._refs, "move", full)
                with pytest.raises(StoreFailure, match="No space"):
                    writer.land()
        elif and_git == "has lost the ref":
            git(writer, "update-ref", "-d", "refs/runs/wf_a")
        head = reader.head("wf_a")
        assert (head and head.tip) != row.tip, "the reader does not see it"
        look(reader, queue)
        assert queue.indexed("wf_a") == row
        assert "sleep" in [each.work.key for each in queue.work("wf_a")]
        assert sum(slept) < patience.ours, "it does not wait as one who writes, nor takes the burst by force"
        writer.land()
        look(reader, queue)
        assert queue.indexed("wf_a") == row


def full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("damaged", [False, True])
def test_a_run_that_is_missing_in_a_listing_is_asked_for_by_its_name(shop: Shop, damaged: bool) -> None:
    """Refs move while they are listed, and one that cannot be read is not gone."""
    ledger = Unlisted()
    start(ledger, "wf_a")
    refresh(ledger, shop.queue, "wf_a")
    shop.offer(call("wf_a", "sleep"))
    ledger.damaged = damaged
    refresh_all(ledger, shop.queue)
    assert shop.queue.indexed("wf_a") is not None
    assert shop.status() == {"wf_a/": "queued", "wf_a/sleep": "queued"}


def test_a_run_that_goes_on_while_all_are_read_again_keeps_its_work(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledgers()
    start(ledger, "wf_a")
    refresh(ledger, shop.queue, "wf_a")
    heads = ledger.heads

    def listed(known: Mapping[str, str] | None = None) -> Iterator[Head]:
        found = list(heads(known))
        record(ledger, "wf_a", step_draft("a"))
        refresh(ledger, shop.queue, "wf_a")
        shop.offer(call("wf_a", "sleep"))
        return iter(found)

    monkeypatch.setattr(ledger, "heads", listed)
    rebuild(ledger, shop.queue)
    found = shop.queue.indexed("wf_a")
    assert found is not None
    assert found.tip == whole(*ledger.read("wf_a")).tip
    assert shop.status() == {"wf_a/": "queued", "wf_a/sleep": "queued"}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_run_that_stands_further_back_keeps_its_work(shop: Shop, look: Callable[[Any, Any], Any]) -> None:
    """A backup was restored. What nobody wants any more is seen when it is served."""
    newer, restored = Ledgers(), Ledgers()
    start(newer, "wf_a")
    record(newer, "wf_a", step_draft("a"))
    refresh(newer, shop.queue, "wf_a")
    shop.claim()
    shop.offer(call("wf_a", "sleep"))
    shop.stick("wf_a")
    start(restored, "wf_a")
    look(restored, shop.queue)
    found = shop.queue.indexed("wf_a")
    assert found is not None
    assert found.summary.seq == 0
    assert shop.renew("wf_a/") == "held"
    assert (shop.status(), shop.queue.stuck()) == ({"wf_a/": "leased", "wf_a/sleep": "queued"}, [])
