"""What authors write in their tests, as mypy sees it; checked with --strict like authored.py, and never run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import assert_type

from hermes_workflows import workflow
from hermes_workflows.core.receipts import Receipt
from hermes_workflows.testing import (
    AgentRequest,
    CommandRequest,
    Question,
    RunResult,
    TestClock,
    assert_replays,
    later,
    run_workflow,
)


@workflow
async def length(text: str) -> int:
    return len(text)


def writer(request: AgentRequest) -> str:
    return assert_type(request.prompt, str)


def person(question: Question) -> bool:
    return assert_type(question.key, str) == "ok"


def command(request: CommandRequest) -> int:
    return len(assert_type(request.name, str))


def tests() -> None:
    run = run_workflow(
        length,
        "text",
        agents={"writer": writer, "other": ["one", "two"]},
        answers={"ok": later(60, person)},
        commands={"build": command},
        clock=TestClock(datetime(2030, 1, 1, tzinfo=UTC)),
        always_replay=True,
    )
    assert_type(run, RunResult[int])
    assert_type(run.result, int | None)
    assert_type(run.receipt("writer"), Receipt)
    assert_replays(run)
    run_workflow(length, clock=3)  # type: ignore[arg-type]
