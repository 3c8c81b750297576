"""`sleep(...)`: the timer of the loop as a call with a key, and the instants it may wait for."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.core.bodies import one
from tests.core.driving import NOON, Driver, ended, keys_of, result_of

from hermes_workflows.authoring import now, parallel, sleep, workflow
from hermes_workflows.errors import InvalidInput


def test_it_is_the_timer_that_asyncio_would_have_made() -> None:
    @workflow
    async def ours() -> Any:
        await sleep(5)

    @workflow
    async def asyncios() -> Any:
        await asyncio.sleep(5)

    driver = Driver(ours)
    driver.answer("timer")
    _, decision = driver.rebuilt(asyncios)
    assert ended(decision).status == "completed"


@pytest.mark.parametrize("span", [timedelta(minutes=1), 60, 60.0])
def test_a_span_is_seconds_in_the_request(span: Any) -> None:
    @workflow
    async def body() -> Any:
        await sleep(span)

    assert dict(Driver(body).call("timer").request) == {"seconds": 60.0, "until": None}


def test_until_is_the_same_instant_in_every_zone() -> None:
    @workflow
    async def body(hours: Any) -> Any:
        await sleep(until=(NOON + timedelta(days=1)).astimezone(timezone(timedelta(hours=hours))))

    here, there = Driver(body, 0).call("timer"), Driver(body, 9).call("timer")
    assert here.request["until"] == "2026-11-30T12:00:00.000Z"
    assert here.fingerprint == there.fingerprint


def test_an_instant_between_two_milliseconds_is_never_shortened() -> None:
    @workflow
    async def body() -> Any:
        await sleep(until=NOON + timedelta(microseconds=1))

    assert Driver(body).call("timer").request["until"] == "2026-11-29T12:00:00.001Z"


def test_the_end_of_the_calendar_is_an_instant_too() -> None:
    @workflow
    async def body() -> Any:
        await sleep(until=datetime.max.replace(tzinfo=NOON.tzinfo))

    assert str(Driver(body).call("timer").request["until"]).startswith("9999-12-31T23:59:59")


def test_no_time_at_all_is_over_at_once() -> None:
    @workflow
    async def body() -> Any:
        await sleep(-3)
        await sleep(until=NOON - timedelta(days=1))
        return (now() - NOON).total_seconds()

    driver = Driver(body)
    assert driver.call("timer").request["seconds"] == 0
    assert ended(driver.to_the_end()).output == 0


def test_its_key_is_its_own_and_it_may_be_awaited_twice() -> None:
    @workflow
    async def body() -> Any:
        cooling = sleep(5, key="cool-down")
        await parallel([cooling, sleep(1)])
        await cooling

    assert keys_of(body) == ["cool-down", "timer"]


def test_a_sleep_that_was_never_awaited_is_the_authors_mistake() -> None:
    @workflow
    async def body() -> Any:
        sleep(5)

    error = ended(Driver(body).decision).error
    assert error.type == "CallNeverAwaited"


def test_it_is_given_up_like_any_call() -> None:
    @workflow
    async def body() -> Any:
        napping = asyncio.ensure_future(sleep(60))
        await one()
        napping.cancel()
        return await one()

    driver = Driver(body)
    assert [call.key for call in driver.answer("one").cancelled] == ["timer"]
    driver.rebuilt()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "takes seconds or until"),
        ({"seconds": 1, "until": NOON}, "takes seconds or until"),
        ({"until": NOON.replace(tzinfo=None)}, "has no zone"),
        ({"until": "tomorrow"}, "str is no datetime"),
        ({"seconds": float("nan")}, "nan is no number"),
        ({"seconds": float("inf")}, "inf is no number"),
        ({"seconds": True}, "bool is no number"),
    ],
)
def test_what_is_no_time_is_refused_where_it_is_written(arguments: Any, said: str) -> None:
    @workflow
    async def body() -> Any:
        try:
            await sleep(**arguments)
        except InvalidInput as error:
            return error.message

    assert said in result_of(body)
