"""`child` and `map_workflow`: keys and results; how children run is the runner's (tests/runner/test_children.py)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.driving import Driver, ended

from hermes_workflows.authoring import bash, child, map_workflow, workflow
from hermes_workflows.errors import AuthoringError


@workflow
async def check(inputs: str) -> int:
    return len((await bash(inputs)).stdout)


def test_a_child_is_the_workflow_called_under_a_key_of_choice() -> None:
    @workflow
    async def body() -> Any:
        return [await check("a"), await child(check, "b", key="own/key"), await child(check, "c", key_by="c")]

    driver = Driver(body)
    for key, value in (("check", "a"), ("own/key", "b"), ("check/c", "c")):
        assert driver.call(key).request == {"workflow": f"{__name__}:check", "input": value}
        driver.answer(key, len(key))
    assert ended(driver.decision).output == [5, 7, 7]


def test_each_item_is_named_by_what_it_is_and_results_stand_in_their_order() -> None:
    @workflow
    async def body(items: list[str]) -> list[int]:
        return await map_workflow(check, items, lambda item: f"{item}-team", limit=2)

    driver = Driver(body, ["docs", "api", "web"])
    assert driver.open == ["check/docs-team", "check/api-team"]
    while driver.decision.end is None:
        key = driver.open[-1]
        driver.answer(key, len(driver.call(key).request["input"]))  # type: ignore[arg-type]
    assert ended(driver.decision).output == [4, 3, 3]


def test_a_child_keeps_its_key_when_the_list_around_it_changes() -> None:
    @workflow
    async def body(items: list[str]) -> list[int]:
        return await map_workflow(check, items, lambda item: item)

    assert Driver(body, ["b"]).open == ["check/b"]
    assert Driver(body, ["a", "b"]).open == ["check/a", "check/b"]


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([""], "gives no name for item 0"),
        (["a", "a"], "two calls claim the key 'check/a'"),
    ],
)
def test_an_item_without_a_name_of_its_own_fails_the_run(items: list[str], reason: str) -> None:
    @workflow
    async def body(items: list[str]) -> list[int]:
        return await map_workflow(check, items, lambda item: item)

    assert reason in ended(Driver(body, items).decision).error.message


def test_one_failure_among_many_is_raised_or_stands_among_the_results() -> None:
    @workflow
    async def body(kept: bool) -> Any:
        found = await map_workflow(check, ["a", "b"], lambda item: item, return_exceptions=kept)
        return [str(each) for each in found]

    raising, keeping = Driver(body, False), Driver(body, True)
    for driver in (raising, keeping):
        driver.answer("check/a", error="broken")
        driver.answer("check/b", 2)
    assert ended(raising.decision).error.type == "ChildFailed"
    assert ended(keeping.decision).output == ["child call check/a: broken", "2"]


def test_what_is_no_workflow_is_no_child() -> None:
    @workflow
    async def body() -> Any:
        return await child(len, "a")  # type: ignore[arg-type]

    assert "not a workflow" in ended(Driver(body).decision).error.message
    with pytest.raises(AuthoringError, match="not a workflow"):
        map_workflow(len, [], len)  # type: ignore[call-overload]
