"""Steps that follow each other at once: the queue is told of them together, and loses nothing by that."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.runner.desks import QUICK, Desk, Fate, Killed, seen_as, until

from hermes_workflows.runner import bodies, bursts
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.queue_port import Change, Work

SUM = """
@step
def add(n: int) -> int:
    effect(f"add {n}")
    return n + 1

@workflow
async def flow() -> int:
    n = 0
    for _ in range(30):
        n = await add(n)
    return n
"""
SLOW = """
import time

@step
def quick(n: int) -> int:
    return n

@step
def slow() -> str:
    effect("begun")
    for _ in range(2_000):
        if (HERE / "go").exists():
            break
        time.sleep(0.005)
    return "done"

@workflow
async def flow() -> str:
    for n in range(3):
        await quick(n)
    return await slow()
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_step_of_a_burst_costs_one_append_no_transaction_and_no_replay(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(SUM)
    desk.start()
    rebuilt: list[str] = []
    rebuild = bodies.rebuild
    monkeypatch.setattr(bodies, "rebuild", lambda live, history: rebuilt.append(live.run_id) or rebuild(live, history))
    fate = Fate()
    desk.work(on=desk.process(fate))
    assert desk.summary().result == 30
    assert rebuilt == ["wf"]
    # Beyond one a step: the claims at both ends, the result, and the looks that found nothing.
    assert 30 <= fate.made <= 38


def test_outside_of_bursts_a_step_costs_one_transaction_and_one_append(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "QUICK", 0.0)
    desk.write(SUM)
    desk.start()
    fate = Fate()
    desk.work(on=desk.process(fate))
    assert desk.summary().result == 30
    assert 60 <= fate.made <= 70


def test_whoever_goes_on_after_a_burst_that_was_killed_repeats_no_recorded_step(desk: Desk) -> None:
    desk.write(SUM)
    desk.start()
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=20)))
    recorded = [receipt.key for receipt in desk.receipts() if receipt.kind == "step"]
    rows = desk.queue.work("wf")
    assert [row.work.kind for row in rows] == ["step"]
    assert rows[0].work.key in recorded[:1], "the anchor is answered, and stands for all of them"
    done = desk.effects()
    assert len(done) >= len(recorded) > 10
    desk.clock.advance(31)
    desk.work("bob")
    assert desk.summary().result == 30
    assert len(desk.effects()) - len(done) == 30 - len(recorded)


def test_a_slow_step_of_a_burst_is_soon_in_the_queue(desk: Desk) -> None:
    desk.write("@workflow\nasync def flow() -> None:\n    pass\n", "other.py")
    desk.write(SLOW)
    desk.start()
    with desk.working():
        until(lambda: desk.effects() == ["begun"])
        before = desk.rows()
        desk.clock.advance(bursts.TOLD_WITHIN)
        until(lambda: desk.rows() == ["step slow"])
        assert [row.status for row in desk.queue.work("wf")] == ["leased"]
        desk.start("another", ref="other.py:flow")
        until(lambda: desk.summary("another").ended, "the loop goes on while a step takes its time")
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended and desk.rows() == [])
    assert before == ["step quick"]
    assert desk.summary().result == "done"


def test_nobody_takes_a_run_over_from_a_burst_that_is_suspended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue does not know of the step that executes, and its runner does not come round to say so."""
    monkeypatch.setattr(bursts, "TOLD_WITHIN", 3600.0)
    desk.write(SLOW)
    desk.start()
    with desk.working() as suspended:
        until(lambda: desk.effects() == ["begun"])
        suspended._turn = lambda sweep: False  # type: ignore[method-assign]
        desk.queue.apply(Change(offer=[Work("wf", "workflow")]), "somebody")
        desk.clock.advance(1.0)
        desk.work("bob")
        assert desk.effects() == ["begun"]
        del suspended._turn  # type: ignore[method-assign]
        assert [row.runner for row in desk.queue.work("wf")] == ["ada", None]
        (desk.root / "go").touch()
        until(lambda: desk.summary().ended)
    assert desk.summary().result == "done"
    assert desk.effects() == ["begun"]


def test_nobody_decides_a_run_of_which_a_living_runner_has_recorded_more_than_can_be_read(desk: Desk) -> None:
    class Behind(MemoryLedger):
        def is_behind(self, run_id: str) -> bool:
            return True

        def take_over(self, run_id: str) -> None:
            raise AssertionError("its writer has its lease")

    desk.write(SLOW.replace("range(3)", "range(0)"))
    desk.start()
    stale = desk.process()
    stale.ledger = seen_as(Behind, desk.ledger)
    with desk.working() as suspended:
        until(lambda: desk.effects() == ["begun"])
        suspended._turn = lambda sweep: False  # type: ignore[method-assign]
        desk.queue.apply(Change(offer=[Work("wf", "workflow")]), "somebody")
        desk.clock.advance(1.0)
        desk.work("bob", on=stale)
        assert desk.queue.next_visible() is not None, "it is looked at again, later"
        assert desk.marks() == []
        del suspended._turn  # type: ignore[method-assign]
        (desk.root / "go").touch()
        desk.clock.advance(1.0)
        until(lambda: desk.summary().ended)
    assert desk.effects() == ["begun"]


@pytest.mark.untraced
@pytest.mark.decides_otherwise
@pytest.mark.parametrize("swallowed", ["ValueError", "BaseException"], ids=["stopped", "left behind"])
def test_a_body_that_blocks_in_a_burst_is_stuck_and_holds_up_nobody(desk: Desk, swallowed: str) -> None:
    desk.write(f"""
@step
def quick(n: int) -> int:
    return n

@workflow
async def flow() -> None:
    for n in range(20):
        await quick(n)
    while not (HERE / "free").exists():
        try:
            while not (HERE / "free").exists():
                pass
        except {swallowed}:
            pass
""")
    desk.write(
        "@step\ndef one() -> int:\n    return 1\n\n@workflow\nasync def flow() -> int:\n    return await one()\n",
        "other.py",
    )
    desk.start()
    with desk.working(slices=QUICK, concurrency=1):
        until(lambda: desk.marks() == ["blocked"])
        desk.start("another", ref="other.py:flow")
        until(lambda: desk.summary("another").ended)
        (desk.root / "free").touch()
        desk.start("one-more", ref="other.py:flow")
        until(lambda: desk.summary("one-more").ended)
    assert desk.marks() == ["blocked"]
    assert len(desk.paths()) == 21


def test_a_step_of_a_burst_is_given_back_when_its_runner_ends(desk: Desk) -> None:
    desk.write(SLOW)
    desk.start()
    with desk.working(drain_seconds=0.0) as runner:
        until(lambda: desk.effects() == ["begun"])
        runner.request_stop()
        runner.request_stop()
        until(lambda: desk.rows() == ["step slow"])
        (desk.root / "go").touch()
    until(lambda: [row.status for row in desk.queue.work("wf")] == ["queued"])
    desk.work("bob")
    assert desk.summary().result == "done"


def test_what_others_want_ends_a_burst(desk: Desk) -> None:
    desk.write(SLOW.replace("range(3)", "range(300)").replace("return n\n", 'effect("q")\n    return n\n'))
    desk.start()
    with desk.working():
        until(lambda: len(desk.effects()) > 20)
        desk.cancel()
        until(lambda: desk.summary().ended)
    assert desk.summary().status == "cancelled"
    desk.clock.advance(1.0)
    desk.work("bob")
    assert desk.rows() == []


def test_a_step_that_begins_at_most_once_is_in_the_queue_before_it_begins(desk: Desk) -> None:
    desk.write("""
@step
def quick(n: int) -> int:
    return n

@step(at_most_once=True)
def pay() -> str:
    effect("paid")
    return "paid"

@workflow
async def flow() -> str:
    await quick(1)
    await quick(2)
    return await pay()
""")
    desk.start()
    rows: list[list[str]] = []
    queue = desk.process()
    apply = queue.queue.apply

    def seen(change, runner):  # type: ignore[no-untyped-def]
        leases = apply(change, runner)
        rows.append([lease.work.key for lease in leases])
        return leases

    queue.queue.apply = seen  # type: ignore[method-assign]
    desk.work(on=queue)
    assert desk.summary().result == "paid"
    assert ["pay"] in rows
    assert ["quick@2"] not in rows


def test_a_runner_that_may_claim_so_many_rows_makes_no_bursts(desk: Desk) -> None:
    desk.write(SUM)
    desk.start()
    report = desk.work(max_commands=5)
    assert report.commands == 5
    assert len(desk.effects()) == 4, "the run's own row was the first"


def test_bursts_of_two_runs_take_turns(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write("""
@step
def told(name: str) -> None:
    effect(name)

@workflow
async def flow(name: str) -> None:
    for _ in range(60):
        await told(name)
""")
    desk.start("one", "one")
    desk.start("two", "two")
    elapsed = desk.clock.elapsed
    monkeypatch.setattr(desk.clock, "elapsed", lambda: (desk.clock.advance(0.002), elapsed())[1])
    desk.work(concurrency=1)
    order = desk.effects()
    assert sorted(order) == ["one"] * 60 + ["two"] * 60
    assert sum(name != after for name, after in pairwise(order)) > 4
