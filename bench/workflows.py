"""Workflows that do nothing, often: what is measured is the runtime."""

from __future__ import annotations

from hermes_workflows import parallel, workflow
from hermes_workflows.authoring import step


@step
def increment(value: int) -> int:
    return value + 1


@workflow
async def sequential(inputs: dict) -> int:
    value = 0
    for _ in range(inputs["steps"]):
        value = await increment(value)
    return value


@workflow
async def fan_out(inputs: dict) -> int:
    return sum(await parallel([increment(number) for number in range(inputs["steps"])]))
