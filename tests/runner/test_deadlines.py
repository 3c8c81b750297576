"""A run with a deadline is cancelled by a policy when it has not ended then, whatever it is doing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed

from hermes_workflows.core.timestamps import render_time
from hermes_workflows.errors import InvalidInput

FLOW = """
@step
def tidy() -> None:
    effect("cleaned up")

@workflow
async def flow() -> str:
    try:
        return await ask("Anybody?", key="who", returns=str)
    except asyncio.CancelledError:
        await tidy()
        raise
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def start(desk: Desk, code: str = FLOW, seconds: float = 3600, work: bool = True) -> None:
    desk.write(code)
    desk.workspace.start("flow.py:flow", run_id="wf", deadline=desk.clock.now() + timedelta(seconds=seconds))
    if work:
        desk.work()


def pass_the_deadline(desk: Desk, **options: Any) -> None:
    desk.clock.advance(3601)
    desk.work(**options)


def test_a_run_past_its_deadline_is_cancelled_by_a_policy_and_cleans_up(desk: Desk) -> None:
    start(desk)
    assert desk.rows() == ["timer $deadline"]
    desk.clock.advance(3599)
    desk.work()
    assert not desk.summary().ended
    desk.clock.advance(1)
    desk.work()
    control = desk.receipt("control/1-cancel.json")
    provenance = control.execution.provenance
    assert provenance is not None
    assert (control.request, provenance.kind, provenance.by) == ({"reason": "deadline"}, "policy", "deadline")
    assert (desk.summary().status, desk.effects(), desk.rows()) == ("cancelled", ["cleaned up"], [])


def test_when_it_must_be_over_stands_in_the_start_and_in_the_summary(desk: Desk) -> None:
    start(desk)
    due = desk.receipt("run.json").execution.deadline_at
    assert due is not None
    assert desk.summary().deadline_at == render_time(due)


def test_a_run_that_ends_in_time_hears_nothing_of_its_deadline(desk: Desk) -> None:
    start(desk)
    desk.answer("who", "me")
    desk.work()
    assert (desk.summary().result, desk.rows()) == ("me", [])
    pass_the_deadline(desk)
    assert "control/1-cancel.json" not in desk.paths()


def test_a_deadline_survives_the_loss_of_the_index(desk: Desk) -> None:
    start(desk)
    desk.lose_index()
    pass_the_deadline(desk)
    assert desk.summary().status == "cancelled"


def test_a_deadline_that_passed_while_nobody_worked_is_kept_all_the_same(desk: Desk) -> None:
    start(desk, work=False)
    pass_the_deadline(desk)
    assert desk.summary().status == "cancelled"


@pytest.mark.parametrize("code", ["import no_such_module\n", FLOW.replace("Anybody?", "Anybody else?")])
def test_a_stuck_run_has_a_deadline_too(desk: Desk, code: str) -> None:
    start(desk)
    desk.write(code)
    desk.workspace.wake("wf")
    desk.work()
    assert desk.marks() != []
    pass_the_deadline(desk)
    desk.clock.advance(2)
    desk.work()
    assert desk.summary().status == "cancelled"
    assert "its cleanup was skipped" in str(desk.summary().error)


def test_a_deadline_ends_children_too(desk: Desk) -> None:
    start(
        desk,
        """
from hermes_workflows.authoring import child

@workflow
async def below() -> str:
    return await ask("Anybody?", key="who", returns=str)

@workflow
async def flow() -> str:
    return await child(below, key="below")
""",
    )
    pass_the_deadline(desk)
    assert [desk.summary(run).status for run in ("wf", "wf.below")] == ["cancelled", "cancelled"]


def test_a_deadline_that_lies_behind_starts_nothing(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="lies behind"):
        start(desk, seconds=-1)
    assert desk.ledger.head("wf") is None


def test_the_same_start_again_shows_the_run_also_after_its_deadline(desk: Desk) -> None:
    start(desk)
    pass_the_deadline(desk)
    before = desk.clock.now() - timedelta(seconds=60)
    assert desk.workspace.start("flow.py:flow", run_id="wf", deadline=before).status == "cancelled"


def test_a_runner_that_dies_over_a_deadline_leaves_it_to_the_next_one(desk: Desk) -> None:
    start(desk)
    desk.clock.advance(3601)
    killed = 0
    for writes in range(6):
        try:
            desk.work("mortal", on=desk.process(Fate(writes)))
        except Killed:
            killed += 1
        if desk.summary().ended:
            break
        desk.clock.advance(40)
    assert killed >= 4
    desk.work()
    assert desk.summary().status == "cancelled"
    assert [path for path in desk.paths() if path.startswith("control/")] == ["control/1-cancel.json"]
