"""A run is read once: then only what it has more, and all of it again when it does not go on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import Desk, desk
from tests.web.calling import ran

from hermes_workflows.core.receipts import Receipt
from hermes_workflows.errors import IntegrityError, NotFound
from hermes_workflows.store.ports import Head
from hermes_workflows.web.remembering import remembering


class Counted:
    """A ledger that says how much was read of it; `moved` runs do not go on from where they were."""

    def __init__(self, made: Desk) -> None:
        self._ledger = made.ledger
        self.receipts = 0
        self.moved = False

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        if since is not None and self.moved:
            raise IntegrityError(f"{run_id} was changed")
        head, found = self._ledger.read(run_id, since)
        self.receipts += len(found)
        return head, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path)
    made.start()
    for key in "abc":
        ran(made, key)
    return made


def test_what_was_read_is_not_read_again(made: Desk) -> None:
    counted: Any = Counted(made)
    ledger = remembering(counted)
    assert ledger.read("wf") == ledger.read("wf") == made.ledger.read("wf")
    assert counted.receipts == 4
    ran(made, "d")
    assert ledger.read("wf") == made.ledger.read("wf")
    assert counted.receipts == 5


def test_a_reader_cannot_change_what_the_next_one_is_told(made: Desk) -> None:
    ledger = remembering(made.ledger)
    ledger.read("wf")[1].clear()
    assert len(ledger.read("wf")[1]) == 4


def test_a_run_that_does_not_go_on_from_there_is_read_as_a_whole(made: Desk) -> None:
    counted: Any = Counted(made)
    ledger = remembering(counted)
    ledger.read("wf")
    counted.moved = True
    assert ledger.read("wf") == made.ledger.read("wf")
    assert counted.receipts == 8
    with pytest.raises(NotFound):
        ledger.read("gone")


def test_a_few_runs_are_remembered_and_those_that_were_read_last(made: Desk) -> None:
    runs = [made.start(f"r{number}") for number in range(5)]
    counted: Any = Counted(made)
    ledger = remembering(counted)
    for run in (*runs, runs[1]):
        ledger.read(run)
    assert counted.receipts == 5
    ledger.read(runs[0])
    assert counted.receipts == 6


def test_who_wants_a_run_to_stand_still_is_told_what_it_was(made: Desk) -> None:
    ledger = remembering(made.ledger, still=True)
    before = ledger.read("wf")
    ran(made, "d")
    assert ledger.read("wf") == before
