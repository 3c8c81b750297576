"""Time in a test: it jumps to what is due, and passes at the world's pace only where something real could be late."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from tests.testing.flows import Review

from hermes_workflows import agent, ask, bash, workflow
from hermes_workflows.authoring import Retry, step
from hermes_workflows.errors import BashFailed, InvalidInput, ReviewExpired
from hermes_workflows.testing import TestClock, later, run_workflow

DAY = 86_400.0
NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


@step
def wall_time() -> datetime:
    return datetime.now(UTC)


@workflow
async def year() -> int:
    for _ in range(12):
        await asyncio.sleep(DAY * 365 / 12)
    return 12


def test_a_year_of_sleeping_passes_at_once() -> None:
    run = run_workflow(year, timeout=10)
    assert (run.result, run.took) == (12, timedelta(days=365))


def test_time_stands_still_while_nothing_is_due() -> None:
    @workflow
    async def busy() -> None:
        await bash("true")
        await ask("Ready?", key="ready", returns=bool)

    run = run_workflow(busy, answers={"ready": True}, clock=NEW_YEAR)
    moments = {each.execution.finished_at for each in run.receipts if each.execution.finished_at}
    assert moments == {NEW_YEAR}


def test_a_clock_that_is_given_to_two_runs_goes_on() -> None:
    clock = TestClock(NEW_YEAR)
    run_workflow(year, clock=clock)
    assert clock.now() == NEW_YEAR + timedelta(days=365)
    started = run_workflow(year, clock=clock).receipts[0].execution.started_at
    assert started == NEW_YEAR + timedelta(days=365)


def test_something_that_is_no_clock_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is no clock"):
        run_workflow(year, clock=3.0)  # type: ignore[arg-type]


def test_pauses_between_attempts_take_no_time_of_the_test() -> None:
    tries: list[int] = []

    @step(retry=Retry(attempts=4, initial=1000, maximum=10_000, jitter=0))
    def flaky() -> int:
        tries.append(1)
        if len(tries) < 4:
            raise OSError("busy")
        return len(tries)

    @workflow
    async def retrying() -> int:
        return await flaky()

    run = run_workflow(retrying, timeout=10)
    assert (run.result, run.took) == (4, timedelta(seconds=7000))


# -- later -------------------------------------------------------------------------------------------------------


@workflow
async def impatient() -> str:
    try:
        async with asyncio.timeout(60):
            return await agent("slow", returns=str)
    except TimeoutError:
        return "gave up"


def test_an_answer_that_comes_later_races_the_timers_of_the_body() -> None:
    assert run_workflow(impatient, agents={"slow": later(59, "in time")}).result == "in time"
    late = run_workflow(impatient, agents={"slow": later(61, "too late")})
    assert (late.result, late.took) == ("gave up", timedelta(seconds=60))
    assert late.receipt("slow").status == "cancelled"


def test_a_call_that_takes_longer_than_it_may_has_timed_out() -> None:
    @workflow
    async def limited() -> str:
        try:
            return (await bash("build", name="build", timeout=100)).stdout
        except BashFailed as error:
            return str(error)

    run = run_workflow(limited, commands={"build": later(101, "built")})
    assert (run.result, run.took) == ("bash call build: ran over its 100 s", timedelta(seconds=100))


@workflow
async def asking() -> str:
    try:
        return (await ask("Well?", key="well", returns=Review, expires=7 * DAY)).action
    except ReviewExpired:
        return "expired"


def test_an_answer_may_take_days_or_come_too_late() -> None:
    assert run_workflow(asking, answers={"well": later(6 * DAY, Review("approve"))}).result == "approve"
    assert run_workflow(asking, answers={"well": later(7 * DAY, Review("approve"))}).result == "expired"


def test_a_question_without_an_answer_expires_when_its_time_has_come() -> None:
    run = run_workflow(asking)
    assert (run.result, run.took) == ("expired", timedelta(days=7))


def test_who_answers_first_goes_first() -> None:
    @workflow
    async def race() -> list[str]:
        async def noted(name: str, order: list[str]) -> None:
            await agent(name, returns=str)
            order.append(name)

        order: list[str] = []
        await asyncio.gather(noted("slow", order), noted("fast", order))
        return order

    assert run_workflow(race, agents={"slow": later(9, ""), "fast": later(3, "")}).result == ["fast", "slow"]


# -- what is real takes real time --------------------------------------------------------------------------------


def test_a_real_command_is_overtaken_by_a_timer_and_killed() -> None:
    @workflow
    async def hurried() -> str:
        try:
            async with asyncio.timeout(0.2):
                await bash("sleep 600", name="long")
        except TimeoutError:
            return "gave up"
        return "done"

    run = run_workflow(hurried, timeout=20)
    assert (run.result, run.receipt("long").status) == ("gave up", "cancelled")


def test_many_short_commands_reach_a_deadline_together() -> None:
    @workflow
    async def looping() -> int:
        count = 0
        try:
            async with asyncio.timeout(0.1):
                while True:
                    await bash("true")
                    count += 1
        except TimeoutError:
            return count

    run = run_workflow(looping, timeout=20)
    assert run.result is not None
    assert run.result >= 1


# -- freezegun ---------------------------------------------------------------------------------------------------


@workflow
async def dated() -> list[datetime]:
    first = await wall_time()
    await asyncio.sleep(365 * DAY)
    return [first, await wall_time()]


def test_frozen_time_is_the_clock_and_steps_see_it_pass() -> None:
    with freeze_time("2030-01-01"):
        run = run_workflow(dated, timeout=10)
        assert datetime.now(UTC) == NEW_YEAR + timedelta(days=365)
    assert run.result == [NEW_YEAR, NEW_YEAR + timedelta(days=365)]
    assert run.receipts[0].execution.started_at == NEW_YEAR


def test_what_freeze_time_gives_is_a_clock_to_be_named() -> None:
    with freeze_time("2020-01-01"), freeze_time("2030-01-01") as frozen:
        assert run_workflow(dated, clock=frozen).result == [NEW_YEAR, NEW_YEAR + timedelta(days=365)]


def test_a_clock_of_its_own_leaves_frozen_time_alone() -> None:
    with freeze_time("2030-01-01"):
        run = run_workflow(dated, clock=datetime(2026, 1, 1))  # noqa: DTZ001 # without a zone it is UTC
        assert datetime.now(UTC) == NEW_YEAR
    assert run.receipts[0].execution.started_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_commands_keep_their_deadline_under_frozen_time() -> None:
    @workflow
    async def limited() -> Any:
        try:
            return (await bash("echo so far; sleep 600", timeout=0.3)).stdout
        except BashFailed as error:
            return error.details["type"]

    began = time.perf_counter_ns()
    with freeze_time("2030-01-01"):
        run = run_workflow(limited, timeout=20)
    assert run.result == "Timeout"
    assert time.perf_counter_ns() - began < 15e9
