"""Children, files, prompts and effects, as mypy sees them; see authored.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import assert_type

from hermes_workflows import agent, workflow
from hermes_workflows.authoring import Artifact, artifact, child, map_workflow, operation_id, prompt_file, step
from hermes_workflows.authoring.composed import Composed
from hermes_workflows.authoring.prompts import PromptFile
from hermes_workflows.core.calls import Call

PROMPT = prompt_file("review.md")


@dataclass
class Topic:
    title: str


@dataclass
class Draft:
    text: str


@workflow
async def write(topic: Topic) -> Draft:
    return await agent("writer", PROMPT.render(title=topic.title), returns=Draft)


@step(at_most_once=True)
def pay(amount: int) -> str:
    assert_type(operation_id(), str)
    return str(amount)


async def children(topics: list[Topic]) -> None:
    assert_type(child(write, Topic("a"), key="a"), Call[Draft])
    assert_type(await child(write, Topic("a")), Draft)
    assert_type(await map_workflow(write, topics, lambda topic: topic.title, limit=2), list[Draft])
    assert_type(
        await map_workflow(write, topics, lambda topic: topic.title, return_exceptions=True), list[Draft | Exception]
    )
    assert_type(map_workflow(write, topics, lambda topic: topic.title), Composed[list[Draft]])
    assert_type(await pay(5), str)


async def files() -> None:
    assert_type(artifact(Path("a")), Call[Artifact])
    kept = await artifact(b"a", name="a")
    assert_type(kept, Artifact)
    assert_type(kept.sha256, str)
    assert_type(kept.size, int)
    assert_type(await artifact("text", name="a.txt", media_type="text/plain"), Artifact)
    assert_type(PROMPT, PromptFile)
    assert_type(PROMPT.render(a=1, b="x"), str)


async def mistakes(topics: list[Topic]) -> None:
    artifact(5)  # type: ignore[arg-type]
    child(pay, 5)  # type: ignore[arg-type]
    map_workflow(write, topics)  # type: ignore[call-overload]
    map_workflow(write, topics, lambda topic: topic.name)  # type: ignore[attr-defined]
    PROMPT.render("x")  # type: ignore[call-arg]
    number: int = await child(write, Topic("a"))  # type: ignore[arg-type]
    print(number)
