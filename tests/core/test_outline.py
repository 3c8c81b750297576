"""Lines and calls of a run, told from its receipts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.durations import duration
from hermes_workflows.core.outline import Branch, Outline, Ran, calls_of, lines_of, outcome, tree_of
from hermes_workflows.core.receipts import (
    CallReceipt,
    Execution,
    Failure,
    Provenance,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunRequest,
    RunStarted,
    SignalReceipt,
    SignalRequest,
    Usage,
)

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
FINGERPRINT = "fp1:sha256:0"


def called(seq: int, key: str, path: str = "", status: Any = "completed", **more: Any) -> CallReceipt:
    execution = {"seq": seq, "finished_at": NOON, "duration_seconds": 1.5, **more.pop("execution", {})}
    fields = {"kind": "agent", "request": {"name": "writer"}, "fingerprint": FINGERPRINT, **more}
    return CallReceipt(
        path=path or layout.step(key), key=key, status=status, execution=Execution(**execution), **fields
    )


def reviewed(seq: int, path: str, status: Any, moment: datetime, **more: Any) -> ReviewReceipt:
    times = {"finished_at": moment} if status == "completed" else {"started_at": moment}
    execution = Execution(seq=seq, **times, **more)
    asked = ReviewRequest(prompt="Ship it?", returns={}) if status == "requested" else None
    return ReviewReceipt(
        path=path, key="ok", status=status, fingerprint=FINGERPRINT, request=asked, execution=execution
    )


def signalled(seq: int, path: str, key: str, status: Any) -> SignalReceipt:
    request = SignalRequest(name="go", returns={})
    return SignalReceipt(path=path, key=key, status=status, request=request, execution=Execution(seq=seq))


def test_a_line_says_when_who_what_how_long_and_what_it_cost() -> None:
    execution = {"runner": "desk", "usage": Usage(cost_usd=0.25)}
    (line,) = lines_of([called(3, "docs/write", execution=execution)])
    assert (line.seq, line.when, line.who) == (3, "2026-11-29T12:00:00.000Z", "desk")
    assert (line.key, line.kind, line.what, line.status) == ("docs/write", "agent", "writer", "completed")
    assert (line.seconds, line.usage) == (1.5, {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.25})


def test_an_answer_is_the_persons_with_how_they_gave_it() -> None:
    by = Provenance(kind="manual", by="ada", channel="cli")
    (line,) = lines_of([reviewed(2, layout.response("ok"), "completed", NOON, provenance=by)])
    assert line.who == "ada (manual)"


def test_an_answer_of_another_run_is_not_said_to_be_given_in_this_one() -> None:
    by = Provenance(kind="human", by="ada", channel="cli")
    source = {"run": "wf_before", "commit": "c", "how": "fork", "seq": "2"}
    started = RunStarted(path=layout.RUN, key="", request=RunRequest(workflow="w"), execution=Execution(source=source))
    lines = lines_of([started, reviewed(2, layout.response("ok"), "completed", NOON, provenance=by)])
    assert lines[1].who == "ada (human, in wf_before)"
    assert lines_of([called(3, "write", execution={"adopted_from": "wf_before"})])[0].who == "recorded (in wf_before)"


def test_attempts_and_their_cost_are_one_call() -> None:
    used = {"usage": Usage(cost_usd=0.1), "attempt": 1}
    failed = called(1, "write", layout.attempt("write", 1), "failed", execution=used)
    (ran,) = calls_of([failed, called(2, "write", execution={**used, "attempt": 2})])
    assert (ran.status, ran.attempts, ran.usage["cost_usd"], ran.seq) == ("completed", 2, 0.2, 2)


def test_a_question_takes_as_long_as_its_answer() -> None:
    asked = reviewed(1, layout.request("ok"), "requested", NOON)
    assert calls_of([asked])[0].is_open
    (ran,) = calls_of([asked, reviewed(2, layout.response("ok"), "completed", NOON + timedelta(hours=2))])
    assert (ran.kind, ran.status, ran.seconds) == ("review", "completed", 7200)


def test_a_signal_ends_the_oldest_wait_for_it() -> None:
    waits = [signalled(1, layout.start("a"), "a", "started"), signalled(2, layout.start("b"), "b", "started")]
    calls = calls_of([*waits, signalled(3, layout.signal("go", 1), "go", "received")])
    assert [(ran.key, ran.status) for ran in calls] == [("a", "received"), ("b", "open")]
    (early,) = calls_of([signalled(1, layout.signal("go", 1), "go", "received")])
    assert (early.key, early.status) == ("go", "received")


def test_why_a_call_failed_is_told() -> None:
    (ran,) = calls_of([called(1, "write", status="failed", error=Failure(type="AgentFailed", message="no answer"))])
    assert (ran.status, ran.error) == ("failed", "no answer")


def test_what_a_status_does_not_say_stands_behind_it() -> None:
    made = [
        called(1, "check", kind="bash", request={"command": "x"}, output={"exit_code": 2, "stdout": "", "stderr": ""}),
        called(2, "write", output="text", execution={"mock": True}),
        called(3, "ask", output={"exit_code": 2}),
    ]
    expected = ["completed, exit code 2", "completed, mock", "completed"]
    assert [outcome(line) for line in lines_of(made)] == expected
    assert [outcome(ran) for ran in calls_of(made)] == expected


def test_texts_of_several_lines_are_drafts_and_others_are_not() -> None:
    output = {"title": "Weekly", "body": "# Week 48\n\nFine.", "more": ["a\nb"]}
    (ran,) = calls_of([called(1, "write", output=output)])
    assert ran.texts == (("body", "# Week 48\n\nFine."),)


def test_the_tree_has_a_branch_a_scope() -> None:
    tree = tree_of(calls_of([called(1, "docs/draft"), called(2, "publish"), called(3, "docs/check")]))
    assert [part.name if isinstance(part, Branch) else part.key for part in tree.parts] == ["docs", "publish"]
    docs = tree.parts[0]
    assert isinstance(docs, Branch)
    assert [part.key for part in docs.parts if isinstance(part, Ran)] == ["docs/draft", "docs/check"]


def test_an_outline_keeps_the_first_calls_and_the_newest_and_counts_the_rest() -> None:
    receipts: list[Receipt] = [called(seq, f"call-{seq}") for seq in range(1, 31)]
    outline = Outline(receipts, most=8)
    assert [ran.seq for ran in outline.calls] == [1, 2, 3, 4, 5, 6, 29, 30]
    assert outline.left_out == 22
    grown = Outline(most=8)
    for receipt in receipts:
        grown.add([receipt])
    assert grown.calls == outline.calls


def test_what_is_not_recorded_yet_leaves_the_outline_as_it_was() -> None:
    outline = Outline([called(1, "a")])
    assert [ran.key for ran in outline.with_([called(2, "b")]).calls] == ["a", "b"]
    assert [ran.key for ran in outline.calls] == ["a"]


DURATIONS = {0.0: "0 ms", 0.005: "5 ms", 1.25: "1.2 s", 60: "1 min", 200: "3 min 20 s", 7500: "2 h 5 min"}


@pytest.mark.parametrize(("seconds", "told"), [(None, ""), (90_000, "1 d 1 h"), *DURATIONS.items()])
def test_durations_read_as_people_say_them(seconds: float | None, told: str) -> None:
    assert duration(seconds) == told
