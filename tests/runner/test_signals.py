"""Waiting for signals, and for children, with a time that runs out: what the runner writes and when."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed, somebody

from hermes_workflows.core.ending import End
from hermes_workflows.review.signals import InvalidSignal
from hermes_workflows.runner import timing
from hermes_workflows.runner.drafts import Stamp, run_ended
from hermes_workflows.runner.records import Records
from hermes_workflows.runner.slices import Decider, SliceLimits
from hermes_workflows.store.ports import Entry
from hermes_workflows.store.queue_port import Claim

WAITS = """
from dataclasses import dataclass
from hermes_workflows.authoring import child, sleep, wait_for
from hermes_workflows.errors import ChildFailed, SignalFailed, TimedOut

@dataclass
class Deploy:
    version: str
"""
FLOW = (
    WAITS
    + """
@workflow
async def flow() -> str:
    deploy = await wait_for("deploy", returns=Deploy)
    return deploy.version
"""
)
IMPATIENT = (
    WAITS
    + """
@workflow
async def flow() -> str:
    try:
        return (await wait_for("deploy", returns=Deploy, timeout=60)).version
    except TimeoutError as error:
        return str(error)
"""
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def send(desk: Desk, payload: Any, name: str = "deploy") -> Any:
    return desk.workspace.signal("wf", name, payload, somebody())


def test_a_wait_leaves_a_note_with_what_it_takes_and_costs_no_row(desk: Desk) -> None:
    desk.run(FLOW)
    note = desk.receipt("steps/deploy.start.json")
    assert (note.kind, note.status, note.request.name) == ("signal", "started", "deploy")
    assert note.request.returns["required"] == ["version"]
    assert desk.rows() == []
    assert desk.state().reason == "waiting for the signal deploy, an event from outside"
    with pytest.raises(InvalidSignal):
        send(desk, {"versio": 1})


def test_a_signal_is_taken_by_the_next_runner(desk: Desk) -> None:
    desk.run(FLOW)
    send(desk, {"version": "1.2"})
    desk.work()
    assert (desk.summary().status, desk.summary().result) == ("completed", "1.2")
    assert desk.paths()[2:] == ["signals/deploy/1.json", "result.json"]
    assert desk.ledger.verify("wf") == []


def test_a_signal_that_came_before_the_first_advance_is_kept(desk: Desk) -> None:
    desk.write(FLOW)
    desk.start()
    send(desk, {"version": "1.2"})
    desk.work()
    assert desk.summary().result == "1.2"
    assert desk.paths() == ["run.json", "signals/deploy/1.json", "result.json"]


def test_waits_and_signals_survive_the_loss_of_the_index(desk: Desk) -> None:
    desk.run(IMPATIENT)
    desk.lose_index()
    assert list(desk.summary().open_waits) == ["deploy"]
    desk.clock.advance(59)
    desk.work()
    assert not desk.summary().ended
    desk.clock.advance(1)
    desk.work()
    assert desk.summary().result == "signal call deploy: no signal 'deploy' came within 60 s"
    assert desk.receipt("steps/deploy.json").error.type == "Timeout"
    assert desk.ledger.verify("wf") == []


def test_a_signal_in_time_ends_the_timeout(desk: Desk) -> None:
    desk.run(IMPATIENT)
    send(desk, {"version": "1.2"})
    desk.clock.advance(60)
    desk.work()
    assert (desk.summary().result, desk.rows()) == ("1.2", [])
    assert "steps/deploy.json" not in desk.paths()


def test_a_signal_at_the_instant_of_the_timeout_is_never_lost(desk: Desk) -> None:
    """The runner has not heard of it when it says that time is over."""
    desk.run(IMPATIENT)
    desk.clock.advance(60)
    append = desk.ledger.append
    raced: list[Any] = []

    def late(entries: Any) -> Any:
        if not raced and any(draft.path == "steps/deploy.json" for entry in entries for draft in entry.drafts):
            raced.append(1)
            send(desk, {"version": "1.2"})
        return append(entries)

    desk.ledger.append = late  # type: ignore[method-assign]
    desk.work(on=desk.workspace)
    assert raced
    assert desk.summary().result == "1.2"
    assert "steps/deploy.json" not in desk.paths()


def test_a_wait_that_is_given_up_says_so_and_the_next_one_is_served(desk: Desk) -> None:
    desk.run(
        WAITS
        + """
@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            await wait_for("deploy", returns=Deploy)
    except TimeoutError:
        pass
    return (await wait_for("deploy", returns=Deploy, key="again")).version
"""
    )
    desk.clock.advance(31)
    desk.work()
    assert desk.receipt("steps/deploy.json").status == "cancelled"
    assert list(desk.summary().open_waits) == ["again"]
    send(desk, {"version": "1.2"})
    desk.work()
    assert desk.summary().result == "1.2"
    assert desk.ledger.verify("wf") == []


def test_an_early_signal_of_the_wrong_form_fails_its_await_and_nothing_else(desk: Desk) -> None:
    desk.write(
        WAITS
        + """
@workflow
async def flow() -> list[str]:
    said = []
    for _ in range(2):
        try:
            said.append((await wait_for("deploy", returns=Deploy)).version)
        except SignalFailed as error:
            said.append(str(error))
    return said
"""
    )
    desk.start()
    send(desk, {"versio": 1})
    desk.work()
    send(desk, {"version": "1.2"})
    desk.work()
    first, second = desk.summary().result
    assert "the signal 'deploy' that was kept does not fit Deploy" in first
    assert second == "1.2"


def test_a_cancelled_run_waits_for_no_signal(desk: Desk) -> None:
    desk.run(FLOW)
    desk.cancel()
    desk.work()
    assert desk.summary().status == "cancelled"
    assert desk.receipt("steps/deploy.json").status == "cancelled"


MANY = (
    WAITS
    + """
@workflow
async def flow() -> list[str]:
    first = await wait_for("deploy", returns=Deploy, timeout=600)
    try:
        await wait_for("deploy", returns=Deploy, timeout=60)
    except TimedOut:
        pass
    third = await wait_for("deploy", returns=Deploy)
    return [first.version, third.version]
"""
)


@pytest.mark.parametrize("writes", range(0, 10, 2))
@pytest.mark.parametrize("after", [True, False])
def test_wherever_a_runner_dies_each_signal_is_taken_once(desk: Desk, writes: int, after: bool) -> None:
    desk.write(MANY)
    desk.start()

    def work_and_die() -> None:
        with suppress(Killed):
            desk.work("mortal", on=desk.process(Fate(writes, after)))
        desk.clock.advance(35)
        desk.work()

    work_and_die()
    send(desk, {"version": "1"})
    work_and_die()
    desk.clock.advance(60)
    work_and_die()
    send(desk, {"version": "3"})
    work_and_die()
    assert desk.summary().result == ["1", "3"]
    assert desk.ledger.verify("wf") == []


CHILD = (
    WAITS
    + """
@step
def tidy() -> None:
    effect("cleaned up")

@workflow
async def slow() -> str:
    try:
        return await ask("Anybody?", key="who", returns=str)
    except asyncio.CancelledError:
        await tidy()
        raise

@workflow
async def flow() -> str:
    try:
        return await child(slow, key="slow", timeout=60)
    except TimedOut as error:
        return f"{type(error).__name__} {isinstance(error, ChildFailed)}: {error}"
"""
)


def test_a_child_over_its_timeout_is_cancelled_and_its_parent_goes_on(desk: Desk) -> None:
    desk.run(CHILD)
    desk.lose_index()
    desk.clock.advance(60)
    desk.work()
    assert desk.summary().result == "ChildTimedOut True: child call slow: the child run did not end within 60 s"
    assert desk.summary("wf.slow").status == "cancelled"
    assert desk.effects() == ["cleaned up"]
    assert desk.ledger.verify("wf") == []


def test_a_child_that_ended_in_time_counts_although_its_end_is_heard_of_late(desk: Desk) -> None:
    desk.run(CHILD)
    desk.ledger.append([Entry("wf.slow", (run_ended(End("completed", "me"), None, desk.clock.now(), Stamp("", "")),))])
    desk.clock.advance(60)
    decider = Decider(SliceLimits(dead_man=None))
    records = Records(desk.workspace, "ada", decider)
    # Before anybody looks at the child, as in the moment between its end and the report of it.
    (lease,) = records.apply(Claim(1, kinds=("timer",)))
    timing.serve(records, lease)
    records.apply(None)
    records.bodies.close()
    decider.close()
    assert desk.receipt("steps/slow.json").output == "me"
    desk.work()
    assert desk.summary().result == "me"


def test_a_child_that_ends_in_time_knows_nothing_of_its_timeout(desk: Desk) -> None:
    desk.run(CHILD)
    desk.answer("who", "me", run_id="wf.slow")
    desk.work()
    assert (desk.summary().result, desk.rows()) == ("me", [])


def test_another_timeout_is_no_divergence(desk: Desk) -> None:
    desk.run(CHILD)
    desk.write(CHILD.replace("timeout=60", "timeout=90"))
    desk.clock.advance(59)
    desk.work()
    assert desk.marks() == []
    desk.clock.advance(1)
    desk.work()
    # The time that was recorded holds for what had begun.
    assert "within 60 s" in str(desk.summary().result)


def test_a_child_that_waits_for_a_person_shows_in_its_parents_state(desk: Desk) -> None:
    desk.run(CHILD)
    summary, state = desk.summary(), desk.state()
    assert (summary.status, state.state) == ("running", "waiting")
    assert state.reason == "the child run wf.slow needs a typed answer to who"
    assert state.next_action == "hermes-workflows review respond wf.slow who"


def test_a_sleep_until_an_instant_wakes_then(desk: Desk) -> None:
    desk.run(
        WAITS
        + """
@workflow
async def flow() -> str:
    await sleep(until=datetime.fromisoformat("2026-12-24T18:00:00+01:00"))
    await sleep(until=datetime.fromisoformat("2020-01-01T00:00:00Z"))
    return "awake"
"""
    )
    due = desk.receipt("timers/timer/start.json").execution.due_at
    assert due is not None
    assert due.isoformat() == "2026-12-24T17:00:00+00:00"
    desk.lose_index()
    desk.clock.advance((due - desk.clock.now()).total_seconds())
    desk.work()
    assert desk.summary().result == "awake"
    assert desk.ledger.verify("wf") == []
