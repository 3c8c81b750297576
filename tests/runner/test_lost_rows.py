"""Rows that are lost under a runner that has the bodies of their runs: it writes them again, and looks for others."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.runner.desks import Desk, seen_as, until

from hermes_workflows.runner import unqueued
from hermes_workflows.runner.unqueued import LOOK_SECONDS
from hermes_workflows.runner.worker import SWEEP_SECONDS
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.queue_port import Change, Work


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path, on_disk=True)
    yield desk
    desk.close()


def copied(desk: Desk) -> Path:
    """The file as it is now."""
    copy = desk.root / "copy.sqlite"
    with closing(sqlite3.connect(desk.workspace.paths.sqlite)) as now, closing(sqlite3.connect(copy)) as then:
        now.backup(then)
    return copy


def put_back(desk: Desk, copy: Path) -> None:
    for ending in ("-wal", "-shm"):
        Path(f"{desk.workspace.paths.sqlite}{ending}").unlink(missing_ok=True)
    os.replace(copy, desk.workspace.paths.sqlite)


def inbox(desk: Desk) -> list[tuple[str, str, str]]:
    return [(row.key, row.status, row.prompt) for row in desk.workspace.queue.reviews()]


def test_an_inbox_that_went_back_to_before_a_question_has_it_again(desk: Desk) -> None:
    desk.write("""
@step
def begin() -> None:
    effect("begun")
    while not (HERE / "go").exists():
        pass

@workflow
async def flow() -> str:
    await begin()
    return await ask("One?", key="one", returns=str) + await ask("Two?", key="two", returns=str)
""")
    desk.start()
    with desk.working():
        until(desk.effects)
        copy = copied(desk)
        (desk.root / "go").touch()
        until(lambda: inbox(desk))
        desk.answer("one", "yes")
        asked = [("one", "completed", "One?"), ("two", "open", "Two?")]
        until(lambda: inbox(desk) == asked)
        put_back(desk, copy)
        # The clock stands still, so nobody compares all runs with their receipts: the runner knows by itself.
        until(lambda: inbox(desk) == asked)


HANGING = """
@step
def hang() -> None:
    effect("hangs")
    while not (HERE / "go").exists():
        pass
"""
CLEANING = (
    HANGING
    + """
@workflow
async def flow() -> None:
    try:
        await ask("Go on?", key="q", returns=str)
    finally:
        await hang()
"""
)
ENDING = (
    HANGING
    + """
@workflow
async def flow() -> None:
    try:
        async with asyncio.timeout(1):
            await hang()
    except TimeoutError:
        pass
"""
)


@pytest.mark.parametrize(("code", "key"), [(CLEANING, "$cleanup"), (ENDING, "$end")])
def test_a_limit_of_a_run_s_end_outlives_the_file_that_it_stood_in(desk: Desk, code: str, key: str) -> None:
    desk.write(code)
    desk.start()

    def rows() -> list[str]:
        return [row.work.key for row in desk.workspace.queue.work("wf")]

    with desk.working():
        if code is CLEANING:
            until(lambda: inbox(desk))
            desk.cancel()
        until(desk.effects)
        desk.clock.advance(1)
        until(lambda: key in rows())
        for file in desk.workspace.paths.sqlite.parent.glob("workflows.sqlite*"):
            file.unlink()
        until(lambda: key in rows())
        desk.clock.advance(60)
        until(lambda: desk.summary().ended)
        (desk.root / "go").touch()


# -- the net -----------------------------------------------------------------------------------------------------

NAP = """
@workflow
async def flow() -> str:
    await asyncio.sleep(60)
    return "awake"
"""


def lose(desk: Desk, key: str, run_id: str = "wf") -> None:
    desk.workspace.queue.apply(Change(withdraw=[(run_id, key)]), "somebody")


@pytest.mark.parametrize("others", [0, 1])
def test_a_timer_that_is_missing_under_a_live_runner_is_queued_again(tmp_path: Path, others: int) -> None:
    desk = Desk(tmp_path)
    desk.write(NAP.replace("60", "1_000_000"))
    desk.start()
    with ExitStack() as runners:
        working = [runners.enter_context(desk.working(name)) for name in ("ada", "bob")[: 1 + others]]
        # A runner that begins looks for lost rows at once, and should not find this one.
        until(lambda: all(runner._rounds > 1 for runner in working) and desk.rows() == ["timer timer"])
        lose(desk, "timer")
        assert desk.state().reason == "nothing is queued for it"
        # Who has not got the body only wakes the run, which the other one ends without news: then it is looked again.
        until(lambda: desk.rows() == ["timer timer"] or desk.clock.advance(LOOK_SECONDS))
        desk.clock.advance(1_000_000)
        until(lambda: desk.summary().result == "awake")


def test_a_run_that_is_woken_without_news_executes_nothing_twice(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(f"{HANGING}\n@workflow\nasync def flow() -> None:\n    await hang()\n")
    desk.start()
    with desk.working(concurrency=2):
        until(desk.effects)
        desk.workspace.queue.apply(Change(offer=[Work("wf", "workflow")]), "somebody")
        until(lambda: desk.rows() == ["step hang"])
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.effects() == ["hangs"]


def test_a_run_of_which_nothing_is_left_is_found_by_the_next_runner(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(NAP)
    lose(desk, "timer")
    desk.work()
    assert desk.rows() == ["timer timer"]


def test_many_are_found_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unqueued, "_AT_ONCE", 2)
    desk = Desk(tmp_path)
    desk.write(NAP.replace("60", "1_000_000"))
    names = [f"wf-{n}" for n in range(5)]
    for name in names:
        desk.start(name)
    desk.work()
    for name in names:
        lose(desk, "timer", name)
    assert len(desk.queue.unqueued()) == 5
    desk.work()
    assert len(desk.queue.unqueued()) == 3
    with desk.working():
        until(lambda: not desk.queue.unqueued() or desk.clock.advance(SWEEP_SECONDS))


QUESTION = """
@workflow
async def flow() -> str:
    return await ask("Well?", key="q", returns=str{limit})
"""


def test_a_run_that_waits_for_an_answer_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(QUESTION.format(limit=""))
    assert [run_id for run_id, _ in desk.queue.unqueued()] == ["wf"]
    assert desk.work().commands == 0


def test_an_answer_of_which_nobody_would_notice_that_it_never_comes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(QUESTION.format(limit=", expires=60"))
    assert "timer $expiry/q" in desk.rows()
    lose(desk, "$expiry/q")
    desk.work()
    assert "timer $expiry/q" in desk.rows()


def test_beside_a_question_a_missing_timer_is_found_by_who_has_the_body(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("""
@workflow
async def flow() -> str:
    await asyncio.gather(ask("Well?", key="q", returns=str), asyncio.sleep(60))
""")
    desk.start()
    with desk.working():
        until(lambda: "timer sleep/timer" in desk.rows())
        lose(desk, "sleep/timer")
        desk.clock.advance(LOOK_SECONDS)
        until(lambda: "timer sleep/timer" in desk.rows())


def test_a_run_of_another_workspace_is_not_queued(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(NAP)
    lose(desk, "timer")
    other = desk.process()
    other.ledger = seen_as(Elsewhere, desk.ledger)
    desk.work(on=other)
    assert desk.rows() == []


class Elsewhere(MemoryLedger):
    """Another workspace."""

    @property
    def home(self) -> str:
        return "elsewhere"


def test_a_row_of_an_answered_call_brings_back_those_that_are_lost(desk: Desk) -> None:
    desk.write("""
@step
def work(name: str) -> str:
    effect(name)
    return name

@workflow
async def flow() -> list[str]:
    return await parallel([work("a"), work("b")])
""")
    desk.start()
    desk.work(max_commands=1)
    answered, lost = (row.work for row in desk.workspace.queue.work("wf"))
    desk.work(max_commands=1)
    desk.workspace.queue.apply(Change(offer=(answered,), withdraw=(("wf", lost.key), ("wf", ""))), "test")
    desk.work()
    assert (desk.effects(), desk.summary().result) == (["a", "b"], ["a", "b"])
