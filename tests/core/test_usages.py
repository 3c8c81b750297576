"""Sums of tokens and cost: over attempts, calls, runs; in summary and README."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermes_workflows.core import layout
from hermes_workflows.core.readme import render
from hermes_workflows.core.receipts import CallReceipt, Execution, Usage
from hermes_workflows.core.summary import RunSummary, summarize
from hermes_workflows.core.timestamps import render_time
from hermes_workflows.core.usages import OTHERS, TOLD_CALLS, added, told

NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)


def used(key: str, path: str, tokens: int, cost: float, status: Any = "completed") -> CallReceipt:
    usage = Usage(input_tokens=tokens, output_tokens=1, cost_usd=cost)
    execution = Execution(seq=1, finished_at=NOW, usage=usage)
    return CallReceipt(
        path=path, kind="agent", key=key, status=status, fingerprint="fp1:sha256:0", request={}, execution=execution
    )


ZONES = [timezone(timedelta(minutes=minutes)) for minutes in (-720, 0, 1, 330)]


@given(st.integers(0, 250_000_000_000_000_000), st.sampled_from(ZONES))
def test_what_a_row_says_of_a_moment_is_what_receipts_say(microseconds: int, zone: timezone) -> None:
    moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).astimezone(zone)
    receipt = used("a", layout.step("a"), 1, 0.0).model_copy(update={"execution": Execution(finished_at=moment)})
    (event,) = summarize("wf", [receipt]).recent
    assert event.at == summarize("wf", [receipt]).updated_at == render_time(moment)


TWO_CALLS = [
    used("a", layout.attempt("a", 1), 10, 0.1, "failed"),
    used("a", layout.step("a"), 20, 0.2),
    used("b", layout.step("b"), 1000, 0.0),
]


def test_usage_adds_up_over_attempts_calls_and_the_run() -> None:
    summary = summarize("wf", TWO_CALLS)
    assert summary.usage == {"input_tokens": 1030, "output_tokens": 3, "cost_usd": 0.3}
    assert summary.usage_by_call["a"] == {"input_tokens": 30, "output_tokens": 2, "cost_usd": 0.3}
    assert summary.usage_by_call["b"]["input_tokens"] == 1000
    assert RunSummary.from_json(summary.to_json()) == summary


def test_many_calls_share_the_last_line_and_the_sum_stays_right() -> None:
    receipts = [used(f"call-{n}", layout.step(f"call-{n}"), 1, 0.0) for n in range(TOLD_CALLS + 10)]
    summary = summarize("wf", receipts)
    assert len(summary.usage_by_call) == TOLD_CALLS + 1
    assert summary.usage_by_call[OTHERS]["input_tokens"] == 10
    assert summary.usage["input_tokens"] == TOLD_CALLS + 10


def test_the_readme_tells_the_sum_and_each_call() -> None:
    text = render(summarize("wf", TWO_CALLS), TWO_CALLS).decode()
    assert "2 completed; 1,030 tokens in, 3 out, 0.3000 USD" in text
    assert "| `a` | agent | | completed | | 30, 2 | 0.3000 |" in text.replace("  ", " ")
    assert "| `b` | agent | | completed | | 1,000, 1 | |" in text.replace("  ", " ")


def test_the_readme_of_one_call_says_it_once() -> None:
    text = render(summarize("wf", [used("a", layout.step("a"), 20, 0.2)]), []).decode()
    assert text.count("20 tokens in") == 1


def test_nothing_used_is_nothing_told() -> None:
    assert told({}) == told({"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}) == ""
    assert told(added({"cost_usd": 0.1}, {"cost_usd": 0.2})) == "0 tokens in, 0 out, 0.3000 USD"
