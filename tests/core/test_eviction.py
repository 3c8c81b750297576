"""Taking a suspended body down (notes/core.md (b)). The fixture in conftest.py evicts every body of every test, too."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver

from hermes_workflows.authoring import bash, goal, parallel, workflow


def test_a_finally_runs_up_to_its_first_await_and_its_calls_are_never_recorded() -> None:
    @workflow
    async def body() -> Any:
        try:
            await one()
        finally:
            seen.append("before")
            await tidy()
            seen.append("after")

    seen: list[str] = []
    driver = Driver(body)
    before = driver.live.state()
    assert driver.live.evict() == []
    assert seen == ["before"]
    assert driver.requested == ["one"]
    assert (driver.open, before[0][0][0]) == ([], "one")


@pytest.mark.parametrize(
    "stubborn",
    [
        lambda: one(1),
        lambda: bash("ls", key="fixed"),
        lambda: asyncio.sleep(1),
        lambda: asyncio.sleep(0),
        lambda: parallel([]),
        lambda: goal(one, bool),
        lambda: asyncio.wait_for(one(), 5),
        lambda: asyncio.gather(one(), two()),
        lambda: asyncio.Event().wait(),
    ],
)
def test_a_body_that_swallows_everything_is_left_and_reported_never_hung(stubborn: Any) -> None:
    @workflow
    async def body() -> Any:
        with suppress(BaseException):
            await one()
        while True:
            try:
                async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(0), name="x")
                    await stubborn()
            except BaseException:
                continue

    driver = Driver(body)
    refused = driver.live.evict()
    assert len(refused) == 1
    assert refused[0].startswith(f"{__file__}:")
    Driver.alive.clear()


def test_a_generator_that_swallows_everything_is_left_and_reported() -> None:
    @workflow
    async def body() -> Any:
        async def stubborn() -> AsyncIterator[int]:
            with suppress(BaseException):
                yield 1
            while True:
                with suppress(BaseException):
                    await one()

        generator = stubborn()
        await anext(generator)
        await two()

    (left,) = Driver(body).live.evict()
    assert left.startswith("async generator test_a_generator_that_swallows")
    assert left.endswith(".stubborn")
    Driver.alive.clear()


def test_a_task_made_in_a_cleanup_looks_like_one_and_never_starts() -> None:
    @workflow
    async def body() -> Any:
        try:
            await one()
        finally:
            task = asyncio.get_running_loop().create_task(two(), name="late")  # type: ignore[arg-type]
            task.set_name("later")
            seen.extend([task.get_name(), task.get_coro(), task.cancelling(), task.uncancel(), task.done()])
            await parallel([two()])

    seen: list[Any] = []
    driver = Driver(body)
    assert driver.live.evict() == []
    assert seen == ["hermes:unnamed", None, 0, 0, False]
    assert driver.requested == ["one"]


def test_tasks_are_taken_down_newest_first_and_each_in_its_own_context() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    @workflow
    async def body() -> Any:
        async def child(number: int) -> None:
            token = variable.set(number)
            try:
                await one(number)
            finally:
                seen.append(variable.get())
                variable.reset(token)  # raises in any other context
                seen.append("reset")

        await asyncio.gather(child(1), child(2))

    seen: list[Any] = []
    Driver(body).live.evict()
    assert seen == [2, "reset", 1, "reset"]


def test_nothing_is_left_to_the_collector(capsys: pytest.CaptureFixture[str]) -> None:
    @workflow
    async def body() -> Any:
        async def produce() -> AsyncIterator[int]:
            try:
                while True:
                    yield await one()
            finally:
                await tidy()

        async def consume() -> None:
            async for _ in produce():
                await two()

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(consume())

    driver = Driver(body)
    driver.answer("consume/one")
    driver.answer("consume-2/one")
    assert driver.live.evict() == []
    Driver.alive.clear()
    del driver
    gc.collect()
    assert capsys.readouterr() == ("", "")


def test_a_generator_made_in_a_finally_is_closed_with_the_others() -> None:
    @workflow
    async def body() -> Any:
        async def produce() -> AsyncIterator[int]:
            try:
                yield 1
            finally:
                closed.append(asyncio.get_running_loop() is not None)

        try:
            await one()
        finally:
            async for _ in produce():
                break

    closed: list[bool] = []
    assert Driver(body).live.evict() == []
    assert closed == [True]


def test_finished_and_failed_bodies_are_evicted_without_a_word() -> None:
    @workflow
    async def body() -> Any:
        return await one()

    for error in (None, "broken"):
        driver = Driver(body)
        driver.answer("one", error=error)
        assert driver.live.evict() == []


def test_evicting_one_body_leaves_another_one_alone() -> None:
    @workflow
    async def body() -> Any:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(one())  # type: ignore[arg-type]  # a call is as good as a coroutine
        return task.result()

    first, second = Driver(body), Driver(body)
    first.live.evict()
    assert second.answer("one").end is not None
    assert asyncio._get_running_loop() is None
    assert sys.get_asyncgen_hooks().firstiter is None


def test_a_body_left_behind_in_another_thread_is_kept_and_reported() -> None:
    entered, leave = threading.Event(), threading.Event()

    @workflow
    async def body() -> Any:
        await one()
        entered.set()
        leave.wait(60)
        return 1

    driver = Driver(body)
    thread = threading.Thread(target=driver.answer, args=("one",))
    thread.start()
    assert entered.wait(60)
    try:
        assert not gc.isenabled()
        assert driver.live.evict() == ["body, which is still being executed"]
        assert gc.isenabled()
    finally:
        leave.set()
        thread.join()
    assert gc.isenabled()
