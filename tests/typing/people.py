"""Time, questions and signals, as mypy sees them; see authored.py."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

from hermes_workflows import ask, bash, goal, parallel, workflow
from hermes_workflows.authoring import Approval, approve, child, now, random, select, sleep, uuid4, wait_for
from hermes_workflows.core.calls import Call
from hermes_workflows.errors import CallFailed, ReviewExpired, SignalTimedOut, TimedOut


@dataclass
class Build:
    version: str


class Place(Enum):
    STAGING = "staging"
    PRODUCTION = "production"


@workflow
async def below(number: int) -> str:
    return str(number)


async def time() -> None:
    assert_type(sleep(5), Call[None])
    await sleep(timedelta(hours=1), key="cool-down")
    await sleep(until=datetime(2026, 12, 24, tzinfo=UTC))
    assert_type(now(), datetime)
    assert_type(random(), float)
    assert_type(uuid4(), UUID)
    assert_type(await child(below, 5, timeout=timedelta(minutes=1)), str)
    assert_type(await below(5, timeout=60), str)


async def people() -> None:
    evidence: list[Any] = [Build("1"), Path("notes.md"), await bash("ls")]
    assert_type(await ask("Ship?", returns=Build, evidence=evidence, remind_every=timedelta(days=1)), Build)
    assert_type(await ask("Ship?", evidence={"Notes": Path("notes.md")}, remind_every=60), dict[str, Any])
    assert_type(approve("Ship?", on_expiry=False, expires=60), Call[Approval])
    approval = await approve("Ship?")
    assert_type(approval.approved, bool)
    assert_type((approval.feedback, approval.by, approval.kind), tuple[str, str, str])
    assert_type(await select("place", ["staging", "production"]), str)
    assert_type(await select("copies", [1, 2, 3], on_expiry=1), int)
    assert_type(await select("place", Place), Place)
    assert_type(await select("build", {"old": Build("1"), "new": Build("2")}), Build)
    assert_type(await goal(lambda: below(5), lambda draft: approve("Ship?", input=draft)), str)


async def signals() -> None:
    assert_type(wait_for("build", returns=Build), Call[Build])
    assert_type(await wait_for("build"), dict[str, Any])
    assert_type(await parallel([wait_for("a", returns=int), wait_for("b", returns=int, timeout=60)]), list[int])
    try:
        await wait_for("build")
    except SignalTimedOut as error:
        late: TimeoutError = error
        failed: CallFailed = error
        print(late, failed)
    except ReviewExpired as error:
        over: TimedOut = error
        print(over)


async def mistakes() -> None:
    await sleep("a while")  # type: ignore[arg-type]
    await approve("Ship?", on_expiry="approve")  # type: ignore[arg-type]
    await wait_for(5)  # type: ignore[call-overload]
    number: int = await select("place", ["staging"])  # type: ignore[list-item]
    print(number)
