"""Cancelling: delivered to the body, killing what executes, with a bounded cleanup; and the end of any run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.runner.desks import Desk, until


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


SLEEPER = """
@step
def tidy(text: str) -> None:
    effect(text)

@workflow
async def flow() -> None:
    try:
        await bash("echo $$ > pid; sleep 300 & wait", timeout=600)
    finally:
        await tidy("step")
        await bash("echo bash >> effects")
"""


def _pid(desk: Desk) -> int:
    file = desk.root / "pid"
    return int(until(lambda: file.exists() and file.read_text().strip()))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended; only its parent has not looked yet.
    return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()


def test_a_cancel_kills_what_executes_and_cleans_up_with_bash_and_steps(desk: Desk) -> None:
    desk.write(SLEEPER)
    desk.start()
    with desk.working():
        pid = _pid(desk)
        desk.cancel()
        until(lambda: desk.summary().ended)
    assert (desk.summary().status, desk.effects()) == ("cancelled", ["step", "bash"])
    assert not _lives(pid)
    assert desk.receipt("steps/bash.json").status == "cancelled"


def test_a_cancel_reaches_a_command_in_another_process(desk: Desk) -> None:
    desk.write(SLEEPER)
    desk.start()
    with desk.working("ada", concurrency=1):
        pid = _pid(desk)
        with desk.working("bob"):
            desk.cancel()
            until(lambda: desk.summary().ended)
            until(lambda: not _lives(pid))
    assert desk.summary().status == "cancelled"


def test_a_body_without_handlers_is_cancelled_at_its_await(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> None:\n    await ask("Well?", key="q", returns=str)\n')
    desk.cancel()
    desk.work()
    assert (desk.summary().status, desk.summary().error) == ("cancelled", None)
    assert desk.receipt("reviews/q/response.json").status == "withdrawn"
    assert desk.rows() == []


def test_cleanup_may_not_ask_or_start_agents(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> None:
    try:
        await ask("Well?", key="q", returns=str)
    finally:
        await ask("Really?", key="really", returns=str)
""")
    desk.cancel()
    desk.work()
    assert desk.summary().status in ("cancelled", "failed")
    assert "reviews/really/request.json" not in desk.paths()


def test_cleanup_is_cut_off_after_twenty_calls(desk: Desk) -> None:
    desk.run("""
@step
def tidy(n: int) -> None:
    effect(str(n))

@workflow
async def flow() -> None:
    try:
        await ask("Well?", key="q", returns=str)
    finally:
        for n in range(30):
            await tidy(n)
""")
    desk.cancel()
    desk.work()
    done = desk.summary()
    assert (done.status, len(desk.effects())) == ("cancelled", 20)
    assert "20 calls" in done.error["message"]


STUBBORN = """
@workflow
async def flow() -> None:
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            effect_free = True
"""


def test_a_body_that_ignores_its_cancellation_is_cut_off_after_a_minute(desk: Desk) -> None:
    desk.run(STUBBORN)
    desk.cancel()
    desk.work()
    assert not desk.summary().ended
    desk.clock.advance(59)
    desk.work()
    desk.clock.advance(61)
    desk.work()
    done = desk.summary()
    assert done.status == "cancelled"
    assert "60 s" in done.error["message"]
    assert desk.rows() == []


def test_a_second_cancel_adds_nothing(desk: Desk) -> None:
    desk.run(STUBBORN)
    desk.cancel()
    desk.cancel()
    assert [path for path in desk.paths() if path.startswith("control/")] == ["control/1-cancel.json"]


def test_the_result_of_a_given_up_call_changes_nothing(desk: Desk) -> None:
    desk.write("""
import time

@step
def slow() -> str:
    effect("begun")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "late"

@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            return await slow()
    except TimeoutError:
        return (await bash("echo timeout")).stdout.strip()
""")
    desk.start()
    with desk.working():
        until(desk.effects)
        desk.clock.advance(31)
        until(lambda: "steps/bash.json" in desk.paths())
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == "timeout"
    assert desk.ledger.verify("wf") == []


# -- the end of any run ------------------------------------------------------------------------------------------


def test_calls_that_still_execute_leave_their_receipts_before_the_end(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> str:
    task = asyncio.create_task(bash_forever())
    await bash("while [ ! -e pid ]; do sleep 0.01; done", key="wait")
    return "done"

async def bash_forever() -> None:
    await bash("echo $$ > pid; sleep 300", key="forever", timeout=600)
""")
    desk.start()
    with desk.working():
        pid = _pid(desk)
        until(lambda: desk.summary().ended)
    assert (desk.summary().status, desk.summary().result) == ("completed", "done")
    assert desk.receipt("steps/forever.json").status == "cancelled"
    assert not _lives(pid)
    assert desk.paths()[-1] == "result.json"


def test_what_does_not_leave_its_receipt_is_waited_for_ten_seconds(desk: Desk) -> None:
    desk.write("""
import time

@step
def deaf() -> str:
    effect("begun")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "late"

@workflow
async def flow() -> str:
    task = asyncio.create_task(listen())
    await bash("while [ ! -e effects ]; do sleep 0.01; done")
    return "done"

async def listen() -> None:
    await deaf()
""")
    desk.start()
    with desk.working():
        until(lambda: "steps/bash.json" in desk.paths())
        until(lambda: any(row.endswith("$end") for row in desk.rows()))
        assert not desk.summary().ended
        desk.clock.advance(11)
        until(lambda: desk.summary().ended)
        (desk.root / "go").touch()
    assert desk.summary().result == "done"
    assert "steps/deaf.json" not in desk.paths()
    assert desk.paths()[-1] == "result.json"


def test_an_ended_run_is_not_touched_again(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return "done"\n')
    desk.workspace.queue.apply(_offered("wf"), "somebody")
    desk.write("import nothing_of_that_name\n")
    desk.work()
    assert (desk.paths(), desk.rows(), desk.marks()) == (["run.json", "result.json"], [], [])


def _offered(run_id: str) -> object:
    from hermes_workflows.store.queue_port import Change, Work

    return Change(offer=[Work(run_id, "workflow"), Work(run_id, "step", "old", "fp")])
