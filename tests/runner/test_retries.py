"""Commands that are tried again: after a failure, and under `check=True` after an exit status nobody wants."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk

FLOW = """
from hermes_workflows.errors import BashFailed, BashTimedOut

@workflow
async def flow() -> str:
    try:
        done = await bash({command!r}, {options})
    except BashFailed as error:
        return f"{{type(error).__name__}} {{error}}"
    return f"{{done.exit_code}} {{done.stdout.strip()}}"
"""
# Fails until there are as many lines in the file as it takes.
COUNTING = "echo >> tries; test $(wc -l < tries) -ge 3 || exit 7; echo done"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def run(desk: Desk, command: str, options: str) -> str:
    result = desk.run(FLOW.format(command=command, options=options)).result
    assert isinstance(result, str)
    return result


def tries(desk: Desk) -> int:
    return len((desk.root / "tries").read_text().splitlines())


def test_a_checked_command_is_tried_again_until_it_exits_well(desk: Desk) -> None:
    assert run(desk, COUNTING, "check=True, retry=Retry(attempts=5, initial=0)") == "0 done"
    note = desk.receipt("steps/bash.attempt-2.json")
    assert (note.status, note.error and note.error.message, note.output["exit_code"]) == ("failed", "exited 7", 7)
    assert desk.receipt("steps/bash.json").execution.attempt == 3
    assert desk.ledger.verify("wf") == []


def test_after_the_last_attempt_its_exit_status_is_the_result(desk: Desk) -> None:
    said = run(desk, COUNTING, "check=True, retry=Retry(attempts=2, initial=0)")
    assert said.startswith("BashFailed bash call bash exited 7")
    assert (tries(desk), desk.receipt("steps/bash.json").status) == (2, "completed")


def test_an_exit_status_nobody_checks_is_no_failure(desk: Desk) -> None:
    assert run(desk, COUNTING, "retry=Retry(attempts=5, initial=0)") == "7 "
    assert tries(desk) == 1


@pytest.mark.parametrize(("never", "count"), [("BashFailed", 1), ("TimeoutError", 3), ("BashTimedOut", 3)])
def test_what_no_attempt_can_mend_is_named_by_its_exception(desk: Desk, never: str, count: int) -> None:
    run(desk, COUNTING, f"check=True, retry=Retry(attempts=5, initial=0, never=({never},))")
    assert tries(desk) == count


@pytest.mark.parametrize(("never", "count"), [("()", 2), ("(TimeoutError,)", 1)])
def test_a_deadline_is_a_timeout_like_any_other(desk: Desk, never: str, count: int) -> None:
    options = f"timeout=0.2, retry=Retry(attempts=2, initial=0, never={never})"
    assert run(desk, "echo >> tries; sleep 60", options).startswith("BashTimedOut bash call bash: ran over its 0.2 s")
    assert tries(desk) == count


def test_every_call_that_ran_over_its_time_is_caught_as_a_timeout(desk: Desk) -> None:
    done = desk.run("""
from hermes_workflows.authoring import child, wait_for

@step(timeout=0.1)
async def slow() -> None:
    await asyncio.sleep(60)

@workflow
async def below() -> None:
    await ask("Anybody?", key="nobody", returns=str)

@workflow
async def flow() -> list[str]:
    said = []
    for make in (
        lambda: slow(),
        lambda: bash("sleep 60", timeout=0.1),
        lambda: ask("Anybody?", key="who", returns=str, expires=1),
        lambda: wait_for("nothing", timeout=1),
        lambda: child(below, key="below", timeout=1),
    ):
        try:
            await make()
        except TimeoutError as error:
            said.append(type(error).__name__)
    return said
""")
    for _ in range(4):
        desk.clock.advance(1)
        desk.work()
    assert done.status == "waiting"
    assert desk.summary().result == ["StepTimedOut", "BashTimedOut", "ReviewExpired", "SignalTimedOut", "ChildTimedOut"]
