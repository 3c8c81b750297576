"""`goal`: do, check, use the feedback, do again (SEMANTICS §9)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from tests.core.bodies import one
from tests.core.driving import Driver, ended, result_of

from hermes_workflows.authoring import agent, ask, bash, goal, workflow
from hermes_workflows.authoring.goal import accepted
from hermes_workflows.errors import AuthoringError, GoalExhausted


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


class Verdict(enum.Enum):
    APPROVE = "approve"
    REVISE = "revise"


def test_feedback_goes_to_the_next_round_until_it_is_approved() -> None:
    @workflow
    async def body() -> Any:
        async def write(draft: str | None, feedback: str | None) -> str:
            return str(await agent("writer", input=[draft, feedback], returns=str))

        return await goal(write, lambda draft: ask("ok?", key="review", returns=Review))

    driver = Driver(body)
    driver.answer("goal/1/writer", "first")
    driver.answer("review", {"action": "revise", "feedback": "shorter"})
    assert driver.call("goal/2/writer").request["input"] == ["first", "shorter"]
    driver.crash()
    driver.answer("goal/2/writer", "second")
    assert ended(driver.answer("review-2", {"action": "approve", "feedback": ""})).output == "second"


@pytest.mark.parametrize("verdict", [
    True, {"approved": True}, {"accepted": True}, {"ok": True}, {"passed": True}, {"action": "approve"},
    {"action": "Accept"}, SimpleNamespace(ok=True), SimpleNamespace(action=Verdict.APPROVE), Review("approve"),
])  # fmt: skip
def test_a_verdict_that_says_so_accepts(verdict: Any) -> None:
    assert accepted(verdict)


@pytest.mark.parametrize("verdict", [
    False, None, 1, "yes", {}, {"approved": False}, {"approved": False, "action": "approve"}, {"action": "revise"},
    {"ok": "true"}, SimpleNamespace(action=Verdict.REVISE), Review("revise"), object(),
])  # fmt: skip
def test_any_other_verdict_does_not(verdict: Any) -> None:
    assert not accepted(verdict)


def test_do_takes_nothing_the_value_or_the_value_and_the_feedback() -> None:
    @workflow
    async def body() -> Any:
        seen: list[Any] = []

        def verdict(_: Any) -> dict[str, Any]:
            return {"ok": len(seen) % 2 == 0, "feedback": len(seen)}

        await goal(lambda: seen.append("none"), verdict, initial="start")
        await goal(lambda value: seen.append(value) or value, verdict, initial="start")
        await goal(lambda value, feedback: seen.append([value, feedback]), verdict, initial="start")
        await goal(lambda *both: seen.append(list(both)), verdict)
        return seen

    assert result_of(body) == ["none", "none", "start", "start", ["start", None], [None, 5], [None, None], [None, 7]]


def test_a_command_may_be_the_check_by_its_exit_code() -> None:
    @workflow
    async def body() -> Any:
        return await goal(lambda: one(1), lambda value: bash("make test"))

    driver = Driver(body)
    for key, exit_code in (("goal/1/bash", 2), ("goal/2/bash", 0)):
        driver.answer(key.replace("bash", "one"))
        driver.answer(key, {"exit_code": exit_code, "stdout": "", "stderr": ""})
    assert ended(driver.decision).output == 1


def test_a_goal_that_is_not_reached_says_what_came_last() -> None:
    @workflow
    async def body() -> Any:
        try:
            await goal(lambda: one(1), lambda value: {"ok": False, "feedback": "no"}, max_iters=2)
        except GoalExhausted as error:
            return [error.last_result, error.last_check, str(error)]

    value, check, message = result_of(body)
    assert (value, check) == (1, {"ok": False, "feedback": "no"})
    assert message == "goal gave up after 2 rounds; the last check was {'ok': False, 'feedback': 'no'}"


def test_the_message_of_an_exhausted_goal_holds_no_address() -> None:
    @workflow
    async def body() -> Any:
        try:
            await goal(lambda: one(1), lambda value: object(), max_iters=1)
        except GoalExhausted as error:
            return str(error)

    assert result_of(body) == "goal gave up after 1 rounds; the last check was object"


def test_a_failure_inside_a_round_is_raised_at_once() -> None:
    @workflow
    async def body() -> Any:
        await goal(lambda: one(1), lambda value: True)

    assert ended(Driver(body).answer("goal/1/one", error="broken")).error.type == "StepFailed"


def test_twenty_rounds_are_the_default_and_none_is_refused() -> None:
    @workflow
    async def body() -> Any:
        rounds: list[int] = []
        try:
            await goal(lambda: rounds.append(1), lambda value: False)
        except GoalExhausted:
            with pytest.raises(AuthoringError, match="at least one round"):
                goal(one, bool, max_iters=0)
        return len(rounds)

    assert result_of(body) == 20
