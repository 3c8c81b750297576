"""What authors write, as mypy sees it. `test_typing.py` checks this file with --strict; it is never run.

A `type: ignore` here says what must be an error: mypy reports one that is not needed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, assert_type
from uuid import UUID

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import BashResult, Retry, Workflow, now, random, step, uuid4
from hermes_workflows.authoring.composed import Composed
from hermes_workflows.authoring.step import Step
from hermes_workflows.core.calls import Call


@dataclass
class Draft:
    title: str


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@step
def measure(path: str, *, deep: bool = False) -> int:
    return len(path)


@step
async def fetch(url: str) -> bytes:
    return url.encode()


@step(retry=Retry(attempts=3), timeout=5)
def pay(amount: int) -> str:
    return str(amount)


@step(at_most_once=True)
async def send(text: str) -> bool:
    return bool(text)


@workflow
async def child(inputs: Draft) -> Review:
    return Review("approve", inputs.title)


@workflow()
async def no_inputs() -> int:
    return 1


async def research(topic: str) -> Draft:
    return await agent("writer", prompt=topic, returns=Draft)


async def calls() -> None:
    assert_type(agent("writer", returns=Draft), Call[Draft])
    assert_type(await agent("writer", "Write", returns=Draft), Draft)
    assert_type(await agent("writer"), dict[str, Any])
    assert_type(await agent("writer", returns=list[Draft]), list[Draft])
    assert_type(await ask("ok?", returns=Review), Review)
    assert_type(await ask("ok?", key="review"), dict[str, Any])
    assert_type(await bash("ls"), BashResult)
    assert_type((await bash(["ls", "-l"], check=True)).stdout_bytes, bytes)
    maybe: Draft | None = await agent("writer", returns=Draft | None)
    choice: Literal["a", "b"] = await ask("which?", returns=Literal["a", "b"])
    print(maybe, choice)


async def steps_and_children() -> None:
    assert_type(await measure("a", deep=True), int)
    assert_type(await fetch("a"), bytes)
    assert_type(await pay(5), str)
    assert_type(await send("a"), bool)
    assert_type(await child(Draft("t"), key="again"), Review)
    assert_type(await no_inputs(), int)
    assert_type(child, Workflow[Review])
    measured: Step[..., int] = measure
    print(measured)


async def compositions() -> None:
    assert_type(await parallel([bash("a"), bash("b")]), list[BashResult])
    assert_type(await parallel({"a": bash("a")}), dict[str, BashResult])
    assert_type(await parallel([research("a"), research("b")], limit=2), list[Draft])
    assert_type(await parallel([bash("a")], return_exceptions=True), list[BashResult | Exception])
    assert_type(await parallel({1: bash("a")}, return_exceptions=True), dict[int, BashResult | Exception])
    assert_type(await parallel([parallel([measure("a")])]), list[list[int]])
    nested: dict[str, list[int]] = await parallel({"a": [measure("a")]})
    assert_type(await goal(lambda: research("a"), lambda draft: draft.title == "x"), Draft)
    assert_type(await goal(research, lambda draft: ask("ok?", returns=Review), initial="topic"), Draft)
    assert_type(goal(lambda: measure("a"), bool), Composed[int])
    streamed: list[Any] = await pipeline(["a"], research, lambda draft: draft.title)
    print(nested, streamed)


async def asyncio_is_ordinary() -> None:
    both = await asyncio.gather(bash("a"), agent("writer", returns=Draft))
    assert_type(both, tuple[BashResult, Draft])
    assert_type(await asyncio.wait_for(measure("a"), 5), int)
    assert_type(now(), datetime)
    assert_type(random(), float)
    assert_type(uuid4(), UUID)


async def mistakes() -> None:
    measure(5)  # type: ignore[arg-type]
    measure("a", True)  # type: ignore[call-arg]
    agent(5)  # type: ignore[call-overload]
    bash(5)  # type: ignore[arg-type]
    number: int = await bash("ls")  # type: ignore[assignment]
    print((await agent("writer", returns=Draft)).titel)  # type: ignore[attr-defined]
    print((await child(Draft("t"))).actoin)  # type: ignore[attr-defined]
    print(number)


@workflow  # type: ignore[arg-type]
def not_async(inputs: Draft) -> Review:
    return Review("approve")
