"""When the present code decides otherwise than the receipts (SEMANTICS §3, notes/core.md (g))."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from tests.core.bodies import one, tidy, two
from tests.core.diverging import divergence_of, history, played, recorded
from tests.core.driving import Driver, ended

from hermes_workflows.authoring import Workflow, agent, ask, bash, parallel, step, workflow
from hermes_workflows.core.receipts import Receipt
from hermes_workflows.errors import Divergence


@dataclass
class Review:
    """A form."""

    action: Literal["approve", "revise"]
    feedback: str = ""


# -- what is found ---------------------------------------------------------------------------------------------------


def test_the_same_code_replays_cleanly() -> None:
    live, decision = history().rebuilt(recorded)
    assert [call.key for call in decision.requested] == ["two"]
    assert list(live.outstanding) == ["two"]


def test_a_changed_prompt_is_a_divergence_and_not_an_old_answer() -> None:
    @workflow
    async def changed() -> Any:
        first = await agent("writer", prompt="Write on code", returns=str)
        return [first, await one(1), await two()]

    error = divergence_of(history(), changed)
    assert error.details is not None
    assert "agent 'writer' was recorded with another request" in error.message
    assert '-  "prompt": "Write on docs",' in error.details["request_diff"]
    assert '+  "prompt": "Write on code",' in error.details["request_diff"]


def test_a_renamed_call_is_found_in_the_decision_that_changed() -> None:
    @workflow
    async def renamed() -> Any:
        first = await agent("author", prompt="Write on docs", returns=str)
        return [first, await one(1), await two()]

    error = divergence_of(history(), renamed)
    line = renamed.fn.__code__.co_firstlineno + 2
    assert "does not request agent 'writer', which was recorded" in error.message
    assert error.message.endswith(f"it requests agent 'author', test_divergence.py:{line}")
    assert error.details is not None
    assert error.details["site"] == f"test_divergence.py:{line}"
    assert '-  "name": "writer",' in error.details["request_diff"]
    assert '+  "name": "author",' in error.details["request_diff"]


def test_a_call_that_nothing_stands_for_has_no_difference_to_show() -> None:
    @workflow
    async def inserted() -> Any:
        await bash("make")
        return await agent("writer", prompt="Write on docs", returns=str)

    error = divergence_of(history(), inserted)
    assert error.details is not None
    assert error.details["request_diff"] == ""
    assert error.details["site"] == f"test_divergence.py:{inserted.fn.__code__.co_firstlineno + 2}"


def test_a_call_inserted_before_is_found() -> None:
    @workflow
    async def inserted() -> Any:
        await bash("make")
        first = await agent("writer", prompt="Write on docs", returns=str)
        return [first, await one(1), await two()]

    assert "it requests bash 'bash'" in divergence_of(history(), inserted).message


def test_a_removed_call_is_found() -> None:
    @workflow
    async def removed() -> Any:
        first = await agent("writer", prompt="Write on docs", returns=str)
        return [first, await two()]

    assert (
        "does not request step 'one', which was recorded; it requests step 'two'"
        in divergence_of(history(), removed).message
    )


def test_a_body_that_ends_too_early_is_found() -> None:
    @workflow
    async def shorter() -> Any:
        return await agent("writer", prompt="Write on docs", returns=str)

    assert divergence_of(history(), shorter).message.endswith("it has ended")


def test_a_body_that_waits_elsewhere_is_found_with_its_line() -> None:
    @workflow
    async def waits() -> Any:
        await agent("writer", prompt="Write on docs", returns=str)
        await asyncio.Event().wait()

    line = waits.fn.__code__.co_firstlineno + 3
    assert divergence_of(history(), waits).message.endswith(f"it waits at test_divergence.py:{line}")


def test_another_kind_under_the_same_key_is_found() -> None:
    @workflow
    async def other_kind() -> Any:
        return await bash("make", name="writer")

    assert "the present code makes it bash" in divergence_of(history(), other_kind).message


def test_another_order_is_found_although_every_request_is_the_same() -> None:
    @workflow
    async def reordered() -> Any:
        second = await one(1)
        return [await agent("writer", prompt="Write on docs", returns=str), second, await two()]

    assert "does not request agent 'writer'" in divergence_of(history(), reordered).message


def test_a_call_moved_to_an_earlier_decision_is_found() -> None:
    @workflow
    async def earlier() -> Any:
        return await parallel([agent("writer", prompt="Write on docs", returns=str), one(1), two()])

    error = divergence_of(history(), earlier)
    assert "step 'one' was recorded at another point of the run" in error.message


def test_calls_of_one_decision_are_compared_as_a_set() -> None:
    @workflow
    async def one_order() -> Any:
        return await parallel({"a": one(1), "b": two(2)})

    @workflow
    async def other_order() -> Any:
        return await parallel({"b": two(2), "a": one(1)})

    driver = played(one_order, two=None)
    assert list(driver.rebuilt(other_order)[0].outstanding) == ["one"]


def test_a_requested_call_without_a_receipt_may_change() -> None:
    # Nothing of it is recorded: a step that is executing belongs to the queue, which is no truth.
    @workflow
    async def changed() -> Any:
        first = await agent("writer", prompt="Write on docs", returns=str)
        return [first, await one(1), await tidy()]

    assert list(history().rebuilt(changed)[0].outstanding) == ["tidy"]


def test_a_recorded_question_proves_its_request_before_any_answer() -> None:
    @workflow
    async def before() -> Any:
        return await ask("well?", key="review")

    @workflow
    async def changed() -> Any:
        return await ask("really?", key="review")

    assert "review 'review' was recorded with another request" in divergence_of(Driver(before), changed).message


def test_a_started_timer_proves_its_request_before_it_fires() -> None:
    @workflow
    async def before() -> Any:
        await asyncio.sleep(5)

    @workflow
    async def changed() -> Any:
        await asyncio.sleep(7)

    assert "timer 'timer' was recorded with another request" in divergence_of(Driver(before), changed).message


def test_the_request_that_failed_attempts_prove_is_compared_too() -> None:
    @workflow
    async def changed() -> Any:
        return await agent("writer", prompt="Write on code", returns=str)

    driver = Driver(recorded)
    attempt = driver.receipt_for(driver.call("writer"), error="once")
    driver.receipts.append(attempt.model_copy(update={"path": "steps/writer.attempt-1.json"}))
    assert "was recorded with another request" in divergence_of(driver, changed).message


def test_the_fingerprint_of_a_cancelled_call_is_compared_when_its_receipt_comes() -> None:
    def times_out(prompt: str) -> Workflow[Any]:
        @workflow
        async def body() -> Any:
            try:
                async with asyncio.timeout(5):
                    return await agent("writer", prompt=prompt)
            except TimeoutError:
                return await one()

        return body

    driver = played(times_out("docs"), timer=None)
    driver.late("writer", "cancelled")
    assert divergence_of(driver, times_out("code")).details is not None


def test_a_result_for_a_call_that_was_never_requested_is_a_divergence_live_too() -> None:
    driver = history()
    stray = driver.receipt_for(driver.call("two")).model_copy(update={"key": "three", "path": "steps/three.json"})
    with pytest.raises(Divergence):
        driver.record(stray)


def test_a_result_that_another_decision_requested_is_a_divergence_live_too() -> None:
    driver = history()
    made = driver.receipt_for(driver.call("two"))
    other = made.execution.model_copy(update={"requested_after": 1})
    with pytest.raises(Divergence, match="step 'two' was recorded at another point of the run") as caught:
        driver.record(made.model_copy(update={"execution": other}))
    assert caught.value.details is not None
    assert not caught.value.details["permutation"]


def test_a_given_up_receipt_for_a_call_that_the_body_waits_for_is_a_divergence() -> None:
    driver = history()
    given_up = driver.receipt_for(driver.call("two"), error="stopped").model_copy(update={"status": "cancelled"})
    with pytest.raises(Divergence, match="given up when it was recorded"):
        driver.record(given_up)


def test_two_results_for_one_call_are_a_divergence() -> None:
    driver = Driver(recorded)
    receipt: Receipt = driver.receipt_for(driver.call("writer"), "text")
    driver.record(receipt)
    with pytest.raises(Divergence):
        driver.record(receipt.model_copy(update={"path": "steps/writer-x.json"}))


# -- outputs ---------------------------------------------------------------------------------------------------------


def _counting(tp: Any) -> Any:
    def count() -> Any:
        return 1

    count.__annotations__["return"] = tp
    return step(count)


def test_an_output_that_no_longer_fits_its_type_is_a_divergence_and_no_failure_of_the_run() -> None:
    @workflow
    async def before() -> Any:
        return await _counting(int)() + await one()

    @workflow
    async def after() -> Any:
        try:
            return await _counting(dict)()
        except Exception:
            return "swallowed"

    error = divergence_of(played(before, count=None), after)
    assert "the recorded output of step 'count' does not fit dict" in error.message
    assert "test_divergence.py:" in error.message


def test_an_output_that_fits_the_new_type_too_is_taken() -> None:
    @workflow
    async def before() -> Any:
        return await _counting(int)() + await one()

    @workflow
    async def after() -> Any:
        return await _counting(float)() + await one()

    assert list(played(before, count=None).rebuilt(after)[0].outstanding) == ["one"]


# -- what is not in the request --------------------------------------------------------------------------------------


def test_timeouts_retries_labels_and_mocks_are_no_part_of_a_request() -> None:
    from hermes_workflows.authoring import Retry

    @workflow
    async def before() -> Any:
        await agent("writer", prompt="go", timeout=5)
        await bash("make", key="make")
        await ask("well?", key="review", returns=Review, expires=60)

    @workflow
    async def after() -> Any:
        await agent("writer", prompt="go", timeout=9, retry=Retry(attempts=7), mock_output={"x": 1})
        await bash("make", key="make", timeout=9, check=True, retry=Retry(attempts=2))
        await ask("well?", key="review", returns=Review, expires=90, on_expiry=Review("revise"))

    output = {"exit_code": 0, "stdout": "", "stderr": ""}
    driver = played(before, writer={}, make=output, review={"action": "approve", "feedback": ""})
    assert ended(driver.rebuilt(after)[1]).status == "completed"


def test_titles_and_descriptions_of_a_form_are_no_part_of_a_request() -> None:
    @dataclass
    class Same:
        """Another title, other words, the fields in another order of appearance."""

        action: Literal["revise", "approve"]
        feedback: str = "none"

    Same.__name__ = "Titled"

    def asks(returns: Any) -> Workflow[Any]:
        @workflow
        async def body() -> Any:
            await ask("well?", key="review", returns=returns)

        return body

    driver = played(asks(Review), review={"action": "approve", "feedback": ""})
    assert ended(driver.rebuilt(asks(Same))[1]).status == "completed"
