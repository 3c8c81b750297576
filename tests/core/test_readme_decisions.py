"""The README of a run says what people decided about it, as what they decided it, and lists its files."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.test_artifacts import ONE, receipt
from tests.core.test_readme import MOMENT, receipts

from hermes_workflows.core import layout
from hermes_workflows.core.readme import render, tells
from hermes_workflows.core.receipts import CallReceipt, ControlReceipt, Execution, Provenance, Receipt
from hermes_workflows.core.summary import summarize


def decided(status: Any, request: dict[str, Any], kind: Any = "manual") -> ControlReceipt:
    given = Provenance(kind=kind, by="ana", channel="cli")
    return ControlReceipt(
        path=layout.control(1, status), key="pay", status=status, request=request,
        execution=Execution(seq=2, finished_at=MOMENT, provenance=given),
    )  # fmt: skip


def text(*more: Receipt) -> str:
    told = [*receipts(end=False), *more]
    assert all(tells(each) for each in told)
    return render(summarize("wf", told), told).decode()


RESOLVED = {"key": "pay", "decision": "did-not-happen", "why": "the bank says so"}


def test_a_decision_about_an_interrupted_step_says_who_made_it_and_why() -> None:
    said = "said manually, not verified as a person: `ana` through `cli`: `the bank says so`"
    assert f"- Step `pay` was interrupted and did not happen, {said}\n" in text(decided("resolve", RESOLVED))


@pytest.mark.parametrize("kind", ["agent", "manual", "test", "policy"])
def test_only_a_human_decision_reads_as_a_persons(kind: str) -> None:
    assert "said the person `ana`" in text(decided("resolve", RESOLVED, "human"))
    assert "said the person" not in text(decided("resolve", RESOLVED, kind))


def test_an_answer_that_was_kept_for_another_question_is_not_shown_as_given_for_it() -> None:
    accepted = {"accepted": [{"key": "ok", "kind": "review", "recorded": "f", "present": "g"}], "why": "same"}
    told = [*receipts("human"), decided("accept", accepted)]
    shown = render(summarize("wf", told), told).decode()
    assert "through `cli`, to the question as it was then; kept for another one\n" in shown
    assert "- Recorded answers kept for changed requests: review `ok`, said manually" in shown


def test_a_result_that_came_after_the_decision_is_named() -> None:
    late = CallReceipt(
        path=layout.late("pay", 1), kind="step", key="pay", status="completed", fingerprint="f", request={}, output=1
    )
    assert "- A result of `pay` came after the decision: `steps/pay.late-1.json`\n" in text(late)


def test_artifacts_are_listed_with_a_link_to_their_content() -> None:
    shown = text(receipt("r", "r`](x).md", ONE))
    assert f"- Artifact ``r`](x).md``: 3 bytes, `text/plain`, [a1b2c3000000](artifacts/a1/{ONE})\n" in shown
    assert "- and 2 more artifacts\n" in text(*(receipt(f"r{number}", "r.md", ONE) for number in range(52)))
