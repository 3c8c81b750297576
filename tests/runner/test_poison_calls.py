"""A call that takes its runners down three times is stuck with the evidence, and does not kill every runner in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.queues import beat, dead_process
from tests.runner.desks import Desk

from hermes_workflows.store.queue_port import Change, Claim

FLOW = """
@step
def deadly() -> str:
    effect("deadly begins")
    effect("deadly ends")
    return "lived"

@step
def innocent() -> str:
    import time
    effect("innocent begins")
    time.sleep(0.02)
    effect("innocent ends")
    return "lived"

@step
def tidy() -> None:
    effect("cleaned up")

@workflow
async def flow() -> list[str]:
    try:
        return await parallel([innocent(), deadly()])
    finally:
        await tidy()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def lose(desk: Desk, times: int) -> None:
    """Runners take all calls that are queued, and their processes die."""
    for number in range(times):
        other = desk.queue.reopen()
        other.heartbeat(beat(f"dead-{number}", desk.clock, dead_process()))
        assert other.apply(Change(claim=Claim(10, ("step",))), f"dead-{number}")
        desk.clock.advance(31)


def test_a_call_that_took_three_runners_down_is_stuck_and_names_them(desk: Desk) -> None:
    desk.write(FLOW)
    desk.start()
    desk.work(max_commands=1)
    lose(desk, 3)
    desk.work()
    [mark] = desk.queue.stuck("wf")
    assert (mark.kind, mark.key) == ("poison-call", "innocent")
    assert "3 runners were lost while they executed step innocent: dead-0 (pid" in mark.reason
    assert "dead-2" in mark.reason
    assert "hermes-workflows retry wf" in mark.hint
    assert desk.effects() == []
    assert desk.state().state == "stuck"


def test_a_runner_that_comes_later_does_not_take_it_up_again(desk: Desk) -> None:
    test_a_call_that_took_three_runners_down_is_stuck_and_names_them(desk)
    desk.work("bob")
    assert desk.marks() == ["poison-call"]
    assert desk.effects() == []


def test_retrying_the_run_lets_all_its_calls_start_anew(desk: Desk) -> None:
    test_a_call_that_took_three_runners_down_is_stuck_and_names_them(desk)
    desk.workspace.revive("wf")
    desk.work()
    assert (desk.summary().result, desk.marks()) == (["lived", "lived"], [])


def test_of_two_that_may_be_deadly_one_executes_at_a_time(desk: Desk) -> None:
    desk.write(FLOW)
    desk.start()
    desk.work(max_commands=1)
    lose(desk, 2)
    desk.work()
    assert desk.summary().result == ["lived", "lived"]
    assert desk.effects() == ["innocent begins", "innocent ends", "deadly begins", "deadly ends", "cleaned up"]


def test_other_code_lifts_the_mark(desk: Desk) -> None:
    test_a_call_that_took_three_runners_down_is_stuck_and_names_them(desk)
    desk.write(FLOW.replace("time.sleep(0.02)", "pass"))
    desk.work()
    assert (desk.summary().result, desk.marks()) == (["lived", "lived"], [])


def test_a_run_with_a_poison_call_cleans_up_when_it_is_cancelled(desk: Desk) -> None:
    test_a_call_that_took_three_runners_down_is_stuck_and_names_them(desk)
    desk.cancel()
    desk.work()
    assert (desk.summary().status, desk.effects()) == ("cancelled", ["cleaned up"])


def test_a_suspect_does_not_keep_the_queue_of_others(desk: Desk) -> None:
    desk.write(FLOW)
    desk.start()
    desk.work(max_commands=1)
    lose(desk, 3)
    desk.start("other")
    desk.work()
    assert desk.summary("other").status == "completed"
    assert desk.marks() == ["poison-call"]
