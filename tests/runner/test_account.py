"""What a run's receipts come to is the same, whenever somebody asks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.contract.ledgers import end_draft, request_draft, run_draft, step_draft

from hermes_workflows.core.readme import outline_of, render
from hermes_workflows.core.receipts import Draft, Receipt
from hermes_workflows.core.summary import summarize
from hermes_workflows.runner import account
from hermes_workflows.runner.account import Account

STEPS = [step_draft(f"s{n}", n) for n in range(7)]
DRAFTS = [run_draft(), *STEPS, request_draft("ok"), *(step_draft(f"t{n}") for n in range(3))]


def receipts(drafts: Sequence[Draft] = DRAFTS) -> list[Receipt]:
    return [draft.receipt.at(seq) for seq, draft in enumerate(drafts)]


@pytest.mark.parametrize("asked_after", [{1}, {3, 4}, {9}, set(range(20)), set()], ids=str)
def test_it_comes_to_the_same_whenever_it_is_asked_for(asked_after: set[int]) -> None:
    made = Account("wf_a")
    for seq, receipt in enumerate(receipts()):
        made.add([receipt])
        if seq in asked_after:
            assert made.summary == summarize("wf_a", receipts()[: seq + 1])
    end = receipts([*DRAFTS, end_draft()])[-1]
    told = [each for each in receipts() if each.kind in ("run", "review")]
    whole = [*receipts(), end]
    assert made.readme([end]) == render(summarize("wf_a", whole), [*told, end], outline_of(whole))
    assert made.summary == summarize("wf_a", receipts())
    assert [each.key for each in made.reviews] == ["ok"]


def test_what_no_result_of_a_call_says_is_known_at_once() -> None:
    made = Account("wf_a")
    made.add(receipts([run_draft(), *STEPS]))
    assert not made.ended
    made.add(receipts([run_draft(), *STEPS, end_draft()])[-1:])
    assert made.ended


def test_results_that_nobody_asks_for_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_MOST_WAITING", 5)
    made = Account("wf_a")
    for receipt in receipts():
        made.add([receipt])
        assert len(made._waiting) <= 5
