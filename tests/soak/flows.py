"""The workflows of the soak: every kind of call, with ends that hold whatever happened on the way.

They leave their marks in a folder of its own, since the disk of the workspace is filled now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLOWS = """
import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import Retry, artifact, child, map_workflow, now, select, sleep, step, wait_for

MARKS = Path("@MARKS@")


@dataclass
class Size:
    n: int = 5


@dataclass
class Named:
    name: str


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@dataclass
class Build:
    version: str


@step
def add(n: int, by: int = 1) -> int:
    return n + by


@step(process=True)
def double(n: int) -> int:
    return 2 * n


@step(retry=Retry(attempts=3, initial=0.02))
def shaky(mark: str) -> str:
    file = MARKS / f"shaky-{mark}"
    if not file.exists():
        file.touch()
        raise ValueError("not yet")
    return mark


@step(at_most_once=True)
def launch(mark: str) -> str:
    with open(MARKS / f"launch-{mark}", "a") as file:
        file.write("x")
    time.sleep(0.1)
    return mark


@workflow
async def steps(inputs: Size) -> int:
    n = 0
    for _ in range(inputs.n):
        n = await add(n)
    return n


@workflow
async def fan(inputs: Size) -> int:
    async def pair(n: int) -> int:
        return await add(await add(n), by=10)
    return sum(await parallel([pair(n) for n in range(inputs.n)], limit=3))


@workflow
async def shell(inputs: Size) -> list[str]:
    async def one(n: int) -> str:
        return (await bash(f"echo begin; sleep 0.5; echo {n}", check=True)).stdout.split()[1]
    return await pipeline(range(inputs.n), one, lambda text: bash(["echo", text + "!"], name="shout"), text_of)


def text_of(done) -> str:
    return done.stdout.strip()


@workflow
async def asking(inputs: Size) -> str:
    draft = await agent("writer", "Write a draft.", input=inputs, returns=str)

    async def write(last: str, feedback: str | None) -> str:
        return await agent("writer", "Again.", input={"last": last, "feedback": feedback}, returns=str)

    async def check(text: str) -> Review:
        return await ask("Ship it?", key="review", input={"text": text}, returns=Review, assignee="ana")

    return await goal(write, check, initial=draft)


@workflow
async def sleeping(inputs: Named) -> str:
    try:
        async with asyncio.timeout(0.3):
            await ask("Anybody?", key="nobody", returns=str)
    except TimeoutError:
        pass
    await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2), shaky(inputs.name))
    await sleep(until=now() + timedelta(seconds=1))
    return "awake"


@workflow
async def expiring() -> str:
    return await ask("In time?", key="soon", returns=str, expires=0.5, on_expiry="nobody")


@workflow
async def family(inputs: Size) -> int:
    sums = await parallel({"one": steps(Size(2), key="one"), "two": fan(Size(2), key="two")})
    return sums["one"] + sums["two"]


@workflow
async def below() -> str:
    return await select("place", ["staging", "production"])


@workflow
async def above() -> str:
    return "to " + await child(below, key="below")


@workflow
async def signalled() -> str:
    build = await wait_for("build", returns=Build)
    return build.version


@workflow
async def keeping() -> int:
    kept = await artifact("a text\\n" * 2000, name="text.txt")
    wide = await bash("head -c 200000 /dev/zero | tr '\\\\0' x")
    return await double(kept.size) + len(wide.stdout) // 100000


@workflow
async def careful(inputs: Named) -> str:
    return await launch(inputs.name)


@workflow
async def failing() -> None:
    await bash("echo no; exit 3", check=True)


@workflow
async def stopped() -> None:
    try:
        await ask("Go on?", key="go", returns=str)
    finally:
        await bash("echo tidy")
"""

# Flow → (its input, where "@" is the run's own name; its status and its result in the end).
ENDS: Mapping[str, tuple[Any, str, Any]] = {
    "steps": ({"n": 12}, "completed", 12),
    "fan": ({"n": 4}, "completed", sum(n + 11 for n in range(4))),
    "shell": ({"n": 3}, "completed", ["0!", "1!", "2!"]),
    "asking": ({"n": 1}, "completed", "draft first shorter"),
    "sleeping": ({"name": "@"}, "completed", "awake"),
    "expiring": (None, "completed", "nobody"),
    "family": ({"n": 2}, "completed", 2 + 11 + 12),
    "above": (None, "completed", "to staging"),
    "signalled": (None, "completed", "1.2"),
    "keeping": (None, "completed", 28001),
    "careful": ({"name": "@"}, "completed", "@"),
    "failing": (None, "failed", None),
    "stopped": (None, "cancelled", None),
}
