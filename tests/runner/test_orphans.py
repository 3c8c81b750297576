"""Whatever dies or happens when: a child whose parent no longer waits for it does not go on.

`KILLS_APART` says how many writes lie between two at which a process dies. In `make test` each way to die has other
ones, so that together they have each write; `make soak` lets a process die in each way at each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.runner.desks import Desk, Fate, Killed

from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.ports import Adopted, Appended, Entry
from hermes_workflows.workspace import Workspace

FLOW = """
from hermes_workflows.authoring import map_workflow

@workflow
async def child(inputs: str) -> str:
    return await ask(f"{inputs}?", key="go", returns=str)

@workflow
async def flow() -> Any:
    return await map_workflow(child, ["a", "b", "c"], lambda item: item, limit=2)
"""
TIMED = FLOW.replace(
    "    return await map_workflow",
    """    try:
        async with asyncio.timeout(5):
            await child("z")
    except TimeoutError:
        pass
    return await map_workflow""",
)
BROKEN = "def broken(:"
_APART = int(os.environ.get("KILLS_APART", "3"))
KINDS = ("before", "after", "index lost")


def everything_has_ended(desk: Desk) -> None:
    for head in desk.ledger.heads():
        assert desk.summary(head.run_id).ended, (head.run_id, desk.state(head.run_id))
        assert desk.ledger.verify(head.run_id) == []
        assert desk.rows(head.run_id) == []


def recover(desk: Desk) -> None:
    for _ in range(3):
        # The dead process's leases run out: the twins live in one process, whose pid still answers.
        desk.clock.advance(31.0)
        desk.work("bob")


@pytest.mark.parametrize("loads", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_parent_that_dies_at_any_write_leaves_no_child_behind(
    tmp_path: Path, kind: str, loads: bool
) -> None:
    for writes in range(KINDS.index(kind) % _APART, 14, _APART):
        (tmp_path / f"{writes}").mkdir()
        desk = Desk(tmp_path / f"{writes}")
        desk.run(FLOW)
        if not loads:
            desk.write(BROKEN)
        desk.cancel()
        with suppress(Killed):
            desk.work(on=desk.process(Fate(writes, after=kind == "after")))
        if kind == "index lost":
            desk.lose_index()
        recover(desk)
        everything_has_ended(desk)
        ended = {head.run_id: desk.summary(head.run_id).status for head in desk.ledger.heads()}
        assert ended == dict.fromkeys(["wf", "wf.child.a", "wf.child.b"], "cancelled")


class Interrupted(MemoryLedger):
    """A ledger to which something else happens right before a run is created."""

    def __init__(self, shared: MemoryLedger, happens: Callable[[str], None]) -> None:
        self.__dict__.update(shared.__dict__)
        self._happens = happens

    def create(self, entry: Entry, day: str, adopted: Adopted | None = None) -> Appended:
        self._happens(entry.run_id)
        return super().create(entry, day, adopted)


def interrupted(desk: Desk, happens: Callable[[str], None]) -> Workspace:
    made = desk.process()
    made.ledger = Interrupted(desk.ledger, happens)
    return made


@pytest.mark.parametrize("dies", [False, True])
def test_a_child_that_is_started_when_its_parent_has_just_ended_is_cancelled(tmp_path: Path, dies: bool) -> None:
    desk = Desk(tmp_path)
    desk.write(FLOW)
    desk.start()

    def parent_ends(run_id: str) -> None:
        if not desk.summary().ended:
            desk.cancel()
            desk.clock.advance(1.0)  # whoever holds the body has precedence for a moment
            desk.work("bob")
            assert desk.summary().status == "cancelled"

    made = interrupted(desk, parent_ends)
    if dies:
        # The process goes with the creation of the child, and sees nothing of what happened.
        made.went_on = _killed  # type: ignore[method-assign]
    with suppress(Killed):
        desk.work("ada", on=made)
    recover(desk)
    everything_has_ended(desk)
    assert desk.summary("wf.child.a").status == "cancelled"


def _killed(_: str) -> None:
    raise Killed


def test_a_child_that_is_started_when_its_parent_has_just_given_it_up_is_cancelled(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(TIMED)
    desk.start()

    def time_runs_out(run_id: str) -> None:
        if run_id == "wf.child":
            desk.clock.advance(6.0)  # the lease of the child's row holds on
            desk.work("bob")
            desk.clock.advance(1.0)
            desk.work("bob")
            assert "timers/timer/fired.json" in desk.paths()

    # The run's row and the child's: nobody builds the parent's body anew, which would find what it has given up.
    desk.work("ada", on=interrupted(desk, time_runs_out), max_commands=2)
    assert desk.summary("wf.child").cancel_requested is not None
    recover(desk)
    assert desk.summary("wf.child").status == "cancelled"
    assert desk.summary().status == "running"
