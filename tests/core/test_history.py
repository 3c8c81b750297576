"""What a run's receipts are sorted into before it is decided again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.bodies import one
from tests.core.driving import NOON, Driver

from hermes_workflows.authoring import workflow
from hermes_workflows.core import layout
from hermes_workflows.core.history import fold, start_of
from hermes_workflows.core.receipts import Execution, Receipt, RunEnded
from hermes_workflows.core.run_time import RunTime
from hermes_workflows.errors import IntegrityError


@workflow
async def body() -> Any:
    return await one()


def recorded() -> list[Receipt]:
    driver = Driver(body)
    driver.answer("one")
    return driver.receipts


def test_a_run_is_as_far_as_its_newest_receipt_whatever_that_is() -> None:
    started, result = recorded()
    end = RunEnded(path=layout.RESULT, key="", status="completed", execution=Execution(seq=2, finished_at=NOON))
    assert fold([started]).seq == 0
    assert fold([result, started]).seq == 1
    assert fold([end, result, started]).seq == 2


def test_receipts_without_a_start_are_no_run() -> None:
    result = recorded()[1]
    for read in (fold, start_of):
        with pytest.raises(IntegrityError, match=r"the run has no run\.json"):
            read([result])


def test_a_start_is_found_wherever_it_stands() -> None:
    started, result = recorded()
    assert start_of([result, started]) == started


def test_a_run_that_does_not_say_when_it_began_has_no_time() -> None:
    started, result = recorded()
    time = RunTime(started.model_copy(update={"execution": Execution(seed="seed")}))
    time.pass_to(result)
    assert time.elapsed() == 0.0
