"""Recorded answers that an operator keeps for a changed request (SEMANTICS §3, the third way out)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.core.driving import Driver, ended

from hermes_workflows.authoring import Workflow, agent, ask, bash, workflow
from hermes_workflows.core import layout
from hermes_workflows.core.receipts import ControlReceipt
from hermes_workflows.errors import Divergence


def versions(make: Callable[[str], Any]) -> tuple[Workflow[Any], Workflow[Any]]:
    """The code that was recorded, and the code as it is now: `make` writes their call."""

    def version(word: str) -> Workflow[Any]:
        @workflow
        async def body() -> Any:
            said = await make(word)
            await ask("Go on?", key="go", returns=str)
            return said

        return body

    return version("old"), version("new")


def found(driver: Driver, present: Workflow[Any]) -> Any:
    """What there is to accept, where the present code diverges."""
    with pytest.raises(Divergence) as caught:
        driver.rebuilt(present)
    return (caught.value.details or {})["accept"]


def accept(driver: Driver, *accepted: Any) -> None:
    number = sum(receipt.kind == "control" for receipt in driver.receipts) + 1
    note = ControlReceipt(
        path=layout.control(number, "accept"),
        key="accept",
        status="accept",
        request={"accepted": list(accepted), "why": "the same question"},
        execution=driver._execution(None),
    )
    driver._take(note)


CALLS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "agent": (lambda word: agent("writer", word, returns=str), "said"),
    "bash": (lambda word: bash(f"echo {word}"), {"exit_code": 0, "stdout": "said", "stderr": ""}),
    "review": (lambda word: ask(word, key="ask", returns=str), "said"),
    "timer": (lambda word: asyncio.sleep(len(word) if word == "old" else 60), None),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_recorded_answer_stands_for_the_request_it_was_accepted_for(kind: str) -> None:
    make, output = CALLS[kind]
    old, new = versions(make)
    driver = Driver(old)
    driver.answer(driver.open[0], output)
    told = found(driver, new)
    assert (told["kind"], told["recorded"] != told["present"]) == (kind, True)
    accept(driver, told)
    live, decision = driver.rebuilt(new)
    assert (list(live.outstanding), decision.end) == (["go"], None)
    assert driver.rebuilt(old)[0].state() == live.state()


def test_a_question_that_is_still_open_is_answered_as_it_was_asked() -> None:
    old, new = versions(CALLS["review"][0])
    driver = Driver(old)
    accept(driver, found(driver, new))
    live, _ = driver.rebuilt(new)
    answer = driver.receipt_for(driver.call("ask"), "yes")
    driver.answer("ask", "yes")
    live.take(answer)
    assert list(live.outstanding) == ["go"]


def test_a_call_that_was_given_up_may_have_changed_too() -> None:
    def make(word: str) -> Any:
        async def timed() -> str:
            try:
                async with asyncio.timeout(5):
                    return (await bash(f"echo {word}", name="slow")).stdout
            except TimeoutError:
                return "too slow"

        return timed()

    old, new = versions(make)
    driver = Driver(old)
    driver.answer("timer")
    driver.late("slow", "cancelled")
    accept(driver, found(driver, new))
    assert list(driver.rebuilt(new)[0].outstanding) == ["go"]


def test_only_the_accepted_key_and_only_the_accepted_request_count() -> None:
    old, new = versions(CALLS["agent"][0])
    newer = versions(lambda word: agent("writer", f"{word}er", returns=str))[1]
    driver = Driver(old)
    driver.answer("writer", "said")
    told = found(driver, new)
    accept(driver, {**told, "key": "other"})
    assert found(driver, new) == told
    accept(driver, told)
    assert found(driver, newer)["present"] != told["present"]


@pytest.mark.parametrize(
    "present",
    [
        lambda word: bash("echo", key="writer"),
        lambda word: agent("other", word, returns=str),
        lambda word: ask(word, key="ask", returns=str),
    ],
)
def test_another_kind_and_a_call_that_vanished_are_not_to_be_accepted(present: Callable[[str], Any]) -> None:
    driver = Driver(versions(CALLS["agent"][0])[0])
    driver.answer("writer", "said")
    assert found(driver, versions(present)[1]) is None


def test_an_answer_that_no_longer_fits_diverges_also_when_it_was_accepted() -> None:
    driver = Driver(versions(CALLS["agent"][0])[0])
    driver.answer("writer", "said")
    new = versions(lambda word: agent("writer", word, returns=int))[1]
    accept(driver, found(driver, new))
    with pytest.raises(Divergence, match="the recorded output of agent 'writer'"):
        driver.rebuilt(new)


def test_the_value_of_the_run_is_the_recorded_one() -> None:
    old, new = versions(CALLS["agent"][0])
    driver = Driver(old)
    driver.answer("writer", "said")
    accept(driver, found(driver, new))
    driver.live, driver.decision = driver.rebuilt(new)
    assert ended(driver.answer("go", "on")).output == "said"
