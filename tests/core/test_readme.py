"""The README of a run: short, true about who answered, and inert whatever people and agents wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.markdown import code_span
from hermes_workflows.core.readme import render
from hermes_workflows.core.receipts import (
    ControlReceipt,
    Execution,
    Provenance,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunEnded,
    RunRequest,
    RunStarted,
)
from hermes_workflows.core.summary import summarize
from hermes_workflows.core.told_people import given_by

MOMENT = datetime(2026, 11, 29, 10, tzinfo=UTC)


def receipts(kind: Any = "human", prompt: str = "Ship it?", end: bool = True) -> list[Receipt]:
    given = Provenance(kind=kind, by="you", channel="cli", message_id="demo-1")
    question = ReviewRequest(prompt=prompt, returns={})
    made: list[Receipt] = [
        RunStarted(
            path=layout.RUN,
            key="",
            request=RunRequest(workflow="pkg:launch", input={"topic": "docs"}),
            execution=Execution(started_at=MOMENT),
        ),
        ReviewReceipt(
            path=layout.request("ok"),
            key="ok",
            status="requested",
            fingerprint="f",
            request=question,
            execution=Execution(seq=1),
        ),
    ]
    if end:
        made += [
            ReviewReceipt(
                path=layout.response("ok"),
                key="ok",
                status="completed",
                fingerprint="f",
                output={"action": "approve"},
                execution=Execution(seq=2, finished_at=MOMENT, provenance=given),
            ),
            RunEnded(
                path=layout.RESULT,
                key="",
                status="completed",
                output={"url": "x"},
                execution=Execution(seq=3, finished_at=MOMENT),
            ),
        ]
    return made


def text(*args: Any, **kwargs: Any) -> str:
    return render(summarize("wf_launch", receipts(*args, **kwargs)), receipts(*args, **kwargs)).decode()


def test_it_says_what_was_run_and_how_it_ended() -> None:
    shown = text()
    assert shown.startswith("# Run `wf_launch`: completed\n")
    for part in ("`pkg:launch`", '`{"topic": "docs"}`', '`{"url": "x"}`', "git diff main runs/wf_launch"):
        assert part in shown
    assert shown.index("## What ran") < shown.index("## Questions") < shown.index("## How to go on")


def test_an_open_question_is_shown_before_the_end() -> None:
    assert "- Waiting on an answer to `ok`: `Ship it?`" in text(end=False)


@pytest.mark.parametrize("kind", ["agent", "manual", "test", "policy"])
def test_only_a_human_answer_reads_as_a_persons(kind: str) -> None:
    shown = text(kind)
    assert "answered by the person" not in shown
    assert "not a" in shown
    assert "answered by the person `you`" in text("human")


@pytest.mark.parametrize(
    "hostile",
    [
        "a ``` b `` c",
        "``",
        "@team fixes #123 <script>",
        "one\n\n# two\r\n- three",
        "::set-output::x",
        "[a](b)",
        " ",
        "",
    ],
)
def test_foreign_text_stays_inside_its_code_span(hostile: str) -> None:
    span = code_span(hostile)
    ticks = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(ticks)
    inside = span[len(ticks) : -len(ticks)]
    assert ticks not in inside.strip()
    assert "\n" not in span
    assert not inside.startswith("`")
    assert not inside.endswith("`")


def test_long_text_is_cut() -> None:
    assert len(code_span("x" * 100_000)) < 250
    assert len(text(prompt="y" * 100_000, end=False)) < 6_000


def expired(output: Any, by: Provenance | None) -> str:
    response = ReviewReceipt(
        path=layout.response("ok"),
        key="ok",
        status="expired",
        fingerprint="f",
        output=output,
        execution=Execution(seq=2, finished_at=MOMENT, provenance=by),
    )
    made = [*receipts(end=False), response]
    return render(summarize("wf_launch", made), made).decode()


def test_an_expired_question_tells_what_its_rule_said() -> None:
    rule = Provenance(kind="policy", by="expiry rule", channel="runner")
    for default, shown in ((True, "true"), (None, "null")):
        assert f"- Review `ok`: expired; default `{shown}` by rule\n" in expired(default, rule)
    assert "- Review `ok`: expired without an answer\n" in expired(None, None)


@pytest.mark.parametrize(
    ("reason", "by", "shown"),
    [
        ("a *typo*", ("human", "ana"), "- Cancelled: `a *typo*`, said the person `ana`\n"),
        ("stop", ("agent", "bot"), "- Cancelled: `stop`, said an agent, not a person: `bot`\n"),
        ("deadline", ("policy", "deadline"), "- Cancelled: its deadline passed\n"),
        ("deadline", ("manual", "ana"), "- Cancelled: `deadline`, said manually, not verified as a person: `ana`\n"),
        (None, None, "- Cancelled: no receipt says why\n"),
    ],
)
def test_a_cancelled_run_says_why_and_who_wanted_it(reason: str | None, by: Any, shown: str) -> None:
    made = receipts(end=False)
    if reason:
        given = Provenance(kind=by[0], by=by[1], channel="cli")
        made.append(
            ControlReceipt(
                path=layout.control(1, "cancel"),
                key="cancel",
                status="cancel",
                request={"reason": reason},
                execution=Execution(seq=2, finished_at=MOMENT, provenance=given),
            )
        )
    made.append(RunEnded(path=layout.RESULT, key="", status="cancelled", execution=Execution(seq=3)))
    assert shown in render(summarize("wf_launch", made), made).decode()


def test_an_answer_names_where_exactly_it_was_given() -> None:
    by = Provenance(kind="human", by="ana", channel="github", origin={"url": "https://example.com/x/y/pull/3#r1"})
    assert given_by(by) == "answered by the person `ana` through `github`, `https://example.com/x/y/pull/3#r1`"


def test_a_second_wish_to_cancel_keeps_the_first_reason_and_may_hurry() -> None:
    asked = [
        ControlReceipt(
            path=layout.control(number, "cancel"),
            key="cancel",
            status="cancel",
            request={"reason": reason, "now": now},
            execution=Execution(seq=number),
        )
        for number, reason, now in ((1, "enough", False), (2, "too slow", True))
    ]
    summary = summarize("wf_a", [*receipts(end=False)[:1], *asked])
    assert (summary.cancel_requested, summary.cancel_now) == ("enough", True)
