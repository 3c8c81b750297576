"""Runs that are cancelled with --now: their end is a fact of the receipts, and says what it cut off."""

from __future__ import annotations

from typing import Any

from tests.core.bodies import one, tidy, two
from tests.core.driving import Driver, ended, open_keys

from hermes_workflows.authoring import agent, bash, parallel, workflow


@workflow
async def cleans_up() -> Any:
    try:
        return await agent("writer")
    finally:
        await bash("rm -r build")
        await tidy()


def test_a_run_that_is_cancelled_at_once_ends_in_that_decision_and_its_body_is_not_told() -> None:
    driver = Driver(cleans_up)
    decision = driver.cancel(now=True)
    end = ended(decision)
    assert (end.status, end.error.type) == ("cancelled", "CleanupSkipped")
    assert end.error.message == "its cleanup was skipped; it cut off writer"
    assert end.error.details == {"cut_off": ["writer"]}
    assert open_keys(decision.cancelled) == ["writer"]
    assert (decision.requested, driver.open) == ((), [])


def test_a_cleanup_that_goes_on_is_cut_off_by_a_second_request() -> None:
    driver = Driver(cleans_up)
    driver.cancel()
    end = ended(driver.cancel(now=True))
    assert (end.status, end.error.type) == ("cancelled", "CleanupCutOff")
    assert end.error.message == "the rest of its cleanup was skipped; it cut off bash"


def test_an_end_at_once_is_decided_again_from_the_receipts() -> None:
    driver = Driver(cleans_up)
    end = ended(driver.cancel(now=True))
    driver.crash()
    assert ended(driver.decision) == end
    # What was killed leaves its receipt, before the end or after it.
    killed = driver.receipt_for(driver.live.withdrawn["writer"], error="killed")
    driver.record(killed.model_copy(update={"status": "cancelled"}))
    driver.crash()
    assert ended(driver.decision) == end


def test_all_that_was_open_is_named_and_a_long_list_is_cut_in_the_message_only() -> None:
    @workflow
    async def body() -> Any:
        return await parallel([one(), two(), *(tidy(n) for n in range(5))])

    error = ended(Driver(body).cancel(now=True)).error
    assert error.message == "its cleanup was skipped; it cut off one, two, tidy, tidy-2, tidy-3 and 2 more"
    assert len(error.details["cut_off"]) == 7


def test_a_run_that_is_cancelled_at_once_after_its_end_has_ended_already() -> None:
    @workflow
    async def body() -> Any:
        return await one()

    driver = Driver(body)
    driver.answer("one")
    assert ended(driver.cancel(now=True)).status == "completed"
