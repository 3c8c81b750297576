"""A receipt that anybody may have written is refused when it is read, not where its parts are used."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_workflows.core import layout
from hermes_workflows.core.contents import fault_of
from hermes_workflows.core.encoding import Limits, dumps
from hermes_workflows.core.receipts import Author, CallReceipt, Receipt, Usage, draft, load
from hermes_workflows.errors import IntegrityError, UnstorableValue

KEPT = {"key": "ask", "kind": "review", "recorded": "fp1:a", "present": "fp1:b"}
BEGAN = {"workflow": "module:function", "input": None}
FROM = {"run": "wf_a", "commit": "c" * 40, "how": "fork"}


def read(path: str, kind: str, status: str, request: Any = None, seq: int = 1, **execution: Any) -> Receipt:
    said = {"kind": kind, "status": status, "request": request, "execution": {"seq": seq, **execution}}
    return load(path, dumps({"schema": "hermes.receipt/1", "key": "", "fingerprint": "fp1:a", **said}), lambda _: b"")


@pytest.mark.parametrize(
    ("verb", "request_"),
    [
        ("accept", {"accepted": [KEPT], "why": "the wording"}),
        ("resolve", {"key": "pay", "decision": "run-again", "later": "word"}),
        ("pause", {"reason": "noon"}),
        ("cancel", None),
    ],
)
def test_what_operators_ask_is_read(verb: str, request_: Any) -> None:
    assert read(layout.control(1, verb), "control", verb, request_).request == request_


@pytest.mark.parametrize(
    ("verb", "request_"),
    [
        ("accept", None),
        ("accept", {"accepted": 5}),
        ("accept", {"accepted": [{"key": "ask", "kind": "review", "recorded": "fp1:a"}]}),
        ("resolve", {"key": "pay", "decision": 5}),
        ("pause", "noon"),
        ("resume", []),
        ("cancel", {"superseded_by": 5}),
    ],
)
def test_a_request_of_an_operator_that_no_reader_could_use_is_refused(verb: str, request_: Any) -> None:
    with pytest.raises(IntegrityError, match="has a request"):
        read(layout.control(1, verb), "control", verb, request_)


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        (layout.request("ask"), "control", "pause"),
        (layout.control(1, "pause"), "control", "resume"),
        (layout.step("work"), "review", "completed"),
        (layout.RESULT, "timer", "completed"),
        (layout.request("ask"), "review", "completed"),
        (layout.response("ask"), "review", "requested"),
        (layout.request("ask"), "review", "requested"),
        (layout.start("go"), "signal", "started"),
    ],
)
def test_a_receipt_that_cannot_lie_where_it_lies_is_refused(path: str, kind: str, status: str) -> None:
    asked = {"seconds": 1.0} if kind == "timer" else None
    with pytest.raises(IntegrityError, match=r"may not hold|belongs elsewhere|has no request"):
        read(path, kind, status, asked)


@pytest.mark.parametrize(
    "source",
    [
        {"commit": "c" * 40},
        {"run": "wf_a"},
        {**FROM, "seq": "inf"},
        {**FROM, "seq": "9" * 5000},
        {**FROM, "clock": "noon"},
    ],
)
def test_a_start_that_does_not_say_where_it_came_from_is_refused(source: dict[str, str]) -> None:
    assert read(layout.RUN, "run", "started", BEGAN, source={**FROM, "seq": "3", "clock": "2026-11-29T12:00:00Z"})
    with pytest.raises(IntegrityError, match=r"source|started from"):
        read(layout.RUN, "run", "started", BEGAN, source=source)


@pytest.mark.parametrize("moment", ["2026-11-29", "2026-11-29T12:00:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_cannot_be_compared_with_others_is_refused(moment: str) -> None:
    with pytest.raises(IntegrityError, match="finished_at"):
        read(layout.RESULT, "result", "completed", finished_at=moment)


@pytest.mark.parametrize("seq", [-1, 2**63])
def test_a_seq_that_no_run_reaches_is_refused(seq: int) -> None:
    with pytest.raises(IntegrityError, match="seq"):
        read(layout.RESULT, "result", "completed", seq=seq)


@pytest.mark.parametrize("number", ["9" * 5000, "٣"])
def test_a_number_in_a_path_is_a_short_one(number: str) -> None:
    assert layout.place(f"control/{number}-pause.json") is None


@pytest.mark.parametrize("path", ["README.md", "artifacts/" + "a" * 64, "nowhere.json"])
def test_where_no_receipt_may_lie_nobody_asks_what_fits_there(path: str) -> None:
    receipt = CallReceipt(path=path, kind="step", key="a", status="completed", fingerprint="f", request={"name": "a"})
    assert fault_of(receipt) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"[]", "a receipt is a JSON object"),
        (dumps({"schema": "hermes.receipt/1", "kind": "dream"}), "unknown kind 'dream'"),
        (dumps({"schema": "mine/1", "kind": "step"}), "schema 'mine/1' is not hermes.receipt/1"),
    ],
)
def test_what_is_no_receipt_of_ours_is_told_with_its_path(said: bytes, why: str) -> None:
    with pytest.raises(IntegrityError, match=f"steps/a.json: {why}"):
        load("steps/a.json", said, lambda _: b"")


def test_a_key_of_two_lines_and_a_usage_without_measure_are_refused() -> None:
    made = read(layout.step("work"), "step", "completed", {})
    assert fault_of(made) is None
    assert (
        fault_of(made.model_copy(update={"key": "a\nb"})) == "has a key or a name that no call and no signal can have"
    )
    with pytest.raises(IntegrityError, match="has a usage that no call reaches"):
        read(layout.step("work"), "step", "completed", {}, usage={"input_tokens": 10**15})


def test_a_receipt_that_is_larger_than_a_receipt_may_be_is_not_written() -> None:
    made = read(layout.step("work"), "step", "completed", {}).at(7)
    assert made.seq == 7
    with pytest.raises(UnstorableValue, match="more than 10"):
        draft(made, Author("ana"), limits=Limits(receipt_bytes=10))


def test_usages_are_added_to_the_tenth_decimal() -> None:
    one, two = Usage(input_tokens=1, cost_usd=0.1), Usage(output_tokens=2, cost_usd=0.2)
    assert one + two == two + one == Usage(input_tokens=1, output_tokens=2, cost_usd=0.3)
