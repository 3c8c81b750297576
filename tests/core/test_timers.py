"""Time in a body comes from its receipts, chance from its seed (SEMANTICS §1, §7)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.core.bodies import one, two
from tests.core.driving import NOON, Driver, ended, keys_of, result_of

from hermes_workflows.authoring import now, random, uuid4, workflow
from hermes_workflows.core.receipts import Receipt


@workflow
async def sleeps() -> Any:
    await asyncio.sleep(5)
    return await one()


def at(receipt: Receipt, seconds: float) -> Receipt:
    """The receipt with another time, as a host with another clock would have written it."""
    execution = receipt.execution.model_copy(update={"finished_at": NOON + timedelta(seconds=seconds)})
    return receipt.model_copy(update={"execution": execution})


def test_a_timer_is_a_call_with_a_key_in_its_scope() -> None:
    @workflow
    async def body() -> Any:
        async def naps() -> None:
            await asyncio.sleep(1)
            await asyncio.sleep(2)

        await asyncio.gather(naps(), naps())
        await asyncio.sleep(3)

    assert sorted(keys_of(body)) == ["naps-2/timer", "naps-2/timer-2", "naps/timer", "naps/timer-2", "timer"]


def test_a_timer_fires_when_and_only_when_its_fired_receipt_is_delivered() -> None:
    @workflow
    async def body() -> Any:
        sleeping = asyncio.create_task(asyncio.sleep(5))
        await one()
        late = asyncio.get_running_loop().time() > 5
        return [late, sleeping.done(), await sleeping]

    driver = Driver(body)
    driver.record(at(driver.receipt_for(driver.call("one")), seconds=3600))
    assert driver.decision.end is None
    assert ended(driver.answer("sleep/timer")).output == [True, False, None]


def test_whole_and_broken_seconds_are_one_number_in_the_request() -> None:
    @workflow
    async def body(seconds: Any) -> Any:
        await asyncio.sleep(seconds)

    whole, broken = Driver(body, 5).call("timer"), Driver(body, 5.0).call("timer")
    assert whole.fingerprint == broken.fingerprint
    assert isinstance(whole.request["seconds"], float)


def test_a_deadline_is_what_remains_when_it_is_written() -> None:
    @workflow
    async def body() -> Any:
        deadline = asyncio.get_running_loop().time() + 60
        await one()
        async with asyncio.timeout_at(deadline):
            await two()

    driver = Driver(body)
    driver.record(at(driver.receipt_for(driver.call("one")), seconds=12.5))
    assert driver.call("timer").request["seconds"] == 47.5


def test_timers_created_and_cancelled_within_one_decision_leave_nothing() -> None:
    @workflow
    async def body() -> Any:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return await one()

    driver = Driver(body)
    assert driver.requested == ["one"]
    assert ended(driver.answer("one")).output == 1
    assert driver.live.withdrawn == {}


def test_a_timer_that_is_not_needed_any_more_is_withdrawn_and_may_fire_late() -> None:
    @workflow
    async def body() -> Any:
        async with asyncio.timeout(5):
            await one()
        return await two()

    driver = Driver(body)
    timer = driver.call("timer")
    assert [call.key for call in driver.answer("one").cancelled] == ["timer"]
    driver.record(driver.receipt_for(timer))
    assert ended(driver.answer("two")).output == 2
    driver.rebuilt()


def test_no_time_passes_for_a_timer_that_is_due_at_once() -> None:
    @workflow
    async def body() -> Any:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        loop.call_later(0, seen.append, 1)
        loop.call_at(loop.time() - 5, seen.append, 2)
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(one(), 0)
        except TimeoutError:
            seen.append(3)
        return seen

    assert ended(Driver(body).decision).output == [1, 2, 3]


def test_timers_are_resumed_by_a_rebuilt_body() -> None:
    driver = Driver(sleeps)
    driver.crash()
    assert driver.open == ["timer"]
    driver.answer("timer")
    assert ended(driver.answer("one")).output == 1


def test_now_is_the_largest_time_delivered_so_far_whatever_the_hosts_clocks_do() -> None:
    @workflow
    async def body() -> Any:
        seen = [now()]
        for _ in range(3):
            await one()
            seen.append(now())
        return [round((each - NOON).total_seconds(), 3) for each in seen]

    driver = Driver(body)
    for key, seconds in (("one", 10.0), ("one-2", -3600.0), ("one-3", 10.25)):
        driver.record(at(driver.receipt_for(driver.call(key)), seconds))
    assert ended(driver.decision).output == [0.0, 10.0, 10.0, 10.25]
    _, rebuilt = driver.rebuilt()
    assert ended(rebuilt).output == [0.0, 10.0, 10.0, 10.25]


def test_chance_and_ids_come_from_the_seed_of_the_run() -> None:
    @workflow
    async def body() -> Any:
        first = [random(), str(uuid4())]
        await one()
        return [*first, random(), uuid4().version]

    driver = Driver(body, seed="a")
    driver.answer("one")
    _, rebuilt = driver.rebuilt()
    assert ended(rebuilt).output == ended(driver.decision).output
    other = Driver(body, seed="b")
    other.answer("one")
    assert ended(other.decision).output != ended(driver.decision).output
    assert 0 <= ended(driver.decision).output[0] < 1
    assert ended(driver.decision).output[3] == 4


def test_the_same_seed_gives_the_same_numbers_on_every_python() -> None:
    @workflow
    async def body() -> Any:
        return [round(random(), 6), str(uuid4())]

    assert result_of(body) == [0.138236, "58e40571-dd72-4c1a-b13d-1ab83c98f9fe"]
