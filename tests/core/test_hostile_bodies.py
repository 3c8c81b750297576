"""What bodies do that they should not: leaving the process, never waiting, and worse (notes/core.md (c))."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver, ended

from hermes_workflows.authoring import workflow
from hermes_workflows.core import loop as loop_module


def failure_of(body: Any) -> Any:
    end = ended(Driver(body).to_the_end())
    assert end.status == "failed"
    return end.error


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt("x")])
def test_system_exit_fails_the_run_with_its_line(raised: BaseException) -> None:
    @workflow
    async def body() -> Any:
        await one()
        raise raised

    driver = Driver(body, root=os.path.dirname(__file__))
    error = ended(driver.to_the_end()).error
    line = body.fn.__code__.co_firstlineno + 3
    assert error.type == type(raised).__name__
    assert error.message.startswith(f"the body raised {type(raised).__name__}(")
    assert error.message.endswith(f"at test_hostile_bodies.py:{line}")


def test_system_exit_in_a_task_ends_the_others_first_and_then_the_run() -> None:
    @workflow
    async def body() -> Any:
        async def exits() -> None:
            await one()
            raise SystemExit(3)

        task = asyncio.create_task(exits())
        try:
            await two()
        finally:
            await tidy()
        return task

    driver = Driver(body)
    driver.answer("exits/one")
    assert driver.open == ["tidy"]
    assert [call.key for call in driver.decision.cancelled] == ["two"]
    end = ended(driver.to_the_end())
    assert (end.status, end.error.type) == ("failed", "SystemExit")


def test_the_drain_goes_on_after_system_exit() -> None:
    @workflow
    async def body() -> Any:
        async def exits() -> None:
            raise SystemExit(3)

        async def works() -> None:
            seen.append(1)

        tasks = [asyncio.create_task(exits()), asyncio.create_task(works())]
        await asyncio.wait(tasks)

    seen: list[int] = []
    assert failure_of(body).type == "SystemExit"
    assert seen == [1]


@pytest.mark.parametrize("raised", [GeneratorExit(), type("Odd", (BaseException,), {})("odd"), StopIteration("x")])
def test_any_other_exception_ends_the_body_like_an_ordinary_one(raised: BaseException) -> None:
    @workflow
    async def body() -> Any:
        await one()
        raise raised

    assert failure_of(body).type in (type(raised).__name__, "RuntimeError")


@pytest.mark.parametrize("raised", [RecursionError("deep"), MemoryError(), ExceptionGroup("g", [RecursionError("x")])])
def test_what_depends_on_the_machine_is_no_end_of_a_run_but_stuck(raised: Exception) -> None:
    @workflow
    async def body() -> Any:
        await one()
        raise raised

    driver = Driver(body)
    decision = driver.answer("one")
    assert decision.end is None
    assert "depends on the machine" in str(decision.stuck)


def test_a_body_that_never_waits_fails_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "MAX_HANDLES", 1000)

    @workflow
    async def body() -> Any:
        async def spins() -> None:
            while True:  # noqa: ASYNC110  # the mistake itself
                await asyncio.sleep(0)

        await asyncio.gather(one(), spins())

    driver = Driver(body, root=os.path.dirname(__file__))
    error = ended(driver.decision).error
    line = body.fn.__code__.co_firstlineno + 4
    assert (
        error.message
        == f"the body ran 1,000 callbacks without waiting for anything, last at test_hostile_bodies.py:{line}"
    )
    assert driver.decision.requested == ()


def test_timers_of_no_finite_length_are_refused_where_they_are_written() -> None:
    for seconds in (float("inf"), 1e12):

        @workflow
        async def body(seconds: float = seconds) -> Any:
            await asyncio.sleep(seconds)

        error = failure_of(body)
        assert "is never due" in error.message


def test_a_call_that_is_awaited_by_hand_and_dropped_harms_nobody() -> None:
    @workflow
    async def body() -> Any:
        call = one()
        by_hand = call.__await__()
        by_hand.send(None).cancel()
        await two()
        return by_hand is not None

    driver = Driver(body)
    driver.answer("one")
    assert ended(driver.answer("two")).output is True
