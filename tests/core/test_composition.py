"""`parallel` and `pipeline` (SEMANTICS §9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.core.bodies import one, two
from tests.core.driving import Driver, ended, keys_of, result_of

from hermes_workflows.authoring import agent, bash, goal, parallel, pipeline, workflow
from hermes_workflows.errors import AuthoringError


def test_results_stand_in_call_order_whoever_finishes_first() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([one(number) for number in range(4)])

    driver = Driver(body)
    driver.to_the_end(lambda keys: keys[-1])
    assert ended(driver.decision).output == [0, 1, 2, 3]


def test_a_dict_gives_a_dict_and_nothing_gives_nothing() -> None:
    @workflow
    async def body() -> Any:
        named = await parallel({"b": one(1), "a": one(2)})
        return [list(named.items()), await parallel([]), await parallel({})]

    assert result_of(body) == [[["b", 1], ["a", 2]], [], {}]


def test_lists_and_dicts_nest_and_their_results_have_the_same_form() -> None:
    @workflow
    async def body() -> Any:
        async def branch() -> int:
            return await one(5)

        return await parallel({"docs": [one(1), {"deep": one(2)}], "api": branch(), "more": [branch()], "none": []})

    assert result_of(body) == {"docs": [1, {"deep": 2}], "api": 5, "more": [5], "none": []}
    assert keys_of(body) == ["one", "one-2", "parallel/api/one", "parallel/more/0/one"]


@pytest.mark.parametrize("outer", ["parallel", "pipeline", "goal", "gather"])
@pytest.mark.parametrize("inner", ["parallel", "pipeline", "goal", "gather", "call", "steps"])
def test_compositions_nest_in_every_combination(outer: str, inner: str) -> None:
    async def steps() -> int:
        return await one() + await two() - 2

    make: dict[str, Any] = {
        "parallel": lambda: parallel([one()]),
        "pipeline": lambda: pipeline([1], one),
        "goal": lambda: goal(lambda: parallel([one()]), lambda value: value == [1]),
        "gather": lambda: asyncio.gather(one()),
        "call": lambda: one(1),
        "steps": steps,
    }
    around: dict[str, Any] = {
        "parallel": lambda: parallel([make[inner](), make[inner]()]),
        "pipeline": lambda: pipeline([0, 0], lambda _: make[inner]()),
        "goal": lambda: goal(lambda: parallel([make[inner](), make[inner]()]), lambda _: True),
        "gather": lambda: asyncio.gather(make[inner](), make[inner]()),
    }

    @workflow
    async def body() -> Any:
        return await around[outer]()

    first, second = Driver(body), Driver(body)
    value = 1 if inner in ("call", "steps") else [1]
    assert ended(first.to_the_end()).output == [value, value]
    assert ended(second.to_the_end(lambda keys: keys[-1])).output == [value, value]
    assert sorted(first.requested) == sorted(second.requested)


def test_limit_bounds_how_many_run_at_a_time() -> None:
    @workflow
    async def body() -> Any:
        async def branch(number: int) -> int:
            return await one(number) + await two(0)

        return await parallel([branch(0), one(1), branch(2), one(3)], limit=2)

    driver = Driver(body)
    most = 0
    while driver.decision.end is None:
        most = max(most, len(driver.open))
        driver.answer(driver.open[-1])
    assert (most, ended(driver.decision).output) == (2, [0, 1, 2, 3])


def test_the_limit_counts_nested_branches_too() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([[one(1), one(2)], [one(3)]], limit=1)

    driver = Driver(body)
    assert driver.open == ["one"]
    assert ended(driver.to_the_end()).output == [[1, 2], [3]]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    @workflow
    async def body() -> Any:
        for compose in (lambda: parallel([], limit=limit), lambda: pipeline([], limit=limit)):
            with pytest.raises(AuthoringError, match="a limit is at least 1"):
                compose()

    assert ended(Driver(body).decision).status == "completed"


@pytest.mark.parametrize("item", [5, "text", None, object()])
def test_a_branch_that_cannot_be_awaited_is_refused_where_it_is_written(item: Any) -> None:
    @workflow
    async def body() -> Any:
        parallel([item])

    error = ended(Driver(body).decision).error
    assert error.type == "AuthoringError"
    assert error.message.startswith(f"parallel() got {type(item).__name__} as a branch")


# -- failures ----------------------------------------------------------------------------------------------------


def test_after_a_failure_no_branch_starts_and_started_ones_run_to_their_end() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([one(0), one(1), one(2), one(3)], limit=2)

    driver = Driver(body)
    driver.answer("one", error="broken")
    assert (driver.open, driver.decision.end, driver.decision.cancelled) == (["one-2"], None, ())
    assert ended(driver.answer("one-2")).error.message == "step call one: broken"
    assert driver.requested == ["one", "one-2"]


def test_the_first_failure_in_call_order_is_raised_not_the_first_in_time() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([one(0), one(1), one(2)])

    driver = Driver(body)
    driver.answer("one-3", error="third")
    driver.answer("one", error="first")
    assert ended(driver.answer("one-2")).error.message == "step call one: first"


def test_exceptions_stand_among_the_results_on_request() -> None:
    @workflow
    async def body() -> Any:
        results = await parallel({"a": one(), "b": two()}, return_exceptions=True, limit=1)
        return {name: str(result) for name, result in results.items()}

    driver = Driver(body)
    driver.answer("one", error="broken")
    assert ended(driver.answer("two")).output == {"a": "step call one: broken", "b": "2"}


def test_what_a_failure_left_unstarted_is_no_forgotten_call() -> None:
    @workflow
    async def body() -> Any:
        async def branch(call: Any) -> Any:
            return await call

        try:
            await parallel([one(), two(), branch(two()), parallel([two(), [two()]]), goal(one, bool)], limit=1)
        except Exception:
            return "handled"

    driver = Driver(body)
    assert ended(driver.answer("one", error="broken")).output == "handled"
    assert driver.requested == ["one"]


def test_a_cancelled_parallel_cancels_its_branches_and_starts_no_more() -> None:
    @workflow
    async def body() -> Any:
        try:
            async with asyncio.timeout(5):
                await parallel([one(0), one(1), one(2)], limit=2)
        except TimeoutError:
            return "late"

    driver = Driver(body)
    decision = driver.answer("timer")
    assert [call.key for call in decision.cancelled] == ["one", "one-2"]
    assert ended(decision).output == "late"


# -- awaiting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_awaiting_a_composition_again_gives_the_same_outcome(fails: bool) -> None:
    @workflow
    async def body() -> Any:
        async def branch() -> Any:
            return await one()

        work, seen = parallel([branch()]), []
        for _ in range(2):
            try:
                seen.append(await work)
            except Exception as error:
                seen.append(str(error))
        return seen

    driver = Driver(body)
    driver.answer("parallel/0/one", error="broken" if fails else None)
    outcome = "step call parallel/0/one: broken" if fails else [1]
    assert ended(driver.decision).output == [outcome, outcome]
    assert driver.requested == ["parallel/0/one"]


def test_awaiting_one_composition_twice_at_once_says_what_to_do() -> None:
    @workflow
    async def body() -> Any:
        work = parallel([one()])

        async def waits() -> Any:
            return await work

        return await asyncio.gather(waits(), waits())

    error = ended(Driver(body).decision).error
    assert "parallel is being awaited already" in error.message


def test_a_thousand_branches_are_not_looked_through_at_each_completion() -> None:
    @workflow
    async def body() -> Any:
        return sum(await parallel([one(number) for number in range(1000)]))

    driver = Driver(body)
    turns = 0
    run_handles = driver.live.loop._run_handles

    def counted() -> None:
        nonlocal turns
        turns += len(driver.live.loop._ready)
        run_handles()

    driver.live.loop._run_handles = counted  # type: ignore[method-assign]
    for key in list(driver.open):
        driver.answer(key)
    assert ended(driver.decision).output == 499500
    assert turns < 5000


# -- pipeline ----------------------------------------------------------------------------------------------------


def test_a_pipeline_streams_an_item_may_be_ahead_of_another() -> None:
    @workflow
    async def body() -> Any:
        return await pipeline([1, 2], one, lambda value: two(value * 10))

    driver = Driver(body)
    driver.answer("pipeline/1/one")
    assert driver.open == ["pipeline/0/one", "pipeline/1/two"]
    assert ended(driver.to_the_end()).output == [10, 20]


def test_a_stage_may_return_a_call_a_coroutine_or_a_value() -> None:
    @workflow
    async def body() -> Any:
        async def doubles(value: int) -> int:
            return await one(value) * 2

        return await pipeline([1, 2], lambda value: value + 1, doubles, two, lambda value: [value])

    assert result_of(body) == [[4], [6]]


def test_a_pipeline_is_limited_and_fails_like_parallel() -> None:
    @workflow
    async def body() -> Any:
        return await pipeline(range(3), one, limit=1)

    driver = Driver(body)
    assert driver.open == ["pipeline/0/one"]
    driver.answer("pipeline/0/one")
    end = ended(driver.answer("pipeline/1/one", error="broken"))
    assert end.error.message == "step call pipeline/1/one: broken"
    assert driver.requested == ["pipeline/0/one", "pipeline/1/one"]


def test_an_error_in_a_stage_is_that_of_its_item() -> None:
    @workflow
    async def body() -> Any:
        return await pipeline([1, 0], lambda value: 1 // value)

    assert ended(Driver(body).decision).error.type == "ZeroDivisionError"


def test_branches_with_several_steps_are_durable() -> None:
    @workflow
    async def body() -> Any:
        async def research(topic: str) -> str:
            found = await bash(f"grep {topic}")
            return str(await agent("writer", prompt=found.stdout, returns=str))

        return await parallel({topic: research(topic) for topic in ("docs", "api")})

    driver = Driver(body)
    for key in ("parallel/docs/bash", "parallel/api/bash"):
        driver.answer(key, {"exit_code": 0, "stdout": key, "stderr": ""})
        driver.crash()
    driver.answer("parallel/api/writer", "A")
    driver.crash()
    assert ended(driver.answer("parallel/docs/writer", "D")).output == {"docs": "D", "api": "A"}
