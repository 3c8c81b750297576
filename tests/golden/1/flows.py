"""What the golden runs of this format were made by, and are decided by for ever: nothing in it is changed any more."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import Retry, artifact, child, log, now, random, step, uuid4, wait_for
from hermes_workflows.errors import CallFailed

HERE = Path(__file__).parent


@dataclass
class Topic:
    topic: str
    weight: float = 1.5


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@step
def add(n: int, by: int = 1) -> int:
    return n + by


@step(retry=Retry(attempts=3, initial=0.01))
def shaky() -> str:
    file = HERE / "shaky"
    if not file.exists():
        file.touch()
        raise ValueError("not yet\nsecond line")
    return "steady"


@step
def broken() -> None:
    raise LookupError("nothing there")


@step(at_most_once=True)
def pay(amount: int) -> dict[str, int]:
    return {"paid": amount}


@step(at_most_once=True)
def held(amount: int) -> dict[str, int]:
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return {"paid": amount}


@workflow
async def small(inputs: Topic) -> str:
    return f"{inputs.topic} {await add(1)}"


@workflow
async def failing() -> None:
    await broken()


async def tried(call: Any) -> str:
    try:
        return str(await call)
    except CallFailed as error:
        return type(error).__name__


@workflow
async def everything(inputs: Topic) -> dict[str, Any]:
    log("begun")
    mocked = await agent(
        "writer", f"Write of {inputs.topic}.\nBriefly.", input=inputs, returns=str, mock_output="Draft"
    )
    told = await agent("reader", "Read it.", input={"$odd": "ключ", "text": mocked}, returns=str)
    shown = await bash("printf 'one\\ntwo'; printf '\\377' >&2", name="streams")
    long = await bash("head -c 70000 /dev/zero | tr '\\0' x", name="long")
    sums = await parallel({"left": add(1), "right": add(2, by=5)}, limit=1)
    piped = await pipeline([1, 2], lambda n: add(n, by=10), lambda n: n * 2)
    failed = [await tried(bash("exit 3", name="bad", check=True)), await tried(broken()), await tried(failing())]
    steady, paid = await shaky(), await pay(5)
    kept = await artifact("kept text\n", name="kept.txt")
    ended = await child(small, Topic("child"), key_by="one")
    await asyncio.sleep(0.01)
    try:
        async with asyncio.timeout(0.05):
            await bash("sleep 30", name="slow")
    except TimeoutError:
        failed.append("timed out")
    try:
        async with asyncio.timeout(0.05):
            await ask("Anybody?", key="nobody", returns=str)
    except TimeoutError:
        failed.append("nobody")
    default = await ask("Soon?", key="soon", returns=str, expires=0.05, on_expiry="by default")
    failed.append(await tried(ask("Never?", key="never", returns=str, expires=0.05)))
    failed.append(await tried(wait_for("missed", returns=dict, timeout=0.05)))
    event = await wait_for("event", returns=dict)

    async def write(last: str, feedback: str | None) -> str:
        return await agent("writer", "Again.", input={"last": last, "why": feedback}, returns=str, mock_output="Better")

    async def check(text: str) -> Review:
        return await ask("Ship it?", key="review", input={"text": text}, evidence={"sums": sums}, returns=Review)

    final = await goal(write, check, initial=mocked)
    return {
        "final": final,
        "told": told,
        "streams": [shown.stdout, shown.stderr_bytes.hex(), len(long.stdout)],
        "numbers": [sums["left"], sums["right"], *piped, 2**70, 0.1],
        "failed": failed,
        "done": [steady, paid, kept.name, ended, default, event],
        "chance": [type(random()).__name__, len(str(uuid4())), now().tzinfo is not None],
    }


@workflow
async def cancelled() -> None:
    try:
        await ask("Go on?", key="go", returns=str)
    finally:
        await bash("echo tidy", name="tidy")


@workflow
async def resolved() -> dict[str, int]:
    return await held(7)


@workflow
async def accepted() -> str:
    text = (await bash("echo asked as it is now", name="echo")).stdout
    return text + await ask("Go on?", key="go", returns=str)


@workflow
async def paused() -> str:
    return await ask("Go on?", key="go", returns=str)
