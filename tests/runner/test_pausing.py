"""A paused run decides nothing and starts nothing; what was executing finishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, somebody, until

from hermes_workflows.errors import Conflict

TWO_STEPS = """
@step
def first() -> str:
    import time
    effect("first")
    while not (HERE / "go").exists():
        time.sleep(0.005)
    return "one"

@step
def second() -> str:
    effect("second")
    return "two"

@workflow
async def flow() -> str:
    try:
        await first()
        return await second()
    finally:
        log("over")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def control(desk: Desk, verb: str, reason: str = "") -> None:
    desk.workspace.control("wf", verb, reason=reason, by=somebody())  # type: ignore[arg-type]


def test_what_executes_finishes_and_nothing_new_begins_until_it_is_resumed(desk: Desk) -> None:
    desk.write(TWO_STEPS)
    desk.start()
    with desk.working():
        until(desk.effects)
        control(desk, "pause", "the market is closed")
        (desk.root / "go").touch()
        until(lambda: "steps/first.json" in desk.paths() and desk.marks())
        assert desk.effects() == ["first"]
        assert desk.state().label == "Waiting on the operator"
        assert "the market is closed" in desk.state().reason
        control(desk, "resume")
        until(lambda: desk.summary().ended)
    assert (desk.summary().result, desk.effects()) == ("two", ["first", "second"])


def test_calls_that_nobody_has_claimed_wait_as_well(desk: Desk) -> None:
    desk.write(TWO_STEPS)
    desk.start()
    desk.work(max_commands=1)  # the first call is queued
    control(desk, "pause")
    desk.work()
    assert (desk.effects(), desk.paths()) == ([], ["run.json", "control/1-pause.json"])


def test_the_loss_of_the_index_resumes_nothing(desk: Desk) -> None:
    (desk.root / "go").touch()
    desk.write(TWO_STEPS)
    desk.start()
    control(desk, "pause")
    desk.lose_index()
    desk.work()
    assert (desk.effects(), desk.state().state) == ([], "waiting")
    control(desk, "resume")
    desk.work()
    assert desk.summary().result == "two"


def test_an_answer_is_taken_and_heard_when_the_run_goes_on(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="well", returns=str)\n')
    control(desk, "pause")
    desk.answer("well", "yes")
    desk.work()
    assert desk.summary().status == "running"
    control(desk, "resume")
    desk.work()
    assert desk.summary().result == "yes"


def test_time_that_passed_meanwhile_has_passed(desk: Desk) -> None:
    desk.run("@workflow\nasync def flow() -> str:\n    await asyncio.sleep(60)\n    return 'late'\n")
    control(desk, "pause")
    desk.clock.advance(61)
    desk.work()
    assert not desk.summary().ended
    control(desk, "resume")
    desk.work()
    assert desk.summary().result == "late"


def test_a_cancelled_one_ends_with_its_cleanup(desk: Desk) -> None:
    desk.run("""
@step
def tidy() -> None:
    effect("tidied")

@workflow
async def flow() -> None:
    try:
        await ask("Well?", key="well", returns=str)
    finally:
        await tidy()
""")
    control(desk, "pause")
    desk.work()
    desk.cancel()
    desk.work()
    assert (desk.summary().status, desk.effects()) == ("cancelled", ["tidied"])


def test_asking_for_what_is_so_already_adds_nothing(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="well", returns=str)\n')
    for verb in ("resume", "pause", "pause", "resume", "resume", "pause"):
        control(desk, verb)
    assert [path for path in desk.paths() if "control" in path] == [
        "control/1-pause.json",
        "control/2-resume.json",
        "control/3-pause.json",
    ]
    assert desk.ledger.verify("wf") == []


def test_a_run_that_has_ended_or_is_being_cancelled_cannot_be_paused(desk: Desk) -> None:
    desk.run('@workflow\nasync def flow() -> str:\n    return await ask("Well?", key="well", returns=str)\n')
    desk.cancel()
    with pytest.raises(Conflict, match="is being cancelled"):
        control(desk, "pause")
    desk.work()
    with pytest.raises(Conflict, match="is cancelled"):
        control(desk, "resume")


def test_a_pause_is_told_as_what_somebody_wants_not_as_trouble(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.write(TWO_STEPS)
    desk.start()
    control(desk, "pause")
    with caplog.at_level("INFO"), desk.working():
        until(desk.marks)
    (told,) = [each for each in caplog.records if "paused by" in each.getMessage()]
    assert (told.levelname, told.getMessage().startswith("paused by")) == ("INFO", True)
