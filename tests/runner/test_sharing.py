"""Several processes on one workspace, leases that run out, and a queue that vanishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed, RunningClock, somebody, until

from hermes_workflows.review.answer import Answer, answer
from hermes_workflows.store.queue_port import Change, Claim

FAN = """
@step
def square(n: int) -> int:
    effect(f"square {n}")
    return n * n

@workflow
async def flow() -> int:
    return sum(await parallel([square(n) for n in range(12)]))
"""
SUM = sum(n * n for n in range(12))
WAITING = """
@step
def wait(name: str) -> str:
    import time
    effect(f"begun {name}")
    while not (HERE / "go").exists():
        time.sleep(0.005)
    return name

@workflow
async def flow() -> list[str]:
    return await parallel([wait(str(n)) for n in range(6)])
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_several_runners_share_the_calls_and_write_each_path_once(tmp_path: Path) -> None:
    # Time goes by: who meets a run that another one has in hand looks again a little later.
    desk = Desk(tmp_path, clock=RunningClock())
    desk.write(FAN)
    names = [f"run-{n}" for n in range(4)]
    for name in names:
        desk.start(name)
    with desk.working("ada"), desk.working("bob"), desk.working("eve"):
        # Whoever recorded a last result late offers the ended run once more, and somebody finds it over.
        until(lambda: all(desk.summary(name).ended for name in names) and desk.queue.work() == [])
    for name in names:
        assert desk.summary(name).result == SUM
        assert desk.ledger.verify(name) == []


def test_a_lease_that_ran_out_is_taken_over_and_both_results_are_one(desk: Desk) -> None:
    desk.write("""
@step
def wait() -> str:
    import time
    effect("begun")
    while not (HERE / "go").exists():
        time.sleep(0.005)
    return "done"

@workflow
async def flow() -> str:
    return await wait()
""")
    desk.start()
    with desk.working("ada", lease_seconds=1e6) as slow:
        until(desk.effects)
        # Ada's signs of life stop coming: the machine was suspended, or the disk stood still.
        slow._kept[0].renew = lambda leases, seconds: {}
        desk.clock.advance(31)
        with desk.working("bob"):
            until(lambda: len(desk.effects()) == 2)
            (desk.root / "go").touch()
            until(lambda: desk.summary().ended)
    assert desk.summary().result == "done"
    assert sorted(desk.paths()) == ["result.json", "run.json", "steps/wait.json"]


def test_calls_wait_for_no_lease_while_their_runner_renews_it(desk: Desk) -> None:
    desk.write(WAITING)
    desk.start()
    with desk.working("ada", lease_seconds=0.5, concurrency=6):
        until(lambda: len(desk.effects()) == 6)
        for _ in range(5):
            # Each renewal gives half a second of the queue's own lease length, as seen by a clock that moves on.
            desk.clock.advance(0.4)
            until(lambda: _renewed(desk))
        desk.work("bob")
        assert len(desk.effects()) == 6
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert len(desk.effects()) == 6


def _renewed(desk: Desk) -> bool:
    return all(row.status == "leased" for row in desk.queue.work("wf") if row.work.kind == "step")


@pytest.mark.parametrize("executing", [2, 6])
def test_rows_that_vanish_under_a_live_runner_are_queued_again(tmp_path: Path, executing: int) -> None:
    desk = Desk(tmp_path, on_disk=True)
    desk.write(WAITING)
    desk.start()
    with desk.working("ada", concurrency=executing):
        until(lambda: len(desk.effects()) == executing)
        for file in (tmp_path / ".hermes").glob("workflows.sqlite*"):
            file.unlink()
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == list("012345")
    # Executing calls are not killed because their row vanished, nor executed by anybody else.
    assert len(desk.effects()) == 6
    assert desk.ledger.verify("wf") == []
    desk.close()


def test_an_answer_whose_writer_died_before_the_index_is_found(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    with desk.working():
        given = Answer("wf", "q", "yes", somebody(), desk.clock.now())
        answer(desk.ledger, given, desk.ledger.read("wf")[1], desk.workspace.redactor)
        desk.clock.advance(2.0)
        until(lambda: desk.summary().ended)
    assert desk.summary().result == "yes"


def test_a_start_whose_writer_died_before_the_index_is_found(desk: Desk) -> None:
    desk.write('@workflow\nasync def flow() -> str:\n    return "done"\n')
    with pytest.raises(Killed):
        desk.process(Fate(writes=1)).start("flow.py:flow", run_id="wf")
    assert desk.rows() == []
    desk.work()
    assert desk.summary().result == "done"


def test_a_row_of_a_run_that_is_gone_is_removed(desk: Desk) -> None:
    from hermes_workflows.store.queue_port import Work

    desk.queue.apply(Change(offer=[Work("vanished", "workflow"), Work("vanished", "step", "a", "fp")]), "somebody")
    desk.work()
    assert desk.rows("vanished") == []


def test_a_run_whose_receipts_cannot_be_read_is_stuck_and_others_go_on(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    desk.start("other")
    desk.ledger._runs["wf"].files["reviews/q/request.json"] = b"{"
    desk.queue.apply(Change(offer=_workflow("wf")), "somebody")
    desk.work()
    desk.answer("q", "fine", "other")
    desk.work()
    assert desk.marks() != []
    assert desk.summary("other").result == "fine"


def test_a_receipt_of_a_newer_program_stops_its_run_only(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="q", returns=str)\n')
    files = desk.ledger._runs["wf"].files
    files["reviews/q/request.json"] = files["reviews/q/request.json"].replace(b"hermes.receipt/1", b"hermes.receipt/2")
    desk.queue.apply(Change(offer=_workflow("wf")), "somebody")
    desk.work()
    (mark,) = desk.queue.stuck("wf")
    assert mark.kind == "newer_schema"
    assert "upgrade" in mark.hint


def _workflow(run_id: str) -> list[Any]:
    from hermes_workflows.store.queue_port import Work

    return [Work(run_id, "workflow")]


def test_what_a_dead_runner_had_claimed_is_claimed_again(desk: Desk) -> None:
    desk.write(FAN)
    desk.start()
    desk.queue.apply(Change(claim=Claim(10)), "dead")
    desk.work()
    assert not desk.summary().ended
    desk.clock.advance(31)
    desk.work()
    assert desk.summary().result == SUM


@pytest.mark.parametrize("jump", [3600, -3600], ids=["an hour on", "an hour back"])
def test_a_wall_clock_that_jumps_costs_nobody_his_lease(desk: Desk, jump: int) -> None:
    desk.write(WAITING)
    desk.start()
    with desk.working("ada", concurrency=6):
        until(lambda: len(desk.effects()) == 6)
        desk.clock.wall += jump
        assert desk.work("bob").commands == 0
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == list("012345")
    assert len(desk.effects()) == 6
    assert desk.ledger.verify("wf") == []


def test_a_runner_that_was_suspended_is_healthy_again_with_its_next_sign_of_life(desk: Desk) -> None:
    desk.write(WAITING)
    desk.start()
    with desk.working("ada", concurrency=6, lease_seconds=3.0):
        until(lambda: len(desk.effects()) == 6)
        desk.clock.advance(600)
        until(lambda: desk.state().state == "running")
        assert desk.work("bob").commands == 0
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert len(desk.effects()) == 6
