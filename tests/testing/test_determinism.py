"""`always_replay`: a body that decides by anything but its receipts is found, and the message leads to the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.testing import flows
from tests.testing.flows import Draft, Review, Topic, family, publish

from hermes_workflows import bash, workflow
from hermes_workflows.testing import ReplayMismatch, ReplayWarning, run_workflow

ROOT = Path(__file__).parents[2]


def line_of(text: str) -> str:
    """Where `text` stands in flows.py, as messages name it."""
    lines = Path(flows.__file__).read_text(encoding="utf-8").splitlines()
    return f"tests/testing/flows.py:{1 + next(n for n, line in enumerate(lines) if text in line)}"


def test_a_body_that_depends_on_its_receipts_alone_passes() -> None:
    reviews = [Review("revise", "shorter"), Review("approve")]
    draft = Draft("News", "It is here.")
    run = run_workflow(
        publish, Topic("docs"), agents={"writer": draft}, answers={"review": reviews}, always_replay=True, root=ROOT
    )
    assert run.result == "News: 3 words"


def test_children_are_replayed_too() -> None:
    assert run_workflow(family, always_replay=True).result == 203


def test_chance_is_found_and_named_with_both_calls_and_the_line() -> None:
    with pytest.raises(ReplayMismatch) as caught:
        run_workflow(flows.by_chance, always_replay=True, root=ROOT)
    message = str(caught.value)
    assert "by_chance does not decide the same again" in message
    assert "heads" in message
    assert "tails" in message
    assert line_of('name="heads"') in message


def test_the_time_of_day_is_found_with_both_values() -> None:
    with pytest.raises(ReplayMismatch) as caught:
        run_workflow(flows.by_time, always_replay=True, root=ROOT)
    stamps = rf"bash 'stamp' \({line_of('time.time()')}\) has another request: at /command/1"
    assert re.search(rf"{stamps} \"[\d.]+\" before and \"[\d.]+\" now", str(caught.value))


def test_the_order_of_a_set_is_found_by_another_hash_seed() -> None:
    with pytest.raises(ReplayMismatch) as caught:
        run_workflow(flows.by_set, always_replay=True, root=ROOT)
    message = str(caught.value)
    assert "in a second process, with PYTHONHASHSEED=" in message
    assert re.search(r"does not request bash '(\w+)', which was recorded; it requests bash '(?!\1)\w+'", message)
    assert line_of('["echo", room]') in message


def test_a_global_that_remembers_is_found() -> None:
    with pytest.raises(ReplayMismatch, match=r"asked for bash 'call-\d+' .* before and for bash 'call-\d+' .* now"):
        run_workflow(flows.by_global, always_replay=True)


def test_a_result_by_chance_is_found_though_every_call_is_the_same() -> None:
    with pytest.raises(
        ReplayMismatch, match=r"it ended as completed with [\d.e-]+ before and ended as completed with [\d.e-]+ now"
    ):
        run_workflow(flows.by_result, always_replay=True)


def test_without_it_such_a_body_passes_unnoticed() -> None:
    assert run_workflow(flows.by_set).status == "completed"


def test_a_workflow_that_no_other_process_can_import_is_replayed_here_and_says_so() -> None:
    @workflow
    async def local() -> int:
        return (await bash("exit 4")).exit_code

    with pytest.warns(ReplayWarning, match="local was replayed in this process only"):
        assert run_workflow(local, always_replay=True).result == 4


def test_bytes_and_large_texts_reach_the_other_process() -> None:
    assert run_workflow(flows.bulky, always_replay=True).result == 200_000
