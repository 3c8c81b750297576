"""A recorded run, and what other code runs into on its history."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.bodies import one, two
from tests.core.driving import Driver

from hermes_workflows.authoring import Workflow, agent, workflow
from hermes_workflows.errors import Divergence

ROOT = str(__file__).rpartition("/")[0]


def played(body: Workflow[Any], **answers: Any) -> Driver:
    """A run of `body` in which these calls were answered, in order."""
    driver = Driver(body, root=ROOT)
    for key, output in answers.items():
        driver.answer(key, output)
    return driver


def divergence_of(driver: Driver, other: Workflow[Any]) -> Divergence:
    """What the other code runs into on this history."""
    with pytest.raises(Divergence) as caught:
        driver.rebuilt(other)
    return caught.value


@workflow
async def recorded() -> Any:
    first = await agent("writer", prompt="Write on docs", returns=str)
    second = await one(1)
    return [first, second, await two()]


def history() -> Driver:
    return played(recorded, writer="text", one=None)
