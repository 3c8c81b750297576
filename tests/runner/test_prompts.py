"""Prompt files under runs: what is rendered is what is asked, and a changed file is changed code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.runner.desks import Desk, until

FLOW = """
from hermes_workflows.authoring import prompt_file

@workflow
async def flow(topic: str) -> str:
    said = await agent("writer", prompt_file("write.md").render(topic=topic), returns=str, mock_output="text")
    await ask("Go on?", key="go", returns=str)
    return said
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    (tmp_path / "write.md").write_text("Write about {{topic}}.")
    desk.write(FLOW)
    return desk


def change(desk: Desk, text: str) -> None:
    (desk.root / "write.md").write_text(text)
    desk.clock.advance(1.0)  # sources are looked at twenty times a second


def test_the_rendered_text_stands_in_the_request_and_the_file_among_the_sources(desk: Desk) -> None:
    desk.start(given="docs")
    desk.work()
    receipt = desk.receipt("steps/writer.json")
    assert receipt.request["prompt"] == "Write about docs."
    source = f"source/{receipt.execution.code}/write.md"
    assert desk.ledger.file("wf", source) == b"Write about {{topic}}."


def test_a_changed_prompt_is_noticed_by_a_runner_that_is_up(desk: Desk) -> None:
    with desk.working():
        desk.start(given="docs")
        until(lambda: desk.summary().open_reviews)
        change(desk, "Write well about {{topic}}.")
        desk.start("other", given="docs")
        until(lambda: desk.summary("other").open_reviews)
    assert desk.receipt("steps/writer.json", "other").request["prompt"] == "Write well about docs."


def test_a_living_run_gets_no_old_answer_for_a_changed_prompt(desk: Desk) -> None:
    desk.start(given="docs")
    desk.work()
    change(desk, "Write well about {{topic}}.")
    desk.answer("go", "on")
    desk.work()
    assert desk.marks() == ["divergence"]
    change(desk, "Write about {{topic}}.")
    desk.work()
    assert desk.summary().status == "completed"


def test_a_prompt_that_is_gone_leaves_the_run_stuck_and_not_failed(desk: Desk) -> None:
    desk.start(given="docs")
    (desk.root / "write.md").rename(desk.root / "away.md")
    desk.clock.advance(1.0)
    desk.work()
    assert (desk.summary().status, desk.state().state) == ("running", "stuck")
    assert re.fullmatch(r"flow\.py:\d+: prompt_file\('write.md'\): no such file", desk.state().reason)
    (desk.root / "away.md").rename(desk.root / "write.md")
    desk.clock.advance(1.0)
    desk.work("bob")
    assert desk.summary().status == "waiting"
