"""Workflows that the kit is tried on, at the top level of a module, so that a second process can import them.

Those of the second half decide by what no receipt says.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, ask, bash, goal, parallel, workflow
from hermes_workflows.authoring import step

print("an author's module may print when it is imported")


@dataclass
class Topic:
    name: str
    risk: int = 1


@dataclass
class Draft:
    title: str
    body: str


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@step
def count_words(text: str) -> int:
    return len(text.split())


@workflow
async def publish(topic: Topic) -> str:
    """An agent's draft, revised until a person approves it."""

    async def write(last: Draft | None, feedback: str | None) -> Draft:
        return await agent("writer", f"Write on {topic.name}. {feedback or ''}", returns=Draft)

    async def check(draft: Draft) -> Review:
        return await ask("May it go out?", key="review", input=draft, returns=Review)

    draft = await goal(write, check)
    words = await count_words(draft.body)
    sent = await bash(["echo", f"{draft.title}: {words} words"], name="send")
    return sent.stdout.strip()


@workflow
async def patient_child(days: int) -> int:
    await asyncio.sleep(days * 86_400)
    return days


@workflow
async def family() -> int:
    return sum(await parallel([patient_child(3), patient_child(200)]))


@step
def blob(size: int) -> bytes:
    return b"\xff" * size


@workflow
async def bulky() -> int:
    """Values that lie outside their receipts."""
    raw = await blob(100_000)
    text = await bash("head -c 100000 /dev/zero | tr '\\0' x", name="text")
    return len(raw) + len(text.stdout)


# -- decided by what no receipt says ------------------------------------------------------------------------------

ROOMS = {"attic", "cellar", "garden", "hall", "kitchen", "porch", "study", "tower"}
_calls = itertools.count()


@workflow
async def by_chance() -> None:
    for _ in range(12):
        await bash("true", name="heads" if random.random() < 0.5 else "tails")


@workflow
async def by_time() -> None:
    await bash(["echo", str(time.time())], name="stamp")


@workflow
async def by_set() -> None:
    for room in ROOMS:
        await bash(["echo", room], name=room)


@workflow
async def by_global() -> None:
    await bash("true", name=f"call-{next(_calls)}")


@workflow
async def by_result() -> float:
    await bash("true", name="first")
    return random.random()
