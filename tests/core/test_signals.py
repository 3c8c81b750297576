"""Signals: in the order they came, each to one wait, kept when early; the same in a rebuilt body."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from tests.core.bodies import one
from tests.core.driving import Driver, ended, open_keys

from hermes_workflows.authoring import parallel, wait_for, workflow
from hermes_workflows.core.schemas import reduced_schema
from hermes_workflows.errors import Divergence, SignalFailed, SignalTimedOut


@dataclass
class Deploy:
    version: str
    canary: bool = False


@workflow
async def deploys() -> Any:
    first = await wait_for("deploy", returns=Deploy)
    return [first.version, first.canary]


def rebuilt_alike(driver: Driver) -> None:
    live, decision = driver.rebuilt()
    assert (live.state(), decision.end) == (driver.live.state(), driver.decision.end)


def test_a_signal_ends_the_wait_for_its_name_with_a_typed_payload() -> None:
    driver = Driver(deploys)
    assert driver.open == ["deploy"]
    assert ended(driver.signal("deploy", {"version": "1.2"})).output == ["1.2", False]
    rebuilt_alike(driver)


def test_what_a_wait_takes_stands_in_its_request() -> None:
    request = Driver(deploys).call("deploy").request
    assert request["name"] == "deploy"
    assert request["returns"] == reduced_schema(dict(request["returns"]))  # type: ignore[arg-type]
    assert "version" in str(request["returns"])


def test_a_signal_of_another_name_wakes_nobody_and_is_kept() -> None:
    @workflow
    async def body() -> Any:
        return [await wait_for("stop", returns=int), await wait_for("go", returns=int)]

    driver = Driver(body)
    assert driver.signal("go", 1).requested == ()
    assert driver.open == ["stop"]
    assert ended(driver.signal("stop", 2)).output == [2, 1]
    assert driver.requested == ["stop"]
    rebuilt_alike(driver)


def test_early_ones_are_taken_in_the_order_they_came() -> None:
    @workflow
    async def body() -> Any:
        await one()
        return [await wait_for("tick", returns=int) for _ in range(3)]

    driver = Driver(body)
    driver.signal("tick", 1)
    driver.signal("tick", 2)
    assert open_keys(driver.answer("one").requested) == ["tick-3"]
    assert ended(driver.signal("tick", 3)).output == [1, 2, 3]
    rebuilt_alike(driver)


def test_two_waits_for_one_name_get_one_signal_each_the_older_wait_first() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([wait_for("tick", returns=int), wait_for("tick", returns=int)])

    driver = Driver(body)
    driver.signal("tick", 1)
    driver.crash()
    assert driver.open == ["tick-2"]
    assert ended(driver.signal("tick", 2)).output == [1, 2]


def test_awaiting_a_wait_again_takes_no_second_signal() -> None:
    @workflow
    async def body() -> Any:
        await one()
        waiting = wait_for("tick", returns=int)
        return [await waiting, await waiting, await wait_for("tick", returns=int)]

    driver = Driver(body)
    driver.signal("tick", 1)
    driver.signal("tick", 2)
    assert ended(driver.answer("one")).output == [1, 1, 2]


def test_an_early_one_that_does_not_fit_raises_at_its_await_and_nowhere_else() -> None:
    @workflow
    async def body() -> Any:
        await one()
        try:
            return await wait_for("deploy", returns=Deploy)
        except SignalFailed as error:
            return str(error)

    driver = Driver(body)
    driver.signal("deploy", {"versio": 1})
    said = ended(driver.answer("one")).output
    assert said.startswith("the signal 'deploy' that was kept does not fit Deploy")
    rebuilt_alike(driver)


def test_a_wait_that_timed_out_takes_no_signal() -> None:
    @workflow
    async def body() -> Any:
        try:
            await wait_for("tick", returns=int, timeout=60)
        except TimeoutError as error:
            said = [type(error) is SignalTimedOut, str(error)]
        return [*said, await wait_for("tick", returns=int)]

    driver = Driver(body)
    driver.answer("tick")
    assert driver.open == ["tick-2"]
    assert ended(driver.signal("tick", 7)).output == [True, "signal call tick: nobody sent it", 7]
    rebuilt_alike(driver)


def test_a_wait_that_was_given_up_takes_no_signal() -> None:
    @workflow
    async def body() -> Any:
        try:
            async with asyncio.timeout(5):
                await wait_for("tick", returns=int)
        except TimeoutError:
            return await wait_for("tick", returns=int)

    driver = Driver(body)
    given_up = driver.call("tick")
    assert open_keys(driver.answer("timer").cancelled) == ["tick"]
    driver.record(driver.receipt_for(given_up))
    assert ended(driver.signal("tick", 7)).output == 7
    rebuilt_alike(driver)


def test_a_run_that_waits_for_a_signal_is_not_stuck() -> None:
    assert Driver(deploys).decision.stuck is None


def test_a_wait_for_another_payload_is_a_divergence() -> None:
    @workflow
    async def other() -> Any:
        return await wait_for("deploy", returns=int)

    with pytest.raises(Divergence, match="signal 'deploy' was recorded with another request"):
        Driver(deploys).rebuilt(other)


def test_another_timeout_is_none() -> None:
    @workflow
    async def patient() -> Any:
        return (await wait_for("deploy", returns=Deploy, timeout=3600)).version

    Driver(deploys).rebuilt(patient)


def test_names_that_paths_write_alike_are_one_name() -> None:
    @workflow
    async def body() -> Any:
        return await wait_for("Deploy now", returns=int)

    assert ended(Driver(body).signal("Deploy now", 1)).output == 1
