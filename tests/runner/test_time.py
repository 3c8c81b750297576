"""Durable time: sleeping, deadlines and expiry, with a clock that moves when told to."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.runner.desks import Desk

from hermes_workflows.core.timestamps import render_time
from hermes_workflows.errors import Conflict

YEAR = 365 * 24 * 3600


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_year_of_sleep_is_two_receipts(desk: Desk) -> None:
    begin = desk.clock.now() + timedelta(seconds=1)
    desk.run(f"""
@workflow
async def flow() -> float:
    begin = asyncio.get_running_loop().time()
    await asyncio.sleep({YEAR})
    return asyncio.get_running_loop().time() - begin
""")
    assert desk.paths() == ["run.json", "timers/timer/start.json"]
    assert desk.receipt("timers/timer/start.json").execution.due_at == begin + timedelta(days=365)
    desk.clock.advance(YEAR - 1)
    desk.work()
    assert len(desk.paths()) == 2
    assert desk.state().reason.startswith("sleeping until")
    desk.clock.advance(1)
    desk.work()
    assert (desk.summary().status, desk.summary().result) == ("completed", YEAR)
    assert desk.paths()[2:] == ["timers/timer/fired.json", "result.json"]


@pytest.mark.parametrize("delay", ["1e300", "float('inf')", "10**30"])
def test_a_sleep_that_never_ends_fails_or_waits_but_moves_nobody_else(desk: Desk, delay: str) -> None:
    desk.run(f"@workflow\nasync def flow() -> None:\n    await asyncio.sleep({delay})\n")
    assert desk.summary().status in ("failed", "running")
    assert "internal" not in desk.marks()


def test_a_timer_fires_late_and_never_early(desk: Desk) -> None:
    desk.run("@workflow\nasync def flow() -> None:\n    await asyncio.sleep(10)\n")
    due = desk.receipt("timers/timer/start.json").execution.due_at
    desk.clock.advance(25)
    desk.work()
    fired = desk.receipt("timers/timer/fired.json").execution
    assert (fired.due_at, fired.finished_at) == (due, due + timedelta(seconds=15))


def test_a_clock_that_is_set_back_fires_nothing_early_and_loses_nothing(desk: Desk) -> None:
    desk.run("@workflow\nasync def flow() -> None:\n    await asyncio.sleep(10)\n")
    desk.clock.wall -= 3600
    desk.work()
    assert not desk.summary().ended
    desk.clock.wall += 3611
    desk.work()
    assert desk.summary().status == "completed"


def test_a_deadline_withdraws_what_it_waited_for(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            return await ask("Anybody?", key="who", returns=str)
    except TimeoutError:
        return "nobody"
""")
    desk.clock.advance(31)
    desk.work()
    assert desk.summary().result == "nobody"
    assert desk.receipt("reviews/who/response.json").status == "withdrawn"


def test_a_question_that_was_given_up_leaves_the_inbox_while_the_run_goes_on(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            await ask("Anybody?", key="who", returns=str)
    except TimeoutError:
        pass
    return await ask("Then you?", key="you", returns=str)
""")
    desk.clock.advance(31)
    desk.work()
    assert [row.key for row in desk.workspace.reviews()] == ["you"]
    with pytest.raises(Conflict, match="withdrawn"):
        desk.answer("who", "late")
    desk.answer("you", "yes")
    desk.work()
    assert desk.summary().result == "yes"


def test_an_answer_before_the_deadline_counts_and_leaves_no_timer_behind(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> str:
    async with asyncio.timeout(30):
        return await ask("Anybody?", key="who", returns=str)
""")
    desk.answer("who", "me")
    desk.work()
    assert (desk.summary().result, desk.rows()) == ("me", [])
    assert "timers/timer/fired.json" not in desk.paths()


def test_a_timer_made_and_cancelled_in_one_advance_leaves_nothing(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def flow() -> str:
    async with asyncio.timeout(30):
        await asyncio.sleep(0)
    return "quick"
""")
    assert (done.result, desk.paths()) == ("quick", ["run.json", "result.json"])


def test_timers_that_are_due_together_fire_in_the_order_they_were_due(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> list[int]:
    order = []
    async def nap(seconds: int) -> None:
        await asyncio.sleep(seconds)
        order.append(seconds)
    await asyncio.gather(nap(30), nap(10), nap(20))
    return order
""")
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == [10, 20, 30]


EXPIRING = """
@workflow
async def flow() -> str:
    try:
        return await ask("Ship it?", key="ship", returns=str, expires=60{more})
    except Exception as error:
        return type(error).__name__
"""


def test_a_question_nobody_answers_raises_when_it_expires(desk: Desk) -> None:
    desk.run(EXPIRING.format(more=""))
    assert desk.summary().status == "waiting"
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == "ReviewExpired"
    assert desk.receipt("reviews/ship/response.json").status == "expired"


def test_a_default_is_recorded_as_a_policy_and_never_as_a_person(desk: Desk) -> None:
    desk.run(EXPIRING.format(more=', on_expiry="wait"'))
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == "wait"
    response = desk.receipt("reviews/ship/response.json")
    assert (response.status, response.execution.provenance.kind) == ("expired", "policy")


def test_an_answer_in_time_ends_the_expiry(desk: Desk) -> None:
    desk.run(EXPIRING.format(more=""))
    desk.answer("ship", "yes")
    desk.work()
    assert (desk.summary().result, desk.rows()) == ("yes", [])


def test_expiry_survives_the_loss_of_the_index(desk: Desk) -> None:
    desk.run(EXPIRING.format(more=""))
    desk.lose_index()
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == "ReviewExpired"


def test_when_a_question_expires_stands_in_its_row(desk: Desk) -> None:
    desk.run(EXPIRING.format(more=""))
    (row,) = desk.workspace.reviews()
    assert row.expires_at == render_time(desk.clock.now() + timedelta(seconds=60))
