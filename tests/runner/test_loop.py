"""The runner's loop: what it counts, when it ends, how it is stopped, and what it does while the disk is full."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import DEADLINE, Desk, RunningClock, seen_as, until

from hermes_workflows.runner import worker
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.ports import Entry, Head, Outcome

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


def test_commands_are_claimed_rows(desk: Desk) -> None:
    desk.write(ONE_STEP)
    desk.start()
    assert (desk.work(max_commands=2).commands, desk.effects()) == (2, ["work"])
    assert desk.paths() == ["run.json", "steps/work.json"]
    report = desk.work(max_commands=5)
    assert (report.commands, report.reason) == (1, "idle")
    assert desk.summary().result == "done"


def test_a_budget_that_is_used_up_ends_the_runner(desk: Desk) -> None:
    desk.write(ONE_STEP)
    desk.start()
    report = desk.work(max_commands=1, idle_exit_after=None)
    assert (report.commands, report.reason) == (1, "max-commands")


def test_once_is_one_row(desk: Desk) -> None:
    desk.write(ONE_STEP)
    desk.start()
    for executed in ([], ["work"], ["work"]):
        report = desk.work(once=True, idle_exit_after=None)
        assert (report.commands, report.reason, desk.effects()) == (1, "once", executed)
    assert desk.summary().result == "done"
    assert desk.work(once=True).reason == "nothing-queued"


FAN_OUT = """
@step
def work(n: int) -> int:
    return n

@workflow
async def flow() -> int:
    return sum(await parallel([work(n) for n in range(64)]))
"""


def test_results_that_are_ready_together_share_one_barrier(desk: Desk) -> None:
    desk.write(FAN_OUT)
    desk.start()
    calls: list[int] = []
    append = desk.ledger.append

    class Counting(MemoryLedger):
        def append(self, entries: Sequence[Entry]) -> list[Outcome]:
            calls.append(sum(len(entry.drafts) for entry in entries))
            return append(entries)

    process = desk.process()
    process.ledger = seen_as(Counting, desk.ledger)
    desk.work(on=process, concurrency=16)
    assert desk.summary().result == sum(range(64))
    assert sum(calls) == 65
    assert max(calls) > 1


def test_calls_that_are_claimed_together_ask_once_what_others_wrote(desk: Desk) -> None:
    desk.write(FAN_OUT)
    desk.start()
    asked: list[str] = []
    head, append = desk.ledger.head, desk.ledger.append

    class Counting(MemoryLedger):
        def head(self, run_id: str) -> Head | None:
            asked.append("head")
            return head(run_id)

        def append(self, entries: Sequence[Entry]) -> list[Outcome]:
            asked.append("append")
            return append(entries)

    process = desk.process()
    process.ledger = seen_as(Counting, desk.ledger)
    desk.work(on=process, concurrency=64)
    assert desk.summary().result == sum(range(64))
    assert asked[: asked.index("append")] == ["head"]


def test_work_is_not_left_to_a_dead_runner_that_has_the_first_right_to_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RunningClock())
    desk.write(ONE_STEP)
    desk.start()
    dead = desk.process()
    dead.queue.goodbye = lambda runner_id: None  # type: ignore[method-assign]  # the killed say none
    desk.work("ada", on=dead, max_commands=1)
    desk.work("bob", idle_exit_after=0.01)
    assert desk.summary().result == "done"


def test_a_runner_at_rest_only_looks_until_somebody_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_RESTING_AFTER", 0.0)
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 2 * DEADLINE)
    desk = Desk(tmp_path, RunningClock())
    desk.write(ONE_STEP)
    with desk.working() as runner:
        queue, done = runner._workspaces[0].queue, [""]
        apply, changed = queue.apply, queue.changed
        monkeypatch.setattr(queue, "apply", lambda *change: done.append("turn") or apply(*change))
        monkeypatch.setattr(queue, "changed", lambda: done.append("look") or changed())
        until(lambda: done[-10:] == ["look"] * 10)
        desk.start()
        until(lambda: desk.summary().ended)


def test_a_stop_lets_executing_calls_finish(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> str:
    return (await bash("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo done")).stdout.strip()
""")
    desk.start()
    runner = desk.runner(idle_exit_after=None)
    reports: list[Any] = []
    thread = threading.Thread(target=lambda: reports.append(runner.run()))
    thread.start()
    until((desk.root / "pid").exists)
    runner.request_stop()
    (desk.root / "go").touch()
    thread.join(DEADLINE)
    assert reports[0].reason == "stopped"
    assert desk.paths() == ["run.json", "steps/bash.json"]
    desk.work()
    assert desk.summary().result == "done"


def test_a_second_stop_ends_what_executes_and_gives_it_back(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> str:
    return (await bash("echo begun >> effects; while [ ! -e go ]; do sleep 0.01; done; echo done")).stdout.strip()
""")
    desk.start()
    runner = desk.runner(idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(desk.effects)
    runner.request_stop()
    runner.request_stop()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert (desk.paths(), desk.rows()) == (["run.json"], ["bash bash"])
    (desk.root / "go").touch()
    desk.work("bob")
    assert (desk.summary().result, len(desk.effects())) == ("done", 2)


def test_a_step_that_cannot_be_stopped_does_not_keep_the_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LEAVE_SECONDS", 0.2)
    desk = Desk(tmp_path, RunningClock())
    desk.write("""
@step
def deaf() -> str:
    import time
    effect("begun")
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "late"

@workflow
async def flow() -> str:
    return await deaf()
""")
    desk.start()
    runner = desk.runner(idle_exit_after=None)
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(desk.effects)
    runner.request_stop()
    runner.request_stop()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert desk.rows() == ["step deaf"]
    (desk.root / "go").touch()
    desk.work("bob")
    assert desk.summary().result == "late"


def test_a_line_is_said_once_whatever_is_replayed(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "hermes_workflows.runner")
    desk.run("""
@workflow
async def flow() -> None:
    log("before")
    await ask("Well?", key="q", returns=str)
    log("after")
""")
    desk.work()
    desk.answer("q", "yes")
    desk.work()
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if line in ("before", "after")] == ["before", "after"]


def test_finished_runs_are_sealed_when_it_is_quiet(desk: Desk) -> None:
    desk.write('@workflow\nasync def flow() -> str:\n    return "done"\n')
    with desk.working():
        desk.start()
        until(lambda: desk.summary().ended)
        desk.clock.advance(1.0)
        until(lambda: not desk.rows())
        desk.clock.advance(10.0)
        until(lambda: "wf" in desk.ledger._in_ledger)


def test_one_faulty_run_never_ends_the_runner(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_workflows.runner import advance

    settle = advance._settle

    def faulty(records: Any, held: Any, stop: Any) -> bool:
        if held.run_id == "wf":
            raise ZeroDivisionError("a fault of ours")
        return settle(records, held, stop)

    desk.write(ONE_STEP)
    desk.start()
    desk.start("other")
    monkeypatch.setattr(advance, "_settle", faulty)
    desk.work()
    assert (desk.summary("other").result, desk.marks()) == ("done", ["internal"])
    monkeypatch.undo()
    # What may have been mended outside of the code is tried once by each runner that is started.
    desk.work()
    assert (desk.summary().result, desk.marks()) == ("done", [])


def test_the_readme_of_a_question_travels_with_it(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    asked = desk.ledger.file("wf", "README.md") or b""
    assert b"waiting" in asked
    assert b"Well?" in asked
    desk.answer("q", "yes")
    desk.work()
    assert b"completed" in (desk.ledger.file("wf", "README.md") or b"")
