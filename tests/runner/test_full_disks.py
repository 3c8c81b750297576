"""A disk that takes nothing: nothing is acknowledged, nothing is lost, and other runs go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.runner.desks import DEADLINE, Desk, RunningClock, seen_as, until

from hermes_workflows.errors import IntegrityError, StoreFailure
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Entry, Outcome
from hermes_workflows.store.queue_port import Change, Lease

ONE_STEP = """
@step
def work() -> str:
    effect("work")
    return "done"

@workflow
async def flow() -> str:
    return await work()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


class FullDisk(MemoryLedger):
    """Takes nothing while it is full."""

    full = False
    refused = 0

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        if self.full:
            self.refused += 1
            raise StoreFailure("no space left on device", hint="free some")
        return super().append(entries)


@pytest.mark.parametrize(
    "code", [ONE_STEP, ONE_STEP.replace("return await work()", "await asyncio.sleep(0.01)\n    return await work()")]
)
def test_a_full_disk_acknowledges_nothing_and_the_run_goes_on_when_there_is_space(tmp_path: Path, code: str) -> None:
    desk = Desk(tmp_path, RunningClock())
    desk.write(code)
    desk.start()
    process = desk.process()
    disk = seen_as(FullDisk, desk.ledger)
    process.ledger, disk.full = disk, True
    runner = desk.runner(on=process, idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: disk.refused > 1)
    assert desk.paths() == ["run.json"]
    assert not desk.summary().ended
    disk.full = False
    until(lambda: desk.summary().ended)
    runner.request_stop()
    thread.join(DEADLINE)
    assert (desk.summary().result, desk.effects()) == ("done", ["work"])
    # A pause between two attempts grows: a full disk is not hammered.
    assert disk.refused < 20


class FullIndex(MemoryQueue):
    """Takes no transaction while it is full."""

    def __init__(self, handle: MemoryQueue) -> None:
        self.__dict__.update(handle.__dict__)
        self.writes = 0

    def apply(self, change: Change, runner: str) -> list[Lease]:
        self.writes += 1
        if self.writes % 3:
            raise StoreFailure("database or disk is full", hint="free some")
        return super().apply(change, runner)


def test_a_runner_that_may_leave_when_idle_says_that_a_full_disk_kept_it_from_its_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RunningClock())
    desk.write(ONE_STEP.replace("return await work()", "await asyncio.sleep(0.01)\n    return await work()"))
    desk.start()
    process = desk.process()
    disk = seen_as(FullDisk, desk.ledger)
    process.ledger, disk.full = disk, True
    with pytest.raises(StoreFailure, match="no space left"):
        desk.work(on=process, idle_exit_after=0.05)
    assert disk.refused
    disk.full = False
    desk.work(on=process, idle_exit_after=0.05)
    assert desk.summary().result == "done"


def test_an_index_that_takes_nothing_now_gets_everything_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RunningClock())
    desk.write(ONE_STEP)
    desk.start()
    process = desk.process()
    process.queue = FullIndex(desk.queue.reopen())
    runner = desk.runner(on=process, idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: desk.summary().ended and not desk.rows())
    runner.request_stop()
    thread.join(DEADLINE)
    assert (desk.summary().result, desk.effects()) == ("done", ["work"])


class LostIndex(MemoryQueue):
    """Cannot be read either for a while: its file is gone, and the disk does not take a new one."""

    def __init__(self, handle: MemoryQueue) -> None:
        self.__dict__.update(handle.__dict__)
        self.asked = 0

    def next_visible(self) -> float | None:
        self.asked += 1
        if self.asked < 2:
            raise StoreFailure("database or disk is full", hint="free some")
        return super().next_visible()


def test_an_index_that_cannot_be_read_ends_no_runner(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RunningClock())
    desk.write(ONE_STEP.replace("return await work()", "await asyncio.sleep(0.01)\n    return await work()"))
    desk.start()
    process = desk.process()
    process.queue = index = LostIndex(desk.queue.reopen())
    runner = desk.runner(on=process, idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: desk.summary().ended and not desk.rows())
    runner.request_stop()
    thread.join(DEADLINE)
    assert (desk.summary().result, desk.effects()) == ("done", ["work"])
    assert index.asked > 1


def test_results_that_waited_together_are_recorded_in_the_order_of_their_time(desk: Desk) -> None:
    desk.write("""
import time

@step
def work(name: str) -> str:
    effect(name)
    while not (HERE / name).exists():
        time.sleep(0.005)
    return name

@workflow
async def flow() -> list[str]:
    return await parallel({"first": work("later"), "second": work("sooner")})
""")
    desk.start()
    process = desk.process()
    disk = seen_as(FullDisk, desk.ledger)
    process.ledger = disk
    runner = desk.runner(on=process, idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: len(desk.effects()) == 2)
    disk.full = True
    (desk.root / "later").touch()
    until(lambda: disk.refused)
    desk.clock.wall -= 5
    (desk.root / "sooner").touch()
    until(lambda: len(runner._dispatchers[0]._results._waiting) == 2)
    disk.full = False
    desk.clock.advance(10)
    until(lambda: desk.summary().ended)
    runner.request_stop()
    thread.join(DEADLINE)
    assert desk.paths()[1:3] == ["steps/work-2.json", "steps/work.json"]


class BrokenRun(MemoryLedger):
    """Has lost an object of one run, and finds out when it appends to it."""

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        if any(entry.run_id == "wf" for entry in entries):
            raise IntegrityError("object 1234 is missing")
        return super().append(entries)


def test_a_run_that_takes_no_results_holds_up_nobody_elses(desk: Desk) -> None:
    desk.write(ONE_STEP)
    desk.start()
    desk.start("other")
    process = desk.process()
    process.ledger = seen_as(BrokenRun, desk.ledger)
    desk.work(on=process)
    assert (desk.summary("other").result, desk.marks()) == ("done", ["integrity"])
    desk.work()
    assert (desk.summary().result, desk.marks()) == ("done", [])
