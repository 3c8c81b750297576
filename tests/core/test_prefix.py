"""With how much of a recorded run another one can begin (SEMANTICS §6)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from tests.core.driving import NOON, Driver

from hermes_workflows.authoring import Workflow, agent, ask, bash, parallel, step, workflow
from hermes_workflows.authoring.signals import wait_for
from hermes_workflows.core import layout
from hermes_workflows.core.live import LiveRun
from hermes_workflows.core.prefix import MakeBody, Prefix, longest_prefix, whole_prefix
from hermes_workflows.core.receipts import ControlReceipt, Execution, Receipt, RunEnded
from hermes_workflows.errors import CallFailed, Divergence, InvalidInput


def body_of(driver: Driver, present: Workflow[Any] | None = None) -> MakeBody:
    def make() -> LiveRun:
        live = LiveRun("fork", present or driver.workflow, driver.started)
        Driver.alive.append(live)
        return live

    return make


def longest(driver: Driver, present: Workflow[Any] | None = None, *given: str) -> Prefix:
    return longest_prefix(body_of(driver, present), driver.receipts, given)


def until(driver: Driver, key: str, present: Workflow[Any] | None = None) -> Prefix:
    seq = next(each.seq for each in reversed(driver.receipts) if each.key == key and each.role is layout.Role.RESULT)
    return whole_prefix(body_of(driver, present), [each for each in driver.receipts if each.seq <= seq])


def paths(prefix: Prefix) -> list[str]:
    return [receipt.path for receipt in prefix.receipts]


def results(prefix: Prefix) -> list[str]:
    return [each.key for each in prefix.receipts if each.role is layout.Role.RESULT]


def end(driver: Driver) -> None:
    """Record how the body ended, as a runner does."""
    made = driver.decision.end
    assert made is not None
    execution = Execution(seq=len(driver.receipts), finished_at=NOON)
    ended = RunEnded(path=layout.RESULT, key="", status=made.status, error=made.error, execution=execution)  # type: ignore[arg-type]  # one of the model's words
    driver.receipts.append(ended)


def writing(*prompts: str) -> Workflow[Any]:
    """One agent after the other, `a`, `b`, …, with these prompts."""

    @workflow
    async def body() -> Any:
        return [await agent(chr(97 + number), prompt, returns=str) for number, prompt in enumerate(prompts)]

    return body


def played(body: Workflow[Any], **answers: Any) -> Driver:
    driver = Driver(body)
    for key, output in answers.items():
        driver.answer(key, output)
    if driver.decision.end is not None:
        end(driver)
    return driver


def test_all_results_of_a_run_that_the_code_still_decides_are_adopted() -> None:
    driver = played(writing("1", "2", "3"), a="x", b="y", c="z")
    assert results(longest(driver)) == ["a", "b", "c"]
    assert longest(driver).stopped is None


def test_the_longest_prefix_ends_before_the_first_result_that_does_not_fit() -> None:
    driver = played(writing("1", "2", "3"), a="x", b="y", c="z")
    prefix = longest(driver, writing("1", "other", "3"))
    assert results(prefix) == ["a"]
    assert (prefix.last_key, prefix.seq) == ("a", 1)
    assert prefix.divergence is not None
    assert "'b' was recorded with another request" in (prefix.stopped or "")


def test_up_to_a_key_everything_is_adopted_or_the_divergence_is_named() -> None:
    driver = played(writing("1", "2", "3"), a="x", b="y", c="z")
    assert results(until(driver, "b")) == ["a", "b"]
    assert results(until(driver, "b", writing("1", "2", "other"))) == ["a", "b"]
    with pytest.raises(Divergence, match="'a' was recorded with another request"):
        until(driver, "b", writing("other", "2", "3"))


@step
def deploy(tries: int) -> str:
    return "done"


@workflow
async def deploying() -> Any:
    await agent("writer", "w", returns=str)
    return await deploy(1)


def test_the_failure_that_ended_the_run_is_executed_again() -> None:
    driver = Driver(deploying)
    driver.answer("writer", "text")
    driver.answer("deploy", error="no disk")
    end(driver)
    prefix = longest(driver)
    assert (results(prefix), prefix.stopped) == (["writer"], "the run failed on deploy")


def test_a_failure_whose_result_was_given_by_hand_is_none() -> None:
    driver = Driver(deploying)
    driver.answer("writer", "text")
    driver.answer("deploy", error="no disk")
    end(driver)
    mended = [
        each.model_copy(update={"status": "completed", "output": "by hand", "error": None}) if each.seq == 2 else each
        for each in driver.receipts
    ]
    assert results(longest_prefix(body_of(driver), mended, ["deploy"])) == ["writer", "deploy"]


def test_of_parallel_calls_nothing_after_the_failed_one_is_adopted() -> None:
    @workflow
    async def body() -> Any:
        return await parallel({key: agent(key, key, returns=str) for key in ("a", "b", "c")})

    driver = Driver(body)
    driver.answer(driver.open[0], "said")
    driver.answer(driver.open[0], error="broken")
    driver.answer(driver.open[0], "said")
    end(driver)
    assert len(results(longest(driver))) == 1


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_calls_that_failed_at_once_none_is_adopted(first: str) -> None:
    @workflow
    async def body() -> Any:
        await agent("before", "w", returns=str)
        return await parallel([bash("false", name="a", check=True), bash("false", name="b", check=True)])

    driver = Driver(body)
    driver.answer("before", "text")
    for key in sorted("ab", reverse=first == "b"):
        driver.answer(key, {"exit_code": 1, "stdout": "", "stderr": ""})
    end(driver)
    assert results(longest(driver)) == ["before"]


def test_a_question_that_expired_beside_the_failure_is_asked_again() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([bash("false", name="a", check=True), ask("Ship it?", key="ok", expires=60)])

    driver = Driver(body)
    late = driver.receipt_for(driver.call("ok"), error="nobody answered in time")
    driver.record(late.model_copy(update={"status": "expired"}))
    driver.answer("a", {"exit_code": 1, "stdout": "", "stderr": ""})
    end(driver)
    assert results(longest(driver)) == []


def test_a_failed_call_is_found_behind_the_error_that_the_body_made_of_it() -> None:
    @workflow
    async def body() -> Any:
        calls = [asyncio.ensure_future(work()) for work in (first, second)]
        try:
            return await asyncio.gather(*calls)
        except CallFailed as error:
            await asyncio.wait(calls)
            raise ValueError("no report") from error

    async def first() -> Any:
        return await agent("a", "a", returns=str)

    async def second() -> Any:
        return await agent("b", "b", returns=str)

    driver = Driver(body)
    failing, other = driver.open
    driver.answer(failing, error="broken")
    driver.answer(other, "said")
    end(driver)
    prefix = longest(driver)
    assert (results(prefix), prefix.stopped) == ([], f"the run fails on {failing}")


def test_a_failed_call_is_found_in_a_group_of_errors() -> None:
    @workflow
    async def body() -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("a"))
            group.create_task(work("b"))

    async def work(key: str) -> Any:
        return await agent(key, key, returns=str)

    driver = Driver(body)
    other, failing = driver.open
    driver.answer(other, "said")
    driver.answer(failing, error="broken")
    end(driver)
    prefix = longest(driver)
    assert (results(prefix), prefix.stopped) == ([other], f"the run fails on {failing}")


def test_a_failure_that_the_body_handled_is_adopted() -> None:
    @workflow
    async def body() -> Any:
        with contextlib.suppress(CallFailed):
            await agent("a", "a", returns=str)
        return await agent("b", "b", returns=str)

    driver = Driver(body)
    driver.answer("a", error="broken")
    driver.answer("b", error="broken as well")
    end(driver)
    assert results(longest(driver)) == ["a"]


def test_a_body_that_was_mended_goes_on_after_everything_that_was_recorded() -> None:
    def checking(limit: int) -> Workflow[Any]:
        @workflow
        async def body() -> Any:
            text = await agent("a", "a", returns=str)
            if len(text) > limit:
                raise ValueError("too long")
            return await agent("b", "b", returns=str)

        return body

    driver = Driver(checking(3))
    driver.answer("a", "long text")
    end(driver)
    assert (results(longest(driver)), longest(driver).stopped) == ([], "the run fails after a")
    assert results(longest(driver, checking(30))) == ["a"]


def test_a_cancelled_run_goes_on_before_its_cancel_request() -> None:
    driver = Driver(deploying)
    driver.answer("writer", "text")
    driver.cancel()
    end(driver)
    prefix = longest(driver)
    assert (results(prefix), prefix.stopped) == (["writer"], "there the run was cancelled")


def test_what_a_cancelled_run_did_to_clean_up_is_no_place_to_begin() -> None:
    @workflow
    async def body() -> Any:
        try:
            await agent("a", "a", returns=str)
        finally:
            await bash("tidy", name="tidy")

    driver = Driver(body)
    driver.cancel()
    driver.answer("tidy", {"exit_code": 0, "stdout": "", "stderr": ""})
    with pytest.raises(InvalidInput, match="cancelled before that"):
        until(driver, "tidy")


def test_questions_come_with_their_answers_and_open_ones_are_asked_again() -> None:
    @workflow
    async def body() -> Any:
        return await parallel({key: ask(key, key=key, returns=str) for key in ("one", "two")})

    driver = Driver(body)
    first, second = driver.open
    driver.answer(first, "yes")
    assert paths(longest(driver)) == [layout.request(first), layout.response(first)]
    assert layout.request(second) in {each.path for each in driver.receipts}


def test_timers_that_fired_and_signals_that_came_are_adopted_with_their_notes() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.sleep(5)
        await wait_for("go", returns=str)
        await wait_for("again", returns=str)

    driver = Driver(body)
    driver.answer(driver.open[0])
    driver.signal("go", "yes")
    notes = [each.path for each in driver.receipts if each.role is layout.Role.NOTE and each.path != layout.RUN]
    adopted = paths(longest(driver))
    assert [path for path in notes if path not in adopted] == [layout.start("again")]


def pausing(driver: Driver) -> Receipt:
    execution = Execution(seq=len(driver.receipts), finished_at=NOON)
    return ControlReceipt(path=layout.control(1, "pause"), key="pause", status="pause", execution=execution)


def accepting(driver: Driver, told: Any) -> Receipt:
    request = {"accepted": [told], "why": "the same"}
    execution = Execution(seq=len(driver.receipts), finished_at=NOON)
    return ControlReceipt(
        path=layout.control(1, "accept"), key="accept", status="accept", request=request, execution=execution
    )


def test_that_a_run_was_paused_says_nothing_of_the_one_that_goes_on_from_it() -> None:
    driver = played(writing("1", "2"), a="x")
    driver._take(pausing(driver))
    driver.answer("b", "y")
    assert results(longest(driver)) == ["a", "b"]
    assert layout.control(1, "pause") not in paths(longest(driver))


def test_an_accepted_request_fits_only_with_the_note_that_accepts_it() -> None:
    present = writing("other", "2", "3")
    driver = played(writing("1", "2", "3"), a="x")
    told = (divergence(driver, present).details or {})["accept"]
    driver._take(accepting(driver, told))
    driver.answer("b", "y")
    with pytest.raises(Divergence):
        until(driver, "a", present)
    assert paths(until(driver, "b", present)) == [layout.step("a"), layout.control(1, "accept"), layout.step("b")]
    assert paths(longest(driver, present)) == paths(until(driver, "b", present))
    shorter = longest(driver, writing("other", "changed", "3"))
    assert results(shorter) == ["a"]


def divergence(driver: Driver, present: Workflow[Any]) -> Divergence:
    with pytest.raises(Divergence) as caught:
        driver.rebuilt(present)
    return caught.value
