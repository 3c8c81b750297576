"""`reproduce`: a run from the same input, which may take over recorded results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk

from hermes_workflows.core.comparison import compare
from hermes_workflows.errors import Conflict, InvalidInput
from hermes_workflows.runner.reproducing import Reproduction, reproduce

FLOW = """
from hermes_workflows.authoring import random

@step
def read(path: str) -> str:
    effect(f"read {path}")
    return (HERE / path).read_text()

@workflow
async def flow(path: str) -> Any:
    text = await read(path)
    both = await parallel({name: agent(name, f"{name} {text}", returns=str, mock_output=f"by {name}")
                           for name in ("one", "two")})
    return [both, await ask(f"Ship {text}?", key="ship", returns=str), random()]
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    (tmp_path / "a.txt").write_text("text")
    desk.run(FLOW, "a.txt")
    desk.answer("ship", "yes")
    desk.work()
    return desk


def again(desk: Desk, *reuse: str, text: str = "wf", run_id: str = "new") -> None:
    reproduce(desk.workspace, Reproduction(desk.workspace.find(text), run_id, reuse))
    desk.work()


def equal(desk: Desk) -> bool:
    assert desk.ledger.verify("new") == []
    return compare(desk.receipts(), desk.receipts("new")).equal


def test_everything_is_executed_again_and_people_are_asked_again(desk: Desk) -> None:
    again(desk)
    assert (desk.effects(), desk.state("new").state) == (["read a.txt", "read a.txt"], "waiting")
    desk.answer("ship", "yes", "new")
    desk.work()
    assert desk.summary("new").result == desk.summary().result
    assert equal(desk)


def test_recorded_answers_of_these_kinds_are_taken_over_and_the_rest_runs_again(desk: Desk) -> None:
    again(desk, "agent", "ask")
    assert desk.summary("new").status == "completed", desk.state("new")
    assert desk.effects() == ["read a.txt", "read a.txt"]
    assert equal(desk)
    agents = [each for each in desk.receipts("new") if each.kind == "agent"]
    assert [each.execution.adopted_from for each in agents] == ["wf", "wf"]
    assert [each.execution.usage for each in agents] == [None, None]


def test_an_answer_that_is_taken_over_says_whose_it_was_and_where(desk: Desk) -> None:
    again(desk, "ask")
    by = desk.receipt("reviews/ship/response.json", "new").execution.provenance
    assert by is not None
    assert (by.by, by.kind, by.adopted_from) == ("ana", "test", "wf")
    assert b"adopted from `wf`" in (desk.ledger.file("new", "README.md") or b"")


def test_a_call_that_asks_otherwise_than_then_is_executed(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("other text")
    again(desk, "agent", "ask")
    assert desk.state("new").state == "waiting"
    agents = [each for each in desk.receipts("new") if each.kind == "agent"]
    assert [each.execution.adopted_from for each in agents] == [None, None]
    desk.answer("ship", "yes", "new")
    desk.work()
    assert not equal(desk)


def test_results_come_in_the_order_they_came_then(desk: Desk) -> None:
    again(desk, "agent", "step", "ask")
    assert desk.effects() == ["read a.txt"]
    keys = [[each.key for each in desk.receipts(run_id) if each.role.value == "result"] for run_id in ("wf", "new")]
    assert keys[0] == keys[1]


def test_a_runner_that_takes_over_in_the_middle_reuses_the_rest(desk: Desk) -> None:
    reproduce(desk.workspace, Reproduction(desk.workspace.find("wf"), "new", ("agent", "ask")))
    desk.work(max_commands=1)
    desk.lose_index()
    desk.work("bea")
    assert desk.summary("new").status == "completed"
    assert equal(desk)


def test_children_reproduce_the_children_of_then(tmp_path: Path) -> None:
    code = """
from hermes_workflows.authoring import random

@workflow
async def below(name: str) -> Any:
    said = await agent("writer", name, returns=str, mock_output="said")
    return [said, random()]

@workflow
async def flow() -> Any:
    return await below("child", key="child")
"""
    desk = Desk(tmp_path)
    desk.run(code)
    again(desk, "agent")
    assert equal(desk)
    source = desk.receipts("new.child")[0].execution.source
    assert source == {"run": "wf.child", "commit": source and source["commit"], "how": "reproduce", "reuse": "agent"}
    assert desk.receipt("steps/writer.json", "new.child").execution.adopted_from == "wf.child"
    assert desk.receipts("new.child")[0].execution.parent == {"run": "new", "key": "child"}
    assert desk.ledger.verify("new.child") == []


REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"run_id": "wf"}, Conflict, "exists already"),
    ({"text": "wf@read"}, InvalidInput, "from its start"),
]


@pytest.mark.parametrize(("wish", "error", "message"), REFUSED)
def test_what_cannot_be_reproduced_leaves_no_trace(desk: Desk, wish: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        again(desk, **wish)
    with pytest.raises(InvalidInput, match="'timer' is nothing to reuse"):
        again(desk, "agent", "timer")
    assert [head.run_id for head in desk.ledger.heads()] == ["wf"]
