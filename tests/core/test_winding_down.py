"""The end of a body: what it left running is ended first, in order, and durably (SEMANTICS §1, notes (b))."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver, ended, open_keys

from hermes_workflows.authoring import bash, workflow


@workflow
async def leaves_tasks() -> Any:
    async def orphan(number: int) -> None:
        try:
            await two(number)
        finally:
            await tidy(number)

    kept = [asyncio.create_task(orphan(number)) for number in range(3)]
    return await one(len(kept))


def test_leftover_tasks_are_cancelled_in_creation_order_and_awaited_before_the_end() -> None:
    driver = Driver(leaves_tasks)
    decision = driver.answer("one")
    assert open_keys(decision.cancelled) == ["orphan/two", "orphan-2/two", "orphan-3/two"]
    assert open_keys(decision.requested) == ["orphan/tidy", "orphan-2/tidy", "orphan-3/tidy"]
    assert decision.end is None
    for key in ("orphan-2/tidy", "orphan/tidy"):
        assert driver.answer(key).end is None
    assert ended(driver.answer("orphan-3/tidy")).output == 3


def test_a_run_is_rebuilt_while_it_winds_down() -> None:
    driver = Driver(leaves_tasks)
    driver.answer("one")
    driver.answer("orphan/tidy")
    driver.crash()
    assert driver.open == ["orphan-2/tidy", "orphan-3/tidy"]
    assert ended(driver.to_the_end()).output == 3


def test_leftover_tasks_are_ended_after_a_failure_too() -> None:
    @workflow
    async def body() -> Any:
        async def orphan() -> None:
            try:
                await two()
            finally:
                await tidy()

        task = asyncio.create_task(orphan())
        await one()
        return task

    driver = Driver(body)
    assert open_keys(driver.answer("one", error="broken").requested) == ["orphan/tidy"]
    assert ended(driver.answer("orphan/tidy")).error.type == "StepFailed"


def test_the_failure_of_a_leftover_task_is_not_that_of_the_run() -> None:
    driver = Driver(leaves_tasks)
    driver.answer("one")
    for key in list(driver.open):
        driver.answer(key, error="broken")
    assert ended(driver.decision).status == "completed"


def test_what_is_open_when_the_run_ends_is_withdrawn_and_may_still_leave_its_receipt() -> None:
    @workflow
    async def body() -> Any:
        task = asyncio.create_task(one())  # type: ignore[arg-type]  # a call is as good as a coroutine
        await bash("a", key="same")
        await bash("b", key="same")
        return task

    driver = Driver(body)
    decision = driver.answer("same", {"exit_code": 0, "stdout": "", "stderr": ""})
    assert (ended(decision).error.type, open_keys(decision.cancelled)) == ("KeyClash", ["one"])
    assert driver.late("one", "cancelled").end == decision.end
    _, rebuilt = driver.rebuilt()
    assert rebuilt.end == decision.end


def test_async_generators_are_closed_in_order_and_their_finally_is_durable() -> None:
    @workflow
    async def body() -> Any:
        async def produce(number: int) -> AsyncIterator[int]:
            try:
                yield await one(number)
                yield 0
            finally:
                await tidy(number)

        total = 0
        for number in (1, 2):
            async for value in produce(number):
                total += value
                break
        return total

    driver = Driver(body)
    driver.answer("one")
    driver.answer("one-2")
    for key, number in (("tidy", 1), ("tidy-2", 2)):
        assert driver.open == [key]
        assert driver.call(key).request["arguments"] == {"value": number}
        driver.crash()
        driver.answer(key)
    assert ended(driver.decision).output == 3


def test_an_exhausted_generator_is_not_closed_again() -> None:
    @workflow
    async def body() -> Any:
        async def produce() -> AsyncIterator[int]:
            try:
                yield await one()
            finally:
                await tidy()

        return [value async for value in produce()]

    driver = Driver(body)
    driver.answer("one")
    assert ended(driver.answer("tidy")).output == [1]
    assert driver.requested == ["one", "tidy"]


def test_a_generator_dropped_in_one_run_is_never_closed_in_another_ones_slice() -> None:
    @workflow
    async def drops() -> Any:
        async def produce() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                await tidy()

        async for _ in produce():
            break
        return await one()

    @workflow
    async def other() -> Any:
        return await one()

    first, second = Driver(drops), Driver(other)
    del drops
    second.answer("one")
    assert second.requested == ["one"]
    first.answer("one")
    assert first.requested == ["one", "tidy"]


def test_a_leftover_task_may_refuse_its_cancellation_and_finish_its_work() -> None:
    @workflow
    async def body() -> Any:
        async def stubborn() -> None:
            try:
                await two()
            except asyncio.CancelledError:
                await tidy(1)
            await tidy(2)

        task = asyncio.create_task(stubborn())
        return await one(int(task.done()))

    driver = Driver(body)
    driver.answer("one")
    driver.answer("stubborn/tidy")
    assert driver.decision.end is None
    assert ended(driver.answer("stubborn/tidy-2")).status == "completed"


def test_system_exit_in_a_leftover_task_fails_the_run() -> None:
    @workflow
    async def body() -> Any:
        async def orphan() -> None:
            try:
                await two()
            finally:
                raise SystemExit(4)

        task = asyncio.create_task(orphan())
        return await one(int(task.done()))

    end = ended(Driver(body).answer("one"))
    assert (end.status, end.error.type) == ("failed", "SystemExit")
