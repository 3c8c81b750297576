"""Workflows of which many calls are open at once. In whatever order those end, there is one result.

What is a race on purpose has no place here: a timeout, `as_completed`, the first of two signals.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import artifact, child, map_workflow, sleep, step, wait_for
from hermes_workflows.errors import CallFailed


@dataclass
class Verdict:
    action: Literal["approve", "revise"]
    feedback: str = ""


@step
def add(n: int, by: int = 1) -> int:
    return n + by


@step
def broken(why: str) -> None:
    raise ValueError(why)


async def twice(n: int) -> int:
    return await add(await add(n), by=10)


@workflow
async def limited() -> Any:
    """Branches of several calls, some of which wait for others to end."""
    few = parallel([twice(n) for n in range(5)], limit=2)
    named = parallel({"a": twice(1), "b": {"c": add(2), "d": [add(3), twice(4)]}}, limit=3)
    return await asyncio.gather(few, named)


@workflow
async def piped() -> Any:
    """Items overtake each other on their way through the stages."""

    async def review(n: int) -> str:
        return await agent("reader", "What is it?", input={"n": n}, returns=str)

    return await pipeline(range(4), twice, review, lambda text: bash(["echo", text], name="say"), str.__len__, limit=3)


@workflow
async def goals() -> Any:
    """Two loops side by side, each with people who may send it round again."""

    async def reached(topic: str) -> Any:
        async def write(last: str | None, feedback: str | None) -> str:
            return await agent("writer", topic, input={"last": last, "why": feedback}, returns=str)

        async def check(text: str) -> Verdict:
            return await ask(f"Good, {topic}?", input={"text": text}, returns=Verdict)

        return await goal(write, check)

    return await parallel([reached("docs"), reached("api")])


@workflow
async def below(n: int) -> int:
    return sum(await parallel([twice(n), twice(n + 1)]))


@workflow
async def children() -> Any:
    mapped = map_workflow(below, [1, 2, 3], lambda n: f"number {n}", limit=2)
    return await parallel([mapped, child(below, 7, key="own"), below(8)])


@workflow
async def asked() -> Any:
    """Questions of which some are asked only when others have been answered."""

    async def chain(who: str) -> list[Any]:
        first = await ask(f"{who}, how many?", key=f"{who}-many", returns=int)
        return [first, await ask(f"{who}, are you sure of {first}?", key=f"{who}-sure", returns=bool)]

    kept, *told = await parallel([artifact("kept\n", name="kept.txt"), *(chain(who) for who in ("ana", "ben", "cyd"))])
    return [kept.name, told]


@workflow
async def timed() -> Any:
    """Timers and what is waited for from outside, each of its own name."""

    async def late(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return await add(int(seconds))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(late(seconds), name=f"late-{seconds:g}") for seconds in (1, 2, 3)]
        news = parallel([wait_for(name, returns=str) for name in ("build", "deploy")])
        told = await parallel([news, sleep(60)])
    return [*(each.result() for each in tasks), *told]


@workflow
async def failing() -> Any:
    """Two branches fail: the first in the order of the calls is raised, and the others run to their end."""
    try:
        await parallel([twice(1), broken("second"), twice(2), broken("fourth")])
    except CallFailed as error:
        return [str(error), await add(5)]
    return None
