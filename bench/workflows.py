"""Workflows that do nothing, often: what is measured is the runtime."""

from __future__ import annotations

import hashlib
import os
import time

from hermes_workflows import ask, parallel, workflow
from hermes_workflows.authoring import step

# Beside its envelope of about 400 bytes this makes a receipt of 1 KB, of text that hardly compresses.
DIGESTS = 10


@step
def increment(value: int) -> int:
    return value + 1


@step
def told(value: int) -> int:
    """Leaves a byte in a file, so that somebody can count how often it was executed."""
    file = os.open("executed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, b".")
    os.close(file)
    return value + 1


@step
def kilobyte(number: int) -> str:
    return "".join(hashlib.sha256(f"{number}.{part}".encode()).hexdigest() for part in range(DIGESTS))


@step
def moment() -> float:
    return time.time()


@workflow
async def sequential(inputs: dict[str, int]) -> int:
    value = 0
    for _ in range(inputs["steps"]):
        value = await increment(value)
    return value


@workflow
async def counted(inputs: dict[str, int]) -> int:
    value = 0
    for _ in range(inputs["steps"]):
        value = await told(value)
    return value


@workflow
async def kilobytes(inputs: dict[str, int]) -> None:
    for number in range(inputs["steps"]):
        await kilobyte(number)


@workflow
async def fan_out(inputs: dict[str, int]) -> int:
    return sum(await parallel([increment(number) for number in range(inputs["steps"])]))


@workflow
async def asked(inputs: dict[str, int]) -> None:
    for _ in range(inputs["steps"]):
        await ask("Go on?", returns=bool)
        await moment()
