"""At-most-once steps: one effect, whatever dies when, and a person's word where nobody else can know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed, somebody, until

from hermes_workflows.core.receipts import ControlReceipt
from hermes_workflows.errors import Conflict, InvalidInput, NotFound
from hermes_workflows.review.resolving import Resolution
from hermes_workflows.store.liveness import Process

PAY = """
@step(at_most_once=True)
def pay(amount: int) -> dict[str, int]:
    effect(f"paid {amount}")
    return {"paid": amount}

@workflow
async def flow() -> Any:
    paid = await pay(5)
    await ask("Go on?", key="go", returns=str)
    return paid
"""
# It stands still until it is let go, so that a test can do something meanwhile.
HELD = """
import time

@step(at_most_once=True)
def pay(amount: int) -> str:
    effect("begun")
    while not (HERE / "go").exists():
        time.sleep(0.005)
    effect("done")
    return "by itself"

@workflow
async def flow() -> Any:
    paid = await pay(5)
    await ask("Go on?", key="go", returns=str)
    return paid
"""
STOPPED = """
@step(at_most_once=True)
async def pay(amount: int) -> str:
    effect("begun")
    await asyncio.sleep(60)
    return "never"

@workflow
async def flow() -> Any:
    return await pay(5)
"""
# The writes of a runner until the run stands at its question.
BEFORE_INTENT, AFTER_INTENT, AFTER_EFFECT = 2, 3, 3


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def killed(desk: Desk, code: str = PAY, writes: int = AFTER_EFFECT) -> None:
    """A run whose runner died after so many writes, and which another one has found."""
    desk.write(code)
    if desk.ledger.head("wf") is None:
        desk.start()
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=writes)))
    desk.clock.advance(31.0)
    desk.work("bob")


def resolve(desk: Desk, happened: bool, output: Any = None, key: str = "pay") -> ControlReceipt:
    given = Resolution("wf", key, happened, somebody(), desk.clock.now(), output, "the bank says so")
    return desk.workspace.resolve_step(given)


def finish(desk: Desk) -> Any:
    desk.work("bob")
    desk.answer("go", "on")
    desk.work("bob")
    assert desk.ledger.verify("wf") == []
    assert desk.summary().status == "completed", desk.state()
    return desk.summary().result


def test_what_happened_is_said_with_its_result_and_by_whom(desk: Desk) -> None:
    killed(desk)
    assert desk.marks() == ["needs-decision"]
    assert "resolve wf pay" in str(desk.state().next_action)
    resolve(desk, True, {"paid": 5})
    assert desk.marks() == []
    assert (finish(desk), desk.effects()) == ({"paid": 5}, ["paid 5"])
    receipt = desk.receipt("steps/pay.json")
    assert (receipt.execution.provenance, receipt.execution.runner) == (somebody(), None)
    assert desk.receipt("control/1-resolve.json").request == {
        "key": "pay", "decision": "happened", "why": "the bank says so",
    }  # fmt: skip


def test_what_did_not_happen_is_done_once_more_behind_an_intent_of_its_own(desk: Desk) -> None:
    killed(desk, writes=AFTER_INTENT)
    (desk.root / "effects").unlink(missing_ok=True)  # the process was killed before it
    resolve(desk, False)
    assert (finish(desk), desk.effects()) == ({"paid": 5}, ["paid 5"])
    again = desk.receipt("steps/pay.attempt-2.json")
    assert (again.status, again.execution.attempt) == ("started", 2)
    assert desk.receipt("steps/pay.json").execution.attempt == 2


def test_the_second_execution_is_at_most_once_too(desk: Desk) -> None:
    killed(desk)
    resolve(desk, False)
    # Writes: claim, intent; its result never arrives.
    killed(desk, writes=2)
    assert desk.marks() == ["needs-decision"]
    resolve(desk, False)
    desk.lose_index()
    finish(desk)
    intents = [path for path in desk.paths() if "pay." in path and path != "steps/pay.json"]
    assert intents == ["steps/pay.start.json", "steps/pay.attempt-2.json", "steps/pay.attempt-3.json"]


def test_nothing_is_decided_while_the_runner_that_began_it_lives(desk: Desk) -> None:
    desk.write(HELD)
    desk.start()
    with desk.working("ada"):
        until(desk.effects)
        with pytest.raises(Conflict, match=r"runner ada .* is up"):
            resolve(desk, True, "by hand")
        (desk.root / "go").touch()
        until(lambda: desk.summary().open_reviews)
    assert (desk.effects(), desk.receipt("steps/pay.json").output) == (["begun", "done"], "by itself")


def test_a_new_runner_of_the_same_name_is_not_the_one_that_began_it(desk: Desk) -> None:
    killed(desk)
    with desk.working("ada"):
        until(lambda: [row for row in desk.queue.runners() if row.runner_id == "ada"])
        resolve(desk, True, {"paid": 5})
        until(lambda: desk.summary().open_reviews)
    assert desk.effects() == ["paid 5"]


@pytest.mark.parametrize("happened", [True, False])
def test_a_result_that_still_arrives_is_kept_beside_the_decision(desk: Desk, happened: bool) -> None:
    desk.write(HELD)
    desk.start()
    with desk.working("ada"):
        until(desk.effects)
        desk.queue.goodbye("ada")  # it looks dead
        if happened:
            resolve(desk, True, "by hand")
        else:
            # Its lease is still held: only a fresh queue offers the step again, to somebody else.
            resolve(desk, False)
            desk.lose_index()
            with desk.working("bob"):
                until(lambda: desk.effects() == ["begun", "begun"])
                (desk.root / "go").touch()
                until(lambda: desk.summary().late)
        (desk.root / "go").touch()
        until(lambda: desk.summary().late)
    first = desk.receipt("steps/pay.json")
    late = desk.receipt("steps/pay.late-1.json")
    assert {first.output, late.output} == {"by hand" if happened else "by itself", "by itself"}
    assert desk.summary().late == ("pay",)
    assert finish(desk) == first.output
    assert b"`pay` came after the decision" in (desk.ledger.file("wf", "README.md") or b"")


@pytest.mark.parametrize(
    ("output", "reason"),
    [({"paid": "5"}, "the result of pay .*paid"), ("five", "the result of pay"), (None, "the result of pay")],
)
def test_a_result_of_another_type_is_refused_and_nothing_is_recorded(desk: Desk, output: Any, reason: str) -> None:
    killed(desk)
    before = desk.paths()
    with pytest.raises(InvalidInput, match=reason):
        resolve(desk, True, output)
    assert (desk.paths(), desk.marks()) == (before, ["needs-decision"])


def test_only_what_waits_for_a_decision_can_be_decided(desk: Desk) -> None:
    killed(desk)
    with pytest.raises(NotFound) as caught:
        resolve(desk, False, key="pya")
    assert caught.value.hint == "did you mean 'pay'?"
    resolve(desk, True, {"paid": 5})
    with pytest.raises(Conflict, match="has its result: completed"):
        resolve(desk, False)
    finish(desk)
    with pytest.raises(Conflict, match="wf is completed"):
        resolve(desk, False)


def test_a_step_whose_code_is_gone_takes_the_result_that_is_given(desk: Desk) -> None:
    killed(desk)
    desk.write("def broken(:")
    resolve(desk, True, {"paid": 5})
    desk.write(PAY)
    assert finish(desk) == {"paid": 5}


def test_a_secret_in_a_given_result_is_not_recorded(tmp_path: Path) -> None:
    desk = Desk(tmp_path, environment={"API_TOKEN": "correct-horse-battery"})
    killed(desk, PAY.replace("dict[str, int]", "Any"))
    resolve(desk, True, "Bearer correct-horse-battery")
    assert desk.receipt("steps/pay.json").output == "Bearer [redacted:API_TOKEN]"


def test_a_cancelled_execution_leaves_unknown_and_never_cancelled(desk: Desk) -> None:
    desk.write(STOPPED)
    desk.start()
    with desk.working("ada"):
        until(desk.effects)
        desk.cancel()
        until(lambda: desk.summary().ended)
    receipt = desk.receipt("steps/pay.json")
    assert (receipt.status, desk.summary().status) == ("unknown", "cancelled")
    assert desk.summary().calls == {"unknown": 1}
    assert desk.ledger.verify("wf") == []


@pytest.mark.parametrize("loads", [True, False])
def test_a_run_that_is_cancelled_before_anybody_has_decided_says_unknown_too(desk: Desk, loads: bool) -> None:
    killed(desk)
    if not loads:
        desk.write("def broken(:")
        desk.workspace.revive("wf")
        desk.work("bob")
    desk.cancel()
    desk.work("bob")
    assert (desk.summary().status, desk.receipt("steps/pay.json").status) == ("cancelled", "unknown")
    assert desk.effects() == ["paid 5"]


def test_a_step_that_its_body_gave_up_is_unknown_and_the_body_goes_on(desk: Desk) -> None:
    code = STOPPED.replace(
        "    return await pay(5)\n",
        """
    try:
        async with asyncio.timeout(5):
            await pay(5)
    except TimeoutError:
        return "too slow"
""",
    )
    desk.write(code)
    desk.start()
    with desk.working("ada"):
        until(desk.effects)
        desk.clock.advance(6.0)
        until(lambda: desk.summary().ended)
    assert (desk.summary().result, desk.receipt("steps/pay.json").status) == ("too slow", "unknown")


@pytest.mark.parametrize("writes", range(1, 7))
@pytest.mark.parametrize("after", [False, True])
def test_whichever_write_the_runner_dies_at_there_is_one_effect(desk: Desk, writes: int, after: bool) -> None:
    desk.write(PAY)
    desk.start()
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=writes, after=after)))
    desk.clock.advance(31.0)
    desk.work("bob")
    if desk.marks():
        assert desk.marks() == ["needs-decision"]
        # What a person finds out: the sink has counted it or not.
        resolve(desk, bool(desk.effects()), {"paid": 5})
    assert (finish(desk), desk.effects()) == ({"paid": 5}, ["paid 5"])


def test_a_process_that_lives_is_not_decided_over_although_the_index_is_lost(desk: Desk) -> None:
    desk.write(PAY)
    desk.start()
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=AFTER_EFFECT)), process=Process.current())
    desk.clock.advance(31.0)
    desk.work("bob")
    desk.lose_index()
    with pytest.raises(Conflict, match="is up and may still be executing pay"):
        resolve(desk, False)
