"""How runs end, as it is recorded: results, errors, forgotten calls, bodies that nothing can wake (SEMANTICS §5)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver, ended

from hermes_workflows.authoring import ask, parallel, workflow
from hermes_workflows.core.redaction import Redactor


@dataclass
class Draft:
    title: str
    tags: tuple[str, ...] = ()


def test_a_workflow_that_returns_a_date_is_completed_with_its_text() -> None:
    @workflow
    async def body() -> Any:
        return {"at": datetime(2026, 11, 29, tzinfo=UTC)}

    end = ended(Driver(body).decision)
    assert (end.status, end.output) == ("completed", {"at": "2026-11-29T00:00:00Z"})


def _cyclic() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("value", [object(), {"x": {1: 2}}, _cyclic()])
def test_a_result_that_cannot_be_stored_fails_the_run_once_and_loudly(value: Any) -> None:
    @workflow
    async def body() -> Any:
        return value

    end = ended(Driver(body).decision)
    assert end.status == "failed"
    assert end.error.type == "UnstorableValue"


def test_a_result_of_another_type_than_declared_fails_the_run_naming_the_field() -> None:
    @workflow
    async def body() -> Draft:
        return Draft(title=5)  # type: ignore[arg-type]

    end = ended(Driver(body).decision)
    assert (end.status, "/title" in end.error.message) == ("failed", True)


def test_a_body_that_returns_with_a_call_never_awaited_fails_naming_the_line() -> None:
    @workflow
    async def body() -> Any:
        one()
        return await two()

    driver = Driver(body, root=str(__file__).rpartition("/")[0])
    end = ended(driver.to_the_end())
    line = body.fn.__code__.co_firstlineno + 2
    assert end.error.type == "CallNeverAwaited"
    assert end.error.message == f"step call one was written at test_ends.py:{line} and never awaited"
    assert end.error.details == {"hint": "await it, hand it to parallel(), or take it out"}


@pytest.mark.parametrize("kind", ["parallel", "pipeline", "goal"])
def test_a_composition_that_is_never_awaited_is_no_less_forgotten(kind: str) -> None:
    from hermes_workflows.authoring import goal, pipeline

    @workflow
    async def body() -> Any:
        {
            "parallel": lambda: parallel([], limit=1),
            "pipeline": lambda: pipeline([1], one),
            "goal": lambda: goal(one, bool),
        }[kind]()

    assert f"{kind} call {kind} was written at" in ended(Driver(body).decision).error.message


def test_a_call_of_an_open_task_is_not_forgotten_but_cancelled() -> None:
    @workflow
    async def body() -> Any:
        async def orphan() -> Any:
            call = two()
            await one()
            return await call

        task = asyncio.create_task(orphan())
        await tidy()
        return task.done()

    assert ended(Driver(body).answer("tidy")).output is False


@pytest.mark.parametrize(
    "hand_over",
    [asyncio.create_task, asyncio.gather, lambda call: asyncio.create_task(parallel([call]))],
)
def test_a_call_handed_to_a_task_is_not_forgotten_when_that_never_starts(hand_over: Any) -> None:
    @workflow
    async def body() -> Any:
        handed = hand_over(one())
        handed.cancel()
        return await two()

    assert ended(Driver(body).answer("two")).output == 2


def test_a_call_that_the_failure_of_its_task_jumped_over_is_not_forgotten() -> None:
    @workflow
    async def body() -> Any:
        async def branch() -> Any:
            later = two()
            await one()
            return await later

        return len(await asyncio.gather(branch(), return_exceptions=True))

    assert ended(Driver(body).answer("branch/one", error="broken")).output == 1


def test_a_failing_body_is_not_blamed_for_calls_it_never_came_to() -> None:
    @workflow
    async def body() -> Any:
        later = two()
        await one()
        await later

    assert ended(Driver(body).answer("one", error="broken")).error.type == "StepFailed"


def test_a_body_that_nothing_can_wake_is_stuck_and_its_lines_are_named() -> None:
    @workflow
    async def body() -> Any:
        async def waits(event: asyncio.Event) -> None:
            await event.wait()

        await one()
        await asyncio.gather(waits(asyncio.Event()), parallel([waits(asyncio.Event())]))

    driver = Driver(body, root=str(__file__).rpartition("/")[0])
    decision = driver.answer("one")
    first = body.fn.__code__.co_firstlineno
    assert decision.end is None
    assert decision.stuck == (
        f"nothing can wake the body, which waits at test_ends.py:{first + 6}, test_ends.py:{first + 3}"
    )


def test_a_body_that_a_timer_or_a_person_can_wake_is_not_stuck() -> None:
    @workflow
    async def body() -> Any:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(5, event.set)
        await event.wait()
        await ask("well?")

    driver = Driver(body)
    assert driver.decision.stuck is None
    assert driver.answer("timer").stuck is None


# -- errors as they are recorded ---------------------------------------------------------------------------------


def failing_with(error: BaseException) -> Any:
    @workflow
    async def body() -> Any:
        raise error

    return ended(Driver(body, redactor=Redactor({"PASSWORD": "hunter2-hunter2"})).decision)


def test_an_error_is_recorded_redacted_without_addresses_and_always_storable() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert failing_with(ValueError("hunter2-hunter2 leaked")).error.message == "[redacted:PASSWORD] leaked"
    assert "hunter2" not in failing_with(ValueError("hunter2-hunter2 leaked")).traceback
    assert failing_with(ValueError(f"bad {object()!r}")).error.message == "bad <object object>"
    assert failing_with(ValueError("\ud800")).error.message == "\\ud800"
    assert failing_with(Odd()).error.message == "Odd"
    assert failing_with(ValueError()).error.message == "ValueError"


def test_a_result_is_recorded_without_secrets_and_counts_them() -> None:
    @workflow
    async def flow() -> dict[str, str]:
        return {"login ana:hunter2-x": "hunter2-x"}

    end = ended(Driver(flow, redactor=Redactor({"PW": "hunter2-x"})).decision)
    assert end.output == {"login ana:[redacted:PW]": "[redacted:PW]"}
    assert end.redactions == {"PW": 2}


def test_a_result_that_no_longer_fits_its_type_without_a_secret_fails_the_run_and_says_so() -> None:
    @workflow
    async def flow() -> int:
        return 471147

    end = ended(Driver(flow, redactor=Redactor({"PIN": "471147"})).decision)
    assert end.status == "failed"
    assert end.error is not None
    assert end.error.message == "does not fit int: should be a valid integer, not '[redacted:PIN]'"


def test_a_group_of_errors_says_what_is_in_it() -> None:
    inner = ExceptionGroup("inner", [KeyError("k")])
    message = failing_with(ExceptionGroup("outer", [ValueError("v"), inner])).error.message
    assert message == "outer (2 sub-exceptions); ValueError: v; KeyError: 'k'"


def test_of_a_large_group_the_first_errors_are_told_and_the_others_counted() -> None:
    message = failing_with(ExceptionGroup("many", [ValueError(str(number)) for number in range(7)])).error.message
    assert message.endswith("; ValueError: 4; and 2 more")


def test_of_a_traceback_beyond_measure_the_end_is_kept_without_a_secret_at_the_cut() -> None:
    end = failing_with(ValueError("hunter2-hunter2 " * 40_000 + "the end"))
    assert end.traceback is not None
    assert end.traceback.endswith("[redacted:PASSWORD] the end\n")
    assert len(end.traceback) <= 20_000
    assert "hunter2" not in end.traceback
