"""Runs that a person cancels, and what they may still do (SEMANTICS §5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver, ended, open_keys

from hermes_workflows.authoring import agent, ask, bash, parallel, pipeline, workflow

OK = {"exit_code": 0, "stdout": "", "stderr": ""}


@workflow
async def cleans_up() -> Any:
    try:
        return await agent("writer")
    finally:
        await bash("rm -r build")
        await tidy()


def test_a_cancel_request_cancels_the_body_where_it_stands() -> None:
    driver = Driver(cleans_up)
    decision = driver.cancel()
    assert open_keys(decision.cancelled) == ["writer"]
    assert open_keys(decision.requested) == ["bash"]
    assert driver.live.cancelling
    driver.answer("bash", OK)
    end = ended(driver.answer("tidy"))
    assert (end.status, end.error, end.output) == ("cancelled", None, None)
    assert not driver.live.cancelling


def test_a_cancelled_run_is_rebuilt_in_the_middle_of_its_cleanup() -> None:
    driver = Driver(cleans_up)
    driver.cancel()
    driver.crash()
    assert driver.live.cancelling
    assert driver.open == ["bash"]
    driver.answer("bash", OK)
    driver.crash()
    assert ended(driver.answer("tidy")).status == "cancelled"


def test_a_body_that_swallows_the_cancellation_is_cancelled_all_the_same() -> None:
    @workflow
    async def body() -> Any:
        try:
            await one()
        except asyncio.CancelledError:
            await tidy()
        return "finished"

    driver = Driver(body)
    driver.cancel()
    assert ended(driver.answer("tidy")).status == "cancelled"


def test_what_a_cleanup_ended_in_is_recorded() -> None:
    driver = Driver(cleans_up)
    driver.cancel()
    end = ended(driver.answer("bash", error="broken"))
    assert (end.status, end.error.type, end.error.message) == ("cancelled", "BashFailed", "bash call bash: broken")


@pytest.mark.parametrize("more", [lambda: agent("another"), lambda: ask("well?")])
def test_a_cleanup_may_not_ask_agents_or_people(more: Any) -> None:
    @workflow
    async def body() -> Any:
        try:
            await one()
        finally:
            await more()

    end = ended(Driver(body).cancel())
    assert (end.status, end.error.type) == ("cancelled", "NotInAWorkflow")
    assert "may clean up with bash and @step only" in end.error.message


def _cleans_up_with(calls: int) -> Any:
    @workflow
    async def body() -> Any:
        try:
            await one()
        finally:
            for _ in range(calls):
                await tidy()

    return body


def test_a_cleanup_may_make_twenty_calls() -> None:
    driver = Driver(_cleans_up_with(20))
    driver.cancel()
    assert ended(driver.to_the_end()).error is None
    assert driver.requested == ["one", "tidy", *(f"tidy-{n}" for n in range(2, 21))]


def test_the_twenty_first_call_of_a_cleanup_ends_the_run() -> None:
    driver = Driver(_cleans_up_with(21))
    driver.cancel()
    end = ended(driver.to_the_end())
    assert (end.status, end.error.type) == ("cancelled", "CleanupCutOff")
    assert end.error.message == "cleanup was cut off after 20 calls"
    assert driver.requested[-1] == "tidy-20"
    assert driver.live._fatal is None
    _, rebuilt = driver.rebuilt()
    assert rebuilt.end == end


@pytest.mark.parametrize("call", [lambda: tidy(0), lambda: agent("again"), lambda: asyncio.sleep(1)])
def test_a_body_that_swallows_everything_cannot_outlast_its_cancellation(call: Any) -> None:
    @workflow
    async def body() -> Any:
        while True:
            try:
                await call()
            except BaseException:
                continue

    driver = Driver(body)
    driver.cancel()
    assert ended(driver.to_the_end()).status == "cancelled"
    assert len(driver.requested) <= 21
    assert len(driver.live.evict()) == 1
    Driver.alive.clear()


def test_a_runner_may_cut_a_cleanup_off() -> None:
    driver = Driver(cleans_up)
    driver.cancel()
    decision = driver.live.cut_off("cleanup was cut off after 60 s")
    end = ended(decision)
    assert (end.status, end.error.message) == ("cancelled", "cleanup was cut off after 60 s; it cut off bash")
    assert open_keys(decision.cancelled) == ["bash"]
    assert driver.open == []


@pytest.mark.decides_otherwise("the runner that cut it off left no receipt of it")
def test_a_cleanup_that_was_cut_off_before_a_crash_is_cut_off_after_it() -> None:
    # The runner killed the command, its receipt was written, `result.json` was not.
    driver = Driver(cleans_up)
    driver.cancel()
    killed = driver.receipt_for(driver.call("bash"), error="killed").model_copy(update={"status": "cancelled"})
    driver.live.cut_off("cleanup was cut off after 60 s")
    driver.record(killed)
    driver.crash()
    end = ended(driver.decision)
    assert (end.status, end.error.type) == ("cancelled", "CleanupCutOff")


def test_a_second_cancel_request_changes_nothing() -> None:
    driver = Driver(cleans_up)
    driver.cancel()
    decision = driver.cancel()
    assert (decision.requested, decision.cancelled, decision.end) == ((), (), None)
    driver.answer("bash", OK)
    assert ended(driver.answer("tidy")).status == "cancelled"


def test_a_cancel_request_after_the_end_changes_nothing() -> None:
    @workflow
    async def body() -> Any:
        return await one()

    driver = Driver(body)
    driver.answer("one")
    assert ended(driver.cancel()).status == "completed"


def test_a_run_cancelled_while_it_winds_down_is_cancelled() -> None:
    @workflow
    async def body() -> Any:
        async def orphan() -> Any:
            try:
                await two()
            finally:
                await tidy()

        task = asyncio.create_task(orphan())
        await one()
        return task.done()

    driver = Driver(body)
    driver.answer("one")
    assert (driver.open, driver.decision.end) == (["orphan/tidy"], None)
    assert ended(driver.cancel()).status == "cancelled"


@pytest.mark.parametrize("make", [
    parallel,
    lambda branches: asyncio.gather(*branches),
    lambda branches: pipeline(branches, lambda branch: branch),
])  # fmt: skip
def test_a_cancel_request_reaches_every_branch_and_waits_for_their_cleanup(make: Any) -> None:
    @workflow
    async def body() -> Any:
        async def branch() -> Any:
            try:
                await agent("writer")
            finally:
                await tidy()

        await make([branch(), branch()])

    driver = Driver(body)
    decision = driver.cancel()
    assert len(decision.cancelled) == 2
    assert len(decision.requested) == 2
    assert ended(driver.to_the_end()).status == "cancelled"


def test_shielded_work_goes_on_during_the_cleanup_and_is_ended_after_it() -> None:
    @workflow
    async def body() -> Any:
        try:
            await asyncio.shield(asyncio.create_task(two()))  # type: ignore[arg-type]
        finally:
            await tidy()

    driver = Driver(body)
    driver.cancel()
    assert driver.open == ["two", "tidy"]
    decision = driver.answer("tidy")
    assert (ended(decision).status, open_keys(decision.cancelled)) == ("cancelled", ["two"])


def test_a_body_that_nothing_can_wake_may_be_cancelled() -> None:
    @workflow
    async def body() -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            await tidy()

    driver = Driver(body)
    assert driver.decision.stuck is not None
    driver.cancel()
    assert ended(driver.answer("tidy")).status == "cancelled"


def test_a_run_whose_end_cannot_be_recorded_may_be_cancelled() -> None:
    @workflow
    async def body() -> Any:
        raise RecursionError("deep")

    driver = Driver(body)
    assert driver.decision.stuck is not None
    end = ended(driver.cancel())
    assert (end.status, end.error.type) == ("cancelled", "RecursionError")


def test_a_body_that_cancels_itself_fails() -> None:
    @workflow
    async def body() -> Any:
        raise asyncio.CancelledError

    end = ended(Driver(body).decision)
    assert (end.status, end.error.message) == ("failed", "the body cancelled itself")
