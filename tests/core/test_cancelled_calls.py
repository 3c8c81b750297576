"""Calls that the body gives up (SEMANTICS §5, notes/core.md (e))."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.core.bodies import one, two
from tests.core.driving import Driver, ended, open_keys

from hermes_workflows.authoring import ask, workflow
from hermes_workflows.errors import Divergence


@workflow
async def times_out() -> Any:
    try:
        async with asyncio.timeout(5):
            return await one()
    except TimeoutError:
        return await two()


def test_a_call_whose_last_awaiter_is_cancelled_is_withdrawn_in_that_decision() -> None:
    driver = Driver(times_out)
    decision = driver.answer("timer")
    assert open_keys(decision.cancelled) == ["one"]
    assert driver.open == ["two"]


@pytest.mark.parametrize("status", ["cancelled", "completed", "failed"])
def test_whatever_comes_for_a_cancelled_call_is_never_delivered(status: str) -> None:
    driver = Driver(times_out)
    driver.answer("timer")
    decision = driver.late("one", status)
    assert (decision.requested, decision.end, driver.open) == ((), None, ["two"])
    assert ended(driver.answer("two")).output == 2
    _, rebuilt = driver.rebuilt()
    assert rebuilt.end == driver.decision.end


def test_no_receipt_for_a_cancelled_call_is_legal_too() -> None:
    driver = Driver(times_out)
    driver.answer("timer")
    driver.answer("two")
    _, rebuilt = driver.rebuilt()
    assert ended(rebuilt).output == 2


def test_a_result_that_lands_before_the_timeout_is_delivered_and_counts() -> None:
    driver = Driver(times_out)
    timer = driver.call("timer")
    assert ended(driver.answer("one")).output == 1
    # The timer's receipt was on its way already.
    assert driver.record(driver.receipt_for(timer)).end == driver.decision.end
    driver.rebuilt()


def test_a_cancelled_receipt_with_another_request_is_a_divergence() -> None:
    driver = Driver(times_out)
    driver.answer("timer")
    made = driver.receipt_for(driver.live.withdrawn["one"], output=1)
    with pytest.raises(Divergence):
        driver.record(made.model_copy(update={"status": "cancelled", "fingerprint": "fp1:sha256:other"}))


def test_the_body_goes_on_at_once_after_cancelling_a_task() -> None:
    @workflow
    async def body() -> Any:
        task = asyncio.create_task(one())  # type: ignore[arg-type]
        await two()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "gone"

    driver = Driver(body)
    decision = driver.answer("two")
    assert (ended(decision).output, open_keys(decision.cancelled)) == ("gone", ["one"])


def test_cancelling_one_of_several_awaiters_leaves_the_call_to_the_others() -> None:
    @workflow
    async def body() -> Any:
        call = one()

        async def waits() -> Any:
            return await call

        first, second = asyncio.create_task(waits()), asyncio.create_task(waits())
        await two()
        first.cancel()
        return await second

    driver = Driver(body)
    assert driver.answer("two").cancelled == ()
    assert ended(driver.answer("one")).output == 1


def test_awaiting_a_cancelled_call_again_is_cancelled_again() -> None:
    @workflow
    async def body() -> Any:
        call = one()
        for _ in range(2):
            try:
                async with asyncio.timeout(5):
                    await call
            except TimeoutError:
                continue
            except asyncio.CancelledError:
                return "cancelled before"
        return None

    assert ended(Driver(body).answer("timer")).output == "cancelled before"


def test_a_call_requested_and_given_up_in_one_decision_never_leaves_the_body() -> None:
    @workflow
    async def body() -> Any:
        task = asyncio.create_task(one())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        return await two()

    driver = Driver(body)
    assert open_keys(driver.decision.requested) == ["two"]
    assert driver.decision.cancelled == ()
    assert driver.live.withdrawn == {}


def test_a_result_delivered_while_its_awaiter_is_cancelled_is_spent() -> None:
    @workflow
    async def body() -> Any:
        async def waits() -> Any:
            return await one()

        async def stops() -> Any:
            await two()
            task.cancel()

        task = asyncio.create_task(waits())
        await asyncio.gather(asyncio.create_task(stops()), task, return_exceptions=True)
        return task.cancelled()

    driver = Driver(body)
    driver.answer("stops/two")
    assert ended(driver.decision).output is True
    other = Driver(body)
    other.answer("waits/one")
    other.answer("stops/two")
    assert ended(other.decision).output is False


def test_a_failing_task_group_withdraws_the_calls_of_its_other_tasks() -> None:
    @workflow
    async def body() -> Any:
        try:
            async with asyncio.TaskGroup() as group:
                for each in (one(), two(), ask("well?")):
                    group.create_task(each)  # type: ignore[arg-type]
        except ExceptionGroup as failed:
            return str(failed.exceptions[0])

    driver = Driver(body)
    decision = driver.answer("two", error="broken")
    assert sorted(open_keys(decision.cancelled)) == ["ask", "one"]
    assert ended(decision).output == "step call two: broken"


def test_a_withdrawn_question_may_be_answered_late_without_effect() -> None:
    @workflow
    async def body() -> Any:
        try:
            return await asyncio.wait_for(ask("well?", returns=str), 60)
        except TimeoutError:
            return await one()

    driver = Driver(body)
    driver.answer("timer")
    driver.late("ask", "completed")
    assert ended(driver.answer("one")).output == 1
