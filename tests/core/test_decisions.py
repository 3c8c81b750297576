"""What a body sees and decides between two receipts (SEMANTICS §1, §5)."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest
from tests.core.bodies import one, two
from tests.core.driving import Driver, ended, result_of

from hermes_workflows.authoring import agent, ask, bash, log, step, workflow
from hermes_workflows.core.calls import current_run
from hermes_workflows.core.history import fold
from hermes_workflows.core.live import advance
from hermes_workflows.core.redaction import Redactor
from hermes_workflows.errors import (
    AgentFailed,
    BashFailed,
    CallFailed,
    ChildFailed,
    InvalidInput,
    ReviewFailed,
    StepFailed,
)


@dataclass
class Draft:
    title: str
    tags: tuple[str, ...] = ()


@workflow
async def child(inputs: int) -> int:
    return inputs


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_request_goes_out_at_the_first_await_and_not_where_it_is_written() -> None:
    @workflow
    async def body() -> Any:
        later = two()
        return await one() + await later

    driver = Driver(body)
    assert driver.open == ["one"]
    assert [call.key for call in driver.answer("one").requested] == ["two"]


def test_awaiting_a_call_again_gives_the_same_outcome_without_asking_again() -> None:
    @workflow
    async def body() -> Any:
        call, failing = one(), two()
        values = [await call, await call]
        for _ in range(2):
            try:
                await failing
            except StepFailed as error:
                values.append(str(error))
        return values

    driver = Driver(body)
    driver.answer("one")
    driver.answer("two", error="broken")
    assert ended(driver.decision).output == [1, 1, "step call two: broken", "step call two: broken"]
    assert driver.requested == ["one", "two"]


def test_several_awaiters_share_one_call() -> None:
    @workflow
    async def body() -> Any:
        call = one(4)

        async def waits() -> Any:
            return await call

        return await asyncio.gather(waits(), waits(), call, call)

    driver = Driver(body)
    assert driver.requested == ["one"]
    assert ended(driver.answer("one")).output == [4, 4, 4, 4]


def test_no_awaiter_sees_what_another_one_did_to_its_value() -> None:
    @workflow
    async def body() -> Any:
        call = agent("lister", returns=list)
        first = await call
        first.append("mine")
        return [first, await call]

    driver = Driver(body)
    assert ended(driver.answer("lister", ["given"])).output == [["given", "mine"], ["given"]]


def test_suspension_is_no_exception_that_a_body_could_catch() -> None:
    @workflow
    async def body() -> Any:
        seen: list[str] = []
        try:
            await bash("make")
        except BaseException as error:
            seen.append(type(error).__name__)
            raise
        finally:
            seen.append("finally")
        return seen

    driver = Driver(body)
    assert driver.decision.end is None
    assert driver.open == ["bash"]
    driver.answer("bash", {"exit_code": 0, "stdout": "", "stderr": ""})
    assert ended(driver.decision).output == ["finally"]


# -- what the body sees ----------------------------------------------------------------------------------------------


def test_the_body_sees_only_values_decoded_from_committed_bytes() -> None:
    @workflow
    async def body() -> Any:
        answer = await agent("sorter", returns=dict)
        draft = await agent("writer", returns=Draft)
        return [list(answer), type(draft).__name__, draft.tags == ("a", "b")]

    driver = Driver(body)
    # Receipts are written with sorted keys: the order of the answer itself must not be seen, not even live.
    driver.answer("sorter", {"b": 1, "a": 2})
    driver.answer("writer", {"title": "t", "tags": ["a", "b"]})
    assert ended(driver.decision).output == [["a", "b"], "Draft", True]


def test_the_input_is_the_recorded_one_typed() -> None:
    @workflow
    async def body(inputs: Draft) -> Any:
        return [type(inputs).__name__, inputs.title, list(inputs.tags)]

    assert result_of(body, {"title": "t", "tags": ["x"]}) == ["Draft", "t", ["x"]]


def test_an_input_that_no_longer_fits_is_told_before_the_body_runs() -> None:
    @workflow
    async def body(inputs: Draft) -> Any:
        raise AssertionError("never")

    with pytest.raises(InvalidInput, match="/title"):
        Driver(body, {"name": "t"})


def test_requests_are_redacted_before_they_are_fingerprinted() -> None:
    @workflow
    async def body() -> Any:
        await agent("writer", prompt="the key is hunter2-hunter2")

    driver = Driver(body, redactor=Redactor({"PASSWORD": "hunter2-hunter2"}))
    other = Driver(body, redactor=Redactor({"PASSWORD": "hunter2-hunter2"}))
    assert driver.call("writer").request["prompt"] == "the key is [redacted:PASSWORD]"
    assert driver.call("writer").fingerprint == other.call("writer").fingerprint


def test_a_secret_goes_to_a_command_by_name() -> None:
    from hermes_workflows.authoring import secret

    @workflow
    async def body() -> Any:
        await bash("deploy", env={"TOKEN": secret("DEPLOY_TOKEN"), "STAGE": "live"})

    driver = Driver(body)
    assert driver.call("bash").request["env"] == {"TOKEN": {"secret": "DEPLOY_TOKEN"}, "STAGE": "live"}


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "key", "error"),
    [
        (lambda: agent("writer"), "writer", AgentFailed),
        (lambda: bash("make"), "bash", BashFailed),
        (lambda: one(1), "one", StepFailed),
        (lambda: ask("well?"), "ask", ReviewFailed),
        (lambda: child(1), "child", ChildFailed),
    ],
)
def test_a_failed_call_raises_its_own_kind_of_call_failed(make: Any, key: str, error: type[Exception]) -> None:
    @workflow
    async def body() -> Any:
        try:
            return await make()
        except CallFailed as failed:
            return [type(failed) is error, failed.key, failed.details["type"], str(failed).endswith(": broken")]

    driver = Driver(body)
    assert ended(driver.answer(key, error="broken")).output == [True, key, "Broken", True]


def test_an_uncaught_failure_fails_the_run_and_names_the_call() -> None:
    @workflow
    async def body() -> Any:
        await one()

    driver = Driver(body)
    end = ended(driver.answer("one", error="broken"))
    assert (end.status, end.error.type, end.error.message) == ("failed", "StepFailed", "step call one: broken")
    assert end.error.details == {"key": "one"}
    assert "await one()" in end.traceback


def test_bash_returns_its_result_whatever_the_exit_code_and_raises_under_check() -> None:
    @workflow
    async def body() -> Any:
        result = await bash("grep x")
        try:
            await bash("grep x", check=True)
        except BashFailed as failed:
            return [result.exit_code, result.ok, failed.result.exit_code, str(failed)]

    driver = Driver(body)
    for key in ("bash", "bash-2"):
        driver.answer(key, {"exit_code": 1, "stdout": "", "stderr": "nothing\nfound\n"})
    assert ended(driver.decision).output == [1, False, 1, "bash call bash-2 exited 1: found"]


def test_a_command_that_is_not_utf_8_is_read_exactly() -> None:
    @workflow
    async def body() -> Any:
        result = await bash("cat")
        return [result.stdout, result.stdout_bytes == b"\xf0!", result.stderr_bytes == b"x\r\n", result.truncated]

    output = {"exit_code": 0, "stdout": "�!", "stdout_bytes": b"\xf0!", "stderr": "x\r\n", "truncated": True}
    assert ended(Driver(body).answer("bash", output)).output == ["�!", True, True, True]


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: agent("a", prompt="go", input={"x": [1, float("nan")]}), "/input/x/1"),
        (lambda: agent("a", input={"x": object()}), "/input/x"),
        (lambda: agent("a", prompt="\ud800"), "/prompt"),
        (lambda: ask("well?", key="a", input={1: 2}), "/input/1"),
        (lambda: bash("echo \ud800", key="a"), "/command"),
        (lambda: step(_takes_anything)({"x": object()}), "/arguments/value/x"),
        (lambda: child_of_anything({"x": float("inf")}, key="a"), "/input/x"),
    ],
)
def test_a_request_that_no_receipt_can_hold_fails_the_call_naming_key_and_place(make: Any, place: str) -> None:
    @workflow
    async def body() -> Any:
        call = make()
        try:
            await call
        except CallFailed as failed:
            return [failed.key == call.key, str(failed)]

    driver = Driver(body)
    assert driver.requested == []
    same, message = ended(driver.decision).output
    assert same
    assert "its request cannot be stored" in message
    assert message.endswith(f" at {place}")


def _takes_anything(value: Any) -> None:
    pass


@workflow
async def child_of_anything(inputs: Any) -> Any:
    return inputs


def test_a_request_larger_than_a_receipt_fails_the_call_before_anything_is_executed() -> None:
    @workflow
    async def body() -> Any:
        await agent("reader", input=["x" * 1000] * 1100)

    driver = Driver(body)
    assert driver.requested == []
    assert ended(driver.decision).error.type == "AgentFailed"
    assert "bytes are more than a receipt" in ended(driver.decision).error.message


def test_a_long_prompt_is_no_large_request() -> None:
    @workflow
    async def body() -> Any:
        return await agent("reader", prompt="x" * 5_000_000, returns=str)

    assert ended(Driver(body).answer("reader", "fine")).output == "fine"


# -- what a step costs -----------------------------------------------------------------------------------------------


@workflow
async def counts(inputs: int) -> int:
    value = 0
    for _ in range(inputs):
        value = await one(value + 1)
    return value


def test_a_late_step_runs_as_few_callbacks_as_an_early_one() -> None:
    driver = Driver(counts, 300)
    created = []
    while driver.decision.end is None:
        before = driver.live.loop.next_number()
        driver.answer(driver.open[0])
        created.append(driver.live.loop.next_number() - before)
    assert set(created[:-1]) == {created[0]}
    assert len(driver.live.loop.tasks) == 0


@pytest.mark.decides_otherwise("the test forgets its receipts")
def test_what_is_kept_of_a_step_that_is_behind_is_little() -> None:
    driver = Driver(counts, 1100)

    def goes_on(steps: int) -> int:
        for _ in range(steps):
            driver.answer(driver.open[0])
            # The driver is the one to forget its receipts, and what was decided.
            driver.receipts[-1] = driver.started
            driver.moments.clear()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = goes_on(100)
        grown = goes_on(1000) - early
    finally:
        tracemalloc.stop()
    # About 80 for the table of keys; the calls, receipts and values themselves are gone.
    assert grown / 1000 < 300


# -- the pure function -----------------------------------------------------------------------------------------------


def test_advance_decides_from_a_history_alone_and_leaves_nothing_behind() -> None:
    @workflow
    async def body() -> Any:
        try:
            return await one() + await two()
        finally:
            ran.append("finally")

    ran: list[str] = []
    driver = Driver(body)
    driver.answer("one")
    decision = advance("run", body, fold(driver.receipts))
    assert [call.key for call in decision.requested] == ["two"]
    assert ran == ["finally"]
    assert decision.after == driver.decision.after


def test_notes_are_never_delivered_to_the_body() -> None:
    @workflow
    async def body() -> Any:
        return await one()

    driver = Driver(body)
    attempt = driver.receipt_for(driver.call("one"), error="once").model_copy(
        update={"path": "steps/one.attempt-1.json"}
    )
    assert driver.live.take(attempt) is None
    assert driver.open == ["one"]
    assert ended(driver.answer("one")).output == 1


def test_log_speaks_with_the_decision_that_passes_it() -> None:
    @workflow
    async def body() -> Any:
        log("first")
        await one()
        log("second")
        await two()

    driver = Driver(body)
    assert driver.decision.logs == ("first",)
    assert driver.answer("one").logs == ("second",)
    _, decision = driver.rebuilt()
    assert decision.logs == ("second",)
    assert driver.answer("two").logs == ()


def test_current_run_is_that_of_the_body_even_inside_a_callback() -> None:
    @workflow
    async def body() -> Any:
        found: list[str] = []
        asyncio.get_running_loop().call_soon(lambda: found.append(current_run("x").run_id))
        await asyncio.sleep(0)
        return found

    assert ended(Driver(body, run_id="mine").decision).output == ["mine"]
