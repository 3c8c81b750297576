"""Keys: claimed where a call is written, in the scope of its task (SEMANTICS §2, notes/core.md (d))."""

from __future__ import annotations

import asyncio
import contextvars
import enum
import types
from typing import Any

import pytest
from tests.core.bodies import one, two
from tests.core.driving import Driver, ended, keys_of

from hermes_workflows.authoring import agent, ask, bash, goal, parallel, pipeline, step, workflow
from hermes_workflows.core.scopes import Scope
from hermes_workflows.errors import InvalidInput, UnstorableValue


class Topic(enum.Enum):
    DOCS = "docs"


def requested(body: Any, inputs: Any = None) -> list[str]:
    """The keys that the first decision requests."""
    return Driver(body, inputs).requested


def test_a_call_without_a_name_is_called_by_its_kind() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(bash("ls"), agent(prompt="go"), ask("well?"))

    assert requested(body) == ["bash", "agent", "ask"]


def test_a_name_comes_from_the_first_argument_or_name_and_repeats_are_numbered() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("writer"), agent("writer"), bash("ls", name="list"), one(), one(), one())

    assert requested(body) == ["writer", "writer-2", "list", "one", "one-2", "one-3"]


def test_key_by_names_the_call_by_a_value() -> None:
    @workflow
    async def body() -> Any:
        values = ["docs", 3, True, Topic.DOCS, ("a", 1), "Über alles/x"]
        await asyncio.gather(*(agent("reader", key_by=value) for value in values[:3]))
        await asyncio.gather(*(agent("writer", key_by=value) for value in values[3:]))

    first, second = Driver(body), Driver(body)
    assert first.requested == ["reader/docs", "reader/3", "reader/true"]
    for driver in (first, second):
        for key in driver.open:
            driver.answer(key, {})
    assert first.requested == second.requested
    assert first.requested[3] == "writer/docs"
    assert all(key.count("/") == 1 for key in first.requested)


def test_key_by_refuses_a_value_that_only_has_an_address() -> None:
    @workflow
    async def body() -> Any:
        agent("reader", key_by=object())

    end = ended(Driver(body).decision)
    assert (end.error.type, "object" in end.error.message) == (UnstorableValue.__name__, True)


def test_two_calls_with_one_key_by_clash() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("reader", key_by=1), agent("reader", key_by=1))

    end = ended(Driver(body).decision)
    assert end.error.type == "KeyClash"


def test_a_key_is_claimed_where_the_call_is_written_not_where_it_is_awaited() -> None:
    @workflow
    async def body() -> Any:
        async def waits(call: Any) -> Any:
            return await call

        late, early = one(), one()
        await asyncio.create_task(waits(early), name="other")
        await late

    driver = Driver(body)
    assert driver.requested == ["one-2"]
    driver.answer("one-2")
    assert driver.requested == ["one-2", "one"]


def test_a_scope_opens_for_a_coroutine_that_runs_as_a_task_of_its_own() -> None:
    @workflow
    async def body() -> Any:
        async def review() -> Any:
            return await one()

        await asyncio.gather(review(), review(), asyncio.create_task(review(), name="docs-review"))
        await review()

    assert keys_of(body) == ["docs-review/one", "review/one", "review-2/one", "one"]


def test_scopes_are_numbered_in_creation_order() -> None:
    @workflow
    async def body() -> Any:
        async def review(value: int) -> Any:
            return await one(value)

        tasks = [asyncio.create_task(review(n)) for n in range(3)]
        await asyncio.gather(*reversed(tasks))

    driver = Driver(body)
    arguments = {call.key: call.request["arguments"] for call in driver.live.outstanding.values()}
    assert arguments == {"review/one": {"value": 0}, "review-2/one": {"value": 1}, "review-3/one": {"value": 2}}


def test_a_task_group_names_its_tasks_before_they_start() -> None:
    @workflow
    async def body() -> Any:
        async def review() -> Any:
            return await one()

        async with asyncio.TaskGroup() as group:
            group.create_task(review(), name="ops")
            group.create_task(review())

    assert keys_of(body) == ["ops/one", "review/one"]


def test_parallel_pipeline_and_goal_open_numbered_scopes() -> None:
    @workflow
    async def body() -> Any:
        async def draft(topic: str = "") -> Any:
            return await one()

        await parallel({"docs": draft(), "api": draft()})
        await pipeline(["a", "b"], draft, lambda value: two())
        await goal(lambda: one(1), lambda value: two(), max_iters=2)

    keys = _until_exhausted(body)
    assert keys == [
        "parallel/docs/one", "parallel/api/one",
        "pipeline/0/one", "pipeline/1/one", "pipeline/0/two", "pipeline/1/two",
        "goal/1/one", "goal/1/two", "goal/2/one", "goal/2/two",
    ]  # fmt: skip


def _until_exhausted(body: Any) -> list[str]:
    driver = Driver(body)
    assert ended(driver.to_the_end()).error.type == "GoalExhausted"
    return driver.requested


def test_a_second_composition_of_a_kind_is_numbered() -> None:
    @workflow
    async def body() -> Any:
        async def draft() -> Any:
            return await one()

        await parallel([draft()])
        await parallel([draft(), parallel([draft()])])

    assert keys_of(body) == ["parallel/0/one", "parallel-3/0/one", "parallel-2/0/one"]


def test_calls_handed_to_parallel_or_gather_stay_in_the_scope_where_they_were_written() -> None:
    @workflow
    async def body() -> Any:
        async def inner() -> Any:
            await parallel([one(), two()])
            await asyncio.gather(one(), two())

        await asyncio.create_task(inner(), name="in")

    assert keys_of(body) == ["in/one", "in/two", "in/one-2", "in/two-2"]


def test_wait_for_timeout_and_shield_open_no_scope() -> None:
    @workflow
    async def body() -> Any:
        async def draft() -> Any:
            return await one()

        await asyncio.wait_for(draft(), 5)
        async with asyncio.timeout(5):
            await draft()
        await asyncio.wait_for(one(), 5)
        await asyncio.shield(one())

    calls = [key for key in _without_timers(body) if not key.startswith("timer")]
    assert calls == ["one", "one-2", "one-3", "one-4"]


def _without_timers(body: Any) -> list[str]:
    driver = Driver(body)
    driver.to_the_end(lambda keys: next(key for key in keys if not key.startswith("timer")))
    return driver.requested


def test_what_gather_wraps_around_an_awaitable_is_no_task_of_the_author() -> None:
    @workflow
    async def body() -> Any:
        async def write() -> Any:
            return asyncio.current_task().get_name()  # type: ignore[union-attr]

        return await asyncio.gather(goal(write, lambda value: True), goal(write, lambda value: True))

    end = ended(Driver(body).decision)
    assert end.output == ["body", "body"]


def test_an_explicit_key_is_absolute_in_its_run() -> None:
    @workflow
    async def body() -> Any:
        async def draft() -> Any:
            return await bash("ls", key="listing/all")

        await parallel([draft()])

    assert requested(body) == ["listing/all"]


def test_inside_a_goal_the_round_is_appended_to_an_explicit_key_from_the_second_on() -> None:
    @workflow
    async def body() -> Any:
        await goal(lambda: one(1), lambda value: ask("ok?", key="review", returns=bool), max_iters=3)

    driver = Driver(body)
    for key in ("goal/1/one", "review", "goal/2/one", "review-2", "goal/3/one", "review-3"):
        driver.answer(key, None if key.endswith("one") else key == "review-3")
    assert ended(driver.decision).status == "completed"


def test_nested_goals_keep_explicit_keys_apart() -> None:
    @workflow
    async def body() -> Any:
        async def inner() -> Any:
            return await goal(lambda: bash("x", key="x"), lambda result: result.exit_code == 0, max_iters=2)

        await goal(inner, lambda result: result.stdout == "good", max_iters=2)

    driver = Driver(body)
    for key, exit_code, stdout in (("x", 1, ""), ("x-1-2", 0, "bad"), ("x-2-1", 0, "good")):
        driver.answer(key, {"exit_code": exit_code, "stdout": stdout, "stderr": ""})
    assert ended(driver.decision).status == "completed"


def test_two_calls_with_one_key_fail_the_run_with_both_call_sites_named() -> None:
    @workflow
    async def body() -> Any:
        await bash("a", key="same")
        await bash("b", key="same")

    driver = Driver(body, root=str(__file__).rpartition("/")[0])
    driver.answer("same", {"exit_code": 0, "stdout": "", "stderr": ""})
    end = ended(driver.decision)
    assert end.error.type == "KeyClash"
    line = body.fn.__code__.co_firstlineno
    assert f"'same': test_keys.py:{line + 2} and test_keys.py:{line + 3}" in end.error.message


def test_a_swallowed_key_clash_fails_the_run_all_the_same() -> None:
    @workflow
    async def body() -> Any:
        results = [bash("a", key="same")]
        try:
            results.append(bash("b", key="same"))
        except Exception:
            results.append(results[0])
        return await results[1]

    decision = Driver(body).decision
    assert ended(decision).error.type == "KeyClash"
    assert decision.requested == ()


def test_a_body_that_retries_a_clashing_key_for_ever_comes_to_an_end() -> None:
    @workflow
    async def body() -> Any:
        while True:
            try:
                await bash("deploy", key="deploy", check=True)
            except Exception:
                continue

    driver = Driver(body)
    driver.answer("deploy", {"exit_code": 1, "stdout": "", "stderr": ""})
    assert ended(driver.decision).error.type == "KeyClash"


def test_generated_and_explicit_keys_clash_with_both_sites_named() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("review"), agent("review"), ask("well?", key="review-2"))

    end = ended(Driver(body).decision)
    assert end.error.type == "KeyClash"
    assert end.error.message.count("test_keys.py:") == 2


def test_a_name_that_looks_like_a_repeat_never_meets_one() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("w"), agent("w-2"), agent("w"), agent("w"), agent("w-2"), agent("w-3"))

    assert requested(body) == ["w", "w-2", "w-3", "w-4", "w-2-2", "w-3-2"]


def test_every_order_of_names_gives_different_components() -> None:
    names = ["w", "w-2", "w", "w-3", "w-2", "w-2-2", "w", "w-4", "w-1", "w", "w"]
    for turn in range(len(names)):
        scope = Scope()
        claimed = [scope.claim(name) for name in (*names[turn:], *names[:turn])]
        assert len(set(claimed)) == len(names)


def test_a_callback_without_a_task_writes_at_the_root() -> None:
    @workflow
    async def body() -> Any:
        written: list[Any] = []

        async def inner() -> Any:
            asyncio.get_running_loop().call_soon(lambda: written.append(one()))
            await asyncio.sleep(0)
            return await written[0]

        await asyncio.create_task(inner(), name="in")

    assert keys_of(body) == ["one"]


def test_two_tasks_that_share_one_context_have_scopes_of_their_own() -> None:
    @workflow
    async def body() -> Any:
        async def review() -> Any:
            await one()
            await two()

        context = contextvars.copy_context()
        tasks = [asyncio.create_task(review(), name=name, context=context) for name in "ab"]
        await asyncio.gather(*tasks)

    assert keys_of(body) == ["a/one", "b/one", "a/two", "b/two"]


def test_a_task_is_called_by_its_scope_and_not_by_a_counter_of_the_process() -> None:
    @workflow
    async def body() -> Any:
        async def review() -> Any:
            return asyncio.current_task().get_name()  # type: ignore[union-attr]

        return [await review(), *await asyncio.gather(review(), review()), *await parallel({"docs": review()}.values())]

    end = ended(Driver(body).decision)
    assert end.output == ["body", "review", "review-2", "parallel/0"]


def test_two_modules_with_a_step_of_one_name_run_their_own() -> None:
    @workflow
    async def body() -> Any:
        return [await step(fetch)() for fetch in (_fetch_of("north"), _fetch_of("south"))]

    driver = Driver(body)
    assert ended(driver.to_the_end()).output == ["north", "south"]
    assert driver.requested == ["fetch", "fetch-2"]
    functions = [receipt.request["function"] for receipt in driver.receipts[1:]]
    assert functions == ["north:fetch", "south:fetch"]


def _fetch_of(module: str) -> Any:
    made = types.ModuleType(module)
    exec(f"def fetch() -> str:\n    return {module!r}", made.__dict__)
    return made.fetch


def test_a_key_with_nothing_in_it_is_refused_where_it_is_written() -> None:
    for key in ("", "///", 5):
        with pytest.raises(InvalidInput):
            Scope().key("bash", key=key)  # type: ignore[arg-type]


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name must be text, not int"):
        Scope().key(5)  # type: ignore[arg-type]


def test_names_of_any_text_become_safe_components() -> None:
    @workflow
    async def body() -> Any:
        await asyncio.gather(agent("../etc"), agent("con"), agent("a/b"), agent("Ünïcode 🙂"), agent("request"))

    keys = requested(body)
    assert len(set(keys)) == 5
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-") for key in keys)
