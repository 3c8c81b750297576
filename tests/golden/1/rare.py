"""What the golden runs of the rarer receipts were made by, and are decided by for ever: nothing in it is changed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from hermes_workflows import agent, ask, bash, parallel, workflow
from hermes_workflows.authoring import Retry, artifact, child, secret, step, wait_for
from hermes_workflows.errors import CallFailed

HERE = Path(__file__).parent


@step(at_most_once=True)
def held(name: str) -> dict[str, str]:
    (HERE / f"{name}-begun").touch()
    while not (HERE / f"{name}-go").exists():
        time.sleep(0.01)
    return {"paid": "by itself"}


@step
async def slow() -> None:
    await asyncio.sleep(60)


@step(timeout=0.05)
async def late_step() -> None:
    await asyncio.sleep(60)


@step
def unstorable() -> float:
    return float("nan")


@step
def data() -> bytes:
    return bytes(range(256))


@step
def long_data() -> bytes:
    return b"\xff" * 70_000


async def tried(call: Any) -> str:
    try:
        return str(await call)
    except CallFailed as error:
        return type(error).__name__


async def given_up(call: Any) -> str:
    try:
        async with asyncio.timeout(0.3):
            return str(await call)
    except TimeoutError:
        return "given up"


@workflow
async def waiting() -> str:
    return await ask("For ever?", key="ever", returns=str)


@workflow
async def failures() -> list[str]:
    """Each kind of call fails, runs over its time, or is given up."""
    once = Retry(attempts=1)
    twice = Retry(attempts=2, initial=0.01)
    said = [
        await tried(agent("refusing", "Read.", returns=str, retry=once)),
        await tried(agent("talking", "Count.", returns=int, model="some-model", retry=twice)),
        await tried(agent("sleeping", "Wait.", returns=str, timeout=0.3, retry=once)),
        await tried(bash("sleep 60", name="over", timeout=0.1)),
        await tried(late_step()),
        await tried(unstorable()),
        await tried(artifact(HERE / "nowhere.txt", name="nowhere.txt")),
        await tried(child(waiting, key="impatient", timeout=0.1)),
    ]
    said += await parallel(
        [
            given_up(slow()),
            given_up(agent("sleeping", "Wait on.", returns=str, key="left")),
            given_up(child(waiting, key="dropped")),
            given_up(wait_for("never", returns=dict)),
        ]
    )
    return said


@workflow
async def shapes() -> dict[str, Any]:
    """What stands in receipts in another form than its own, or beside them."""
    (hidden, read) = await parallel(
        [
            bash("printf 'it is %s' \"$TOKEN\"", name="hidden", env={"TOKEN": secret("GOLDEN_TOKEN")}),
            agent("reader", "Read it.", returns=str, files=["notes.txt"], model="some-model"),
        ]
    )
    raw, long = await data(), await long_data()
    kept = await artifact(HERE / "notes.txt", name="notes.txt")
    answer = await ask(
        "Is it so?",
        key="ask",
        returns=str,
        assignee="ana",
        expires=86_400,
        remind_every=3_600,
        evidence={"notes": HERE / "notes.txt", "read": read},
    )
    return {
        "hidden": hidden.stdout,
        "sizes": [len(raw), len(long), kept.size],
        "answer": answer,
        "$odd": {"$lines": []},
    }


@workflow
async def late() -> list[Any]:
    paid = await held("late")
    return [paid, await ask("Go on?", key="go", returns=str)]


@workflow
async def unknown() -> Any:
    return await held("unknown")


@workflow
async def below(n: int) -> int:
    return n + int((await bash(["echo", "1"], name="one", check=True)).stdout)


@workflow
async def parent() -> list[int]:
    return await parallel([below(1), child(below, 2, key="second")])


@workflow
async def again() -> str:
    first = (await bash("echo first", name="first")).stdout
    await bash("test -e mended", name="needs", check=True)
    return first
