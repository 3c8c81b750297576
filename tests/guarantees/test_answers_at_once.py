"""Linearizable answers: of two people who answer at once one counts, and whoever looks afterwards sees that one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from tests.contract.ledgers import NOON, TickingClock, record, request_draft, start
from tests.guarantees.turns import Turns, every

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Provenance, Receipt
from hermes_workflows.core.redaction import Redactor
from hermes_workflows.errors import AlreadyAnswered
from hermes_workflows.review.answer import Answer, answer
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry, Head, Outcome

PEOPLE = ("ana", "bo")


class HeldLedger(GitLedger):
    """Of one person; `told` is what everybody's answers came to, and `known` what it was when this one last looked."""

    turns: Turns
    told: dict[str, str]
    known: frozenset[str]

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.turns.before("append")
        return super().append(entries)

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        self.turns.before("look")
        self.known = frozenset(self.told.values())
        return super().read(run_id, since)


def held(folder: Path, turns: Turns, bursts: bool) -> HeldLedger:
    settings = {"create": True, "clock": TickingClock(), "durability": "process", "committer": "runner"}
    ledger = HeldLedger.open(folder / "workflows.git", bursts=bursts, **settings)  # type: ignore[arg-type]
    assert isinstance(ledger, HeldLedger)
    ledger.turns = turns
    return ledger


def said(ledger: HeldLedger, run_id: str, by: str) -> None:
    given = Answer(run_id, "ok", f"{by}'s", Provenance(kind="manual", by=by, channel="cli"), NOON)
    try:
        response = answer(ledger, given, ledger.read(run_id)[1], Redactor()).response
        assert response is not None
        ledger.told[by] = str(response.output)
    except AlreadyAnswered as error:
        ledger.told[by] = next(f"{each}'s" for each in PEOPLE if f"answered by {each} " in error.message)


def looked(ledger: HeldLedger, run_id: str) -> None:
    seen = frozenset[str]()
    for _ in range(2):
        receipts = ledger.read(run_id)[1]
        found = frozenset(str(each.output) for each in receipts if each.path == layout.response("ok"))
        # What somebody was told before the look began, and what was seen once, is seen.
        assert found >= ledger.known | seen
        seen = found


@pytest.mark.parametrize("bursts", [False, True], ids=["one by one", "in bursts"])
def test_in_every_order_of_two_answers_and_two_looks_one_counts_and_is_seen(tmp_path: Path, bursts: bool) -> None:
    turns, orders, winners = Turns(), 0, set()
    with closing(turns), ExitStack() as opened:
        ledgers = {name: opened.enter_context(closing(held(tmp_path, turns, bursts))) for name in (*PEOPLE, "cyd")}
        for choose in every():
            orders += 1
            run_id, told = f"wf{orders}", dict[str, str]()
            start(ledgers["ana"], run_id)
            record(ledgers["ana"], run_id, request_draft("ok"))
            for ledger in ledgers.values():
                ledger.told = told
            acts = {name: partial(said, ledgers[name], run_id, name) for name in PEOPLE}
            turns.play({**acts, "cyd": partial(looked, ledgers["cyd"], run_id)}, choose)
            assert told["ana"] == told["bo"]
            winners.add(told["ana"])
    assert orders >= 60
    assert winners == {"ana's", "bo's"}
