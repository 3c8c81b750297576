"""What a divergence says: the difference, the lines, the ways out (SEMANTICS §3)."""

from __future__ import annotations

import sys
from typing import Any

from tests.core.bodies import one
from tests.core.diverging import divergence_of, history
from tests.core.driving import Driver

from hermes_workflows.authoring import Workflow, agent, parallel, workflow
from hermes_workflows.core.divergence import explain
from hermes_workflows.errors import Divergence


def test_the_message_prints_the_ways_out_and_the_details_name_the_last_receipt_that_fits() -> None:
    @workflow
    async def changed() -> Any:
        await agent("writer", prompt="Write on docs", returns=str)
        return await one(2)

    error = divergence_of(history(), changed)
    assert error.hint == (
        "1. restore the code that was recorded; "
        "or 2. `hermes-workflows fork run@writer --id NEW` goes on in a new run with what still fits; "
        "or 3. `hermes-workflows accept run one --why …` keeps the recorded answer"
    )
    assert (error.details or {})["fits_until"] == "writer"


def test_a_permutation_of_the_keys_hints_at_a_set() -> None:
    def reads(topics: list[str]) -> Workflow[Any]:
        @workflow
        async def body() -> Any:
            return await parallel([agent("reader", prompt=topic, returns=str) for topic in topics])

        return body

    driver = Driver(reads(["docs", "code"]))
    driver.answer("reader", "D")
    lines = list(explain(divergence_of(driver, reads(["code", "docs"]))))
    assert "the same requests appear under other keys: does the body iterate over a set?" in lines


def test_another_python_is_named() -> None:
    @workflow
    async def changed() -> Any:
        return await agent("writer", prompt="Write on code", returns=str)

    driver = history()
    driver.started = driver.started.model_copy(
        update={"execution": driver.started.execution.model_copy(update={"python": "3.5"})}
    )
    lines = list(explain(divergence_of(driver, changed)))
    assert f"recorded under Python 3.5, replayed under {sys.version_info[0]}.{sys.version_info[1]}" in lines


def test_the_explanation_holds_the_diff_the_line_and_the_ways_out() -> None:
    @workflow
    async def changed() -> Any:
        return await agent("writer", prompt="Write on code", returns=str)

    lines = list(explain(divergence_of(history(), changed)))
    assert lines[0].startswith("divergence in run: agent 'writer'")
    assert f"test_divergence_told.py:{changed.fn.__code__.co_firstlineno + 2}" in lines[0]
    assert [line for line in lines if line.startswith(("-  ", "+  "))] == [
        '-  "prompt": "Write on docs",',
        '+  "prompt": "Write on code",',
    ]
    assert lines[-1].startswith("1. restore the code")


def test_what_only_differs_in_its_end_is_told_in_one_line_and_without_ways_out_that_are_none() -> None:
    assert list(explain(Divergence("the run ends otherwise"))) == ["the run ends otherwise"]
