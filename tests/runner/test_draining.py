"""Runners that are to end: what executes is finished, nothing new is taken, and others find the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, RunningClock, until

HELD = """
@workflow
async def flow() -> str:
    await bash("touch begun; while [ ! -e go ]; do sleep 0.01; done", key="held", timeout=60)
    return (await bash("echo after", key="after")).stdout.strip()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, clock=RunningClock())


def test_a_drained_runner_finishes_what_it_executes_and_takes_nothing_new(desk: Desk) -> None:
    desk.write(HELD)
    desk.start()
    with desk.working("ada", lease_seconds=0.6) as runner:
        until((desk.root / "begun").exists)
        desk.queue.drain("ada")
        until(lambda: runner._draining)
        assert [row.draining for row in desk.queue.runners()] == [True]
        desk.start("other")
        (desk.root / "go").touch()
        until(lambda: desk.queue.runners() == [])
    assert desk.paths() == ["run.json", "steps/held.json"]
    assert desk.paths("other") == ["run.json"]
    desk.work("bob")
    assert [desk.summary(name).result for name in ("wf", "other")] == ["after", "after"]


def test_a_runner_of_another_name_goes_on(desk: Desk) -> None:
    desk.write(HELD)
    (desk.root / "go").touch()
    with desk.working("ada", lease_seconds=0.6), desk.working("bob", lease_seconds=0.6):
        desk.queue.drain("ada")
        until(lambda: [row.runner_id for row in desk.queue.runners()] == ["bob"])
        desk.start()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == "after"


def test_a_drained_runner_says_why_it_ended(desk: Desk) -> None:
    runner = desk.runner("ada", idle_exit_after=None)
    runner.request_drain()
    assert runner.run().reason == "drained"


def test_the_time_that_calls_get_after_a_signal_can_be_chosen(desk: Desk) -> None:
    desk.write(HELD)
    desk.start()
    with desk.working("ada", drain_seconds=0.1) as runner:
        until((desk.root / "begun").exists)
        runner.request_stop()
        until(lambda: desk.queue.runners() == [])
    assert [(row.status, row.claims) for row in desk.queue.work()] == [("queued", 0)]
