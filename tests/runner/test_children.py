"""Child runs: runs of their own, whose end is a receipt of their parent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, Fate, Killed, until

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, RunEnded, draft
from hermes_workflows.store.ports import Entry

PARENT = """
@workflow
async def child(inputs: dict[str, str]) -> str:
    return await ask("Well?", key="q", returns=str) + inputs["end"]

@workflow
async def flow() -> str:
    return await child({"end": "!"}, key="one")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_child_has_its_own_receipts_and_its_parent_pins_its_tip(desk: Desk) -> None:
    desk.run(PARENT)
    assert desk.summary().open_children == {"one": "wf.one"}
    assert desk.summary("wf.one").parent == {"run": "wf", "key": "one"}
    desk.answer("q", "yes", "wf.one")
    desk.work()
    assert (desk.summary().result, desk.summary("wf.one").result) == ("yes!", "yes!")
    head = desk.ledger.head("wf.one")
    assert head is not None
    assert desk.receipt("steps/one.json").execution.tip == head.tip
    assert desk.paths("wf.one")[-1] == "result.json"


def test_two_runs_of_one_parent_differ_in_execution_only(desk: Desk) -> None:
    desk.run(PARENT)
    desk.start("other")
    desk.work()
    for run_id in ("wf.one", "other.one"):
        desk.answer("q", "yes", run_id)
    desk.work()
    one, other = (
        [receipt.model_dump(exclude={"execution"}) for receipt in desk.receipts(run_id)] for run_id in ("wf", "other")
    )
    assert one == other


def test_a_failed_child_raises_at_the_await(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def child() -> None:
    raise ValueError("broken")

@workflow
async def flow() -> str:
    try:
        await child()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "never"
""")
    assert str(done.result).startswith("ChildFailed: child call child: broken")


def test_a_cancelled_child_raises_at_the_await(desk: Desk) -> None:
    desk.run(PARENT)
    desk.cancel("wf.one")
    desk.work()
    assert desk.summary("wf.one").status == "cancelled"
    assert (desk.summary().status, desk.summary().error["type"]) == ("failed", "ChildFailed")


def test_cancelling_a_parent_cancels_its_children_and_theirs(desk: Desk) -> None:
    desk.run("""
@workflow
async def grandchild() -> str:
    return await ask("Well?", key="q", returns=str)

@workflow
async def child() -> str:
    return await grandchild(key="two")

@workflow
async def flow() -> str:
    return await child(key="one")
""")
    assert desk.summary("wf.one.two").status == "waiting"
    desk.cancel()
    desk.work()
    assert [desk.summary(name).status for name in ("wf", "wf.one", "wf.one.two")] == ["cancelled"] * 3


def test_a_parent_that_ends_without_its_child_cancels_it(desk: Desk) -> None:
    desk.run("""
@workflow
async def child() -> str:
    return await ask("Well?", key="q", returns=str)

@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            return await child(key="one")
    except TimeoutError:
        return "alone"
""")
    desk.clock.advance(31)
    desk.work()
    assert (desk.summary().result, desk.summary("wf.one").status) == ("alone", "cancelled")


def test_a_child_whose_end_nobody_reported_is_found_by_looking_again(desk: Desk) -> None:
    desk.run(PARENT)
    desk.answer("q", "yes", "wf.one")
    # Dies with the child's result.json as its last write.
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=2)))
    assert desk.paths("wf.one")[-1] == "result.json"
    assert "steps/one.json" not in desk.paths()
    desk.clock.advance(31)
    desk.work()
    assert desk.summary().result == "yes!"


def test_a_parent_looks_by_itself_whether_its_child_has_ended(desk: Desk) -> None:
    desk.run(PARENT)
    end = RunEnded(path=layout.RESULT, key="", status="completed", output="theirs")
    desk.ledger.append([Entry("wf.one", (draft(end, Author("somebody")),))])
    assert desk.summary("wf.one").ended
    desk.work()
    assert not desk.summary().ended
    desk.clock.advance(5.0)
    desk.work()
    assert desk.summary().result == "theirs"


def test_the_same_with_the_index_lost_as_well(desk: Desk) -> None:
    desk.run(PARENT)
    desk.answer("q", "yes", "wf.one")
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=2)))
    desk.lose_index()
    desk.work()
    assert desk.summary().result == "yes!"


def test_a_run_of_somebody_else_is_never_taken_for_a_child(desk: Desk) -> None:
    desk.write(PARENT)
    desk.start("wf.one", {"end": "theirs"}, ref="flow.py:child")
    desk.start()
    desk.work()
    child = desk.summary().open_children["one"]
    assert child.startswith("wf.one-")
    desk.answer("q", "yes", child)
    desk.work()
    assert desk.summary().result == "yes!"
    assert desk.summary("wf.one").status == "waiting"


def test_an_id_that_is_taken_between_the_note_and_the_start_is_stuck_and_said(desk: Desk) -> None:
    desk.write(PARENT)
    desk.start()
    desk.work(max_commands=1)
    assert desk.paths() == ["run.json", "steps/one.start.json"]
    desk.start("wf.one", {"end": "theirs"}, ref="flow.py:child")
    desk.work()
    assert desk.marks() == ["child-id"]
    assert "wf.one" in desk.state().reason
    assert desk.summary("wf.one").status == "waiting"


def test_keys_that_give_one_id_are_two_children(desk: Desk) -> None:
    done = desk.run("""
@workflow
async def child(inputs: dict[str, int]) -> int:
    return inputs["n"]

@workflow
async def flow() -> list[int]:
    return await parallel([child({"n": 1}, key="a/b"), child({"n": 2}, key="a.b")])
""")
    assert done.result == [1, 2]


def test_a_long_key_gives_a_child_a_legal_id(desk: Desk) -> None:
    key = "k" * 75
    done = desk.run(f"""
@workflow
async def child() -> int:
    return 1

@workflow
async def flow() -> int:
    async def inner() -> int:
        return await child(key="{key}/{key}")
    return await inner()
""")
    assert done.result == 1


def test_two_runners_start_a_child_once(desk: Desk) -> None:
    desk.write(PARENT)
    desk.start()
    with desk.working("ada"), desk.working("bob"):
        until(desk.workspace.reviews)
        desk.answer("q", "yes", "wf.one")
        until(lambda: desk.summary().ended)
    assert desk.summary().result == "yes!"
