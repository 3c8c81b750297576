"""A runner on one run: every kind of call, from the text of a workflow to its last receipt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, until


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_each_step_is_a_receipt_and_the_last_one_is_the_end(desk: Desk) -> None:
    done = desk.run("""
@step
def add(n: int) -> int:
    return n + 1

@workflow
async def flow() -> int:
    return await add(await add(0))
""")
    assert (done.status, done.result) == ("completed", 2)
    assert desk.paths() == ["run.json", "steps/add.json", "steps/add-2.json", "result.json"]
    assert desk.rows() == []


def test_a_receipt_says_who_did_what_when_and_with_which_code(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return (await bash("echo hi", name="greet")).stdout\n')
    greeted = desk.receipt("steps/greet.json")
    execution = greeted.execution
    assert greeted.request["command"] == "echo hi"
    assert greeted.output["stdout"] == "hi\n"
    assert (execution.attempt, execution.runner, execution.operation_id) == (1, "ada", "wf/greet")
    assert execution.code == desk.receipt("run.json").execution.code
    assert execution.requested_after == 0
    assert execution.started_at is not None
    assert execution.finished_at is not None
    assert execution.duration_seconds is not None


def test_a_mocked_agent_is_recorded_as_a_mock(desk: Desk) -> None:
    done = desk.run(
        '@workflow\nasync def flow() -> str:\n    return await agent("a", "Hi.", returns=str, mock_output="mocked")\n'
    )
    assert done.result == "mocked"
    assert desk.receipt("steps/a.json").execution.mock


def test_no_more_branches_run_at_once_than_the_limit_says(desk: Desk) -> None:
    desk.write("""
import threading, time

running, most = [], []

@step
def branch(n: int) -> int:
    running.append(n)
    most.append(len(running))
    effect(str(max(most)))
    while not (HERE / "go").exists():
        time.sleep(0.005)
    running.remove(n)
    return n

@workflow
async def flow() -> list[int]:
    return await parallel([branch(n) for n in range(8)], limit=2)
""")
    desk.start()
    with desk.working(concurrency=8):
        until(lambda: len(desk.effects()) == 2)
        # What is to run is decided in one go: of a third one nobody has heard.
        assert [row for row in desk.rows() if row.startswith("step")] == ["step branch", "step branch-2"]
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == list(range(8))
    assert max(map(int, desk.effects())) == 2


def test_an_item_may_be_in_the_second_stage_while_another_is_in_the_first(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> list[str]:
    async def first(n: int) -> int:
        if n:
            await bash("while [ ! -e second ]; do sleep 0.01; done", timeout=15, check=True)
        return n
    async def second(n: int) -> str:
        await bash("touch second")
        return str(n)
    return await pipeline([0, 1], first, second)
""")
    desk.start()
    desk.work()
    assert desk.summary().result == ["0", "1"]


def test_the_feedback_of_a_check_goes_to_the_next_round(desk: Desk) -> None:
    done = desk.run("""
@step
def write(feedback: str | None) -> str:
    return f"draft {feedback}"

@workflow
async def flow() -> str:
    async def do(last: str | None, feedback: str | None) -> str:
        return await write(feedback)
    async def check(text: str) -> dict[str, Any]:
        return {"ok": "shorter" in text, "feedback": "shorter"}
    return await goal(do, check, max_iters=3)
""")
    assert done.result == "draft shorter"
    assert desk.paths()[1:3] == ["steps/goal/1/write.json", "steps/goal/2/write.json"]


def test_whatever_order_questions_are_answered_in_each_gets_its_own_answer(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> list[str]:
    return await asyncio.gather(ask("One?", key="one", returns=str), ask("Two?", key="two", returns=str))
""")
    desk.answer("two", "second")
    desk.work()
    assert [row.key for row in desk.workspace.reviews()] == ["one"]
    desk.answer("one", "first")
    desk.work()
    assert desk.summary().result == ["first", "second"]


def test_many_runs_in_one_workspace_all_come_to_their_ends(desk: Desk) -> None:
    desk.write("""
@step
def double(n: int) -> int:
    return 2 * n

@workflow
async def flow(inputs: dict[str, int]) -> int:
    return await double(inputs["n"])
""")
    for n in range(40):
        desk.start(f"run-{n}", {"n": n})
    desk.work()
    assert [desk.summary(f"run-{n}").result for n in range(40)] == [2 * n for n in range(40)]
    assert desk.queue.work() == []


def test_a_body_that_was_evicted_goes_on_where_it_was(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_workflows.runner import bodies

    monkeypatch.setattr(bodies, "MAX_BODIES", 2)
    desk.write("""
@step
def double(n: int) -> int:
    effect(str(n))
    return 2 * n

@workflow
async def flow(inputs: dict[str, int]) -> int:
    n = inputs["n"]
    for _ in range(4):
        n = await double(n)
    return n
""")
    for n in range(6):
        desk.start(f"run-{n}", {"n": n})
    desk.work()
    assert [desk.summary(f"run-{n}").result for n in range(6)] == [16 * n for n in range(6)]
    assert len(desk.effects()) == 24
