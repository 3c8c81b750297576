"""`@step(process=True)`: what a thread cannot do, which is to be ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.runner.desks import Desk, until

from hermes_workflows.authoring import step
from hermes_workflows.errors import AuthoringError
from hermes_workflows.store.liveness import process_started


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def lives(pid: str) -> bool:
    return process_started(int(pid)) is not None


def test_what_it_returns_is_the_value_a_thread_would_have_given(desk: Desk) -> None:
    done = desk.run("""
from dataclasses import dataclass

@dataclass
class Answer:
    data: bytes
    number: int
    text: str

@step(process=True)
def ask(base: int, data: bytes) -> Answer:
    print("not part of the answer")
    return Answer(data + b"\\x00\\xff", base**40, "line\\n" * 30_000)

@workflow
async def flow() -> bool:
    answer = await ask(7, b"a")
    return answer == Answer(b"a\\x00\\xff", 7**40, "line\\n" * 30_000)
""")
    assert done.result is True


def test_its_function_sees_the_operation_id_and_may_be_async(desk: Desk) -> None:
    done = desk.run("""
from hermes_workflows.authoring import operation_id

@step(process=True)
async def name() -> str:
    await asyncio.sleep(0)
    return operation_id()

@workflow
async def flow() -> str:
    return await name()
""")
    assert done.result == "wf/name"


def test_over_its_time_it_is_killed_with_its_children(desk: Desk) -> None:
    done = desk.run("""
import os, subprocess, time

@step(process=True, timeout=4)
def slow() -> None:
    effect(str(os.getpid()))
    effect(str(subprocess.Popen(["sleep", "60"]).pid))
    time.sleep(60)

@workflow
async def flow() -> None:
    await slow()
""")
    assert done.status == "failed"
    assert "was killed" in done.error["message"]
    pids = desk.effects()
    assert len(pids) == 2
    assert [pid for pid in pids if lives(pid)] == []


def test_a_cancelled_run_ends_it(desk: Desk) -> None:
    desk.write("""
import os, time

@step(process=True)
def slow() -> None:
    effect(str(os.getpid()))
    time.sleep(60)

@workflow
async def flow() -> None:
    await slow()
""")
    desk.start()
    with desk.working():
        until(desk.effects)
        desk.cancel()
        until(lambda: desk.summary().ended)
    assert (desk.summary().status, lives(desk.effects()[0])) == ("cancelled", False)


def test_what_it_raises_fails_the_call_and_may_be_tried_again(desk: Desk) -> None:
    done = desk.run("""
from hermes_workflows.errors import StepFailed

@step(process=True, retry=Retry(attempts=2, initial=0))
def risky() -> str:
    effect("tried")
    raise ValueError("no luck")

@workflow
async def flow() -> str:
    try:
        return await risky()
    except StepFailed as error:
        return str(error)
""")
    assert "no luck" in str(done.result)
    assert desk.effects() == ["tried", "tried"]


@pytest.mark.parametrize(
    ("end", "said"), [("os._exit(3)", "exit status 3"), ("os.kill(os.getpid(), 11)", "signal 11"), ("sys.exit(4)", "4")]
)
def test_a_process_that_dies_fails_the_call_and_not_the_runner(desk: Desk, end: str, said: str) -> None:
    done = desk.run(f"""
import os, sys
from hermes_workflows.errors import StepFailed

@step(process=True)
def deadly() -> None:
    print("about to", file=sys.stderr, flush=True)
    {end}

@workflow
async def flow() -> str:
    try:
        await deadly()
    except StepFailed as error:
        return str(error)
    return "lived"
""")
    assert said in str(done.result)


def test_its_result_is_redacted_as_every_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path, environment={"API_TOKEN": "s3cr3t-value-of-a-token", "PATH": os.environ["PATH"]})
    done = desk.run("""
import os

@step(process=True)
def tell() -> str:
    return os.environ["API_TOKEN"]

@workflow
async def flow() -> str:
    return await tell()
""")
    assert done.result == "[redacted:API_TOKEN]"


def test_a_function_that_no_other_process_could_find_is_refused_where_it_is_made() -> None:
    with pytest.raises(AuthoringError, match="made inside a function"):

        @step(process=True)
        def local() -> None: ...
