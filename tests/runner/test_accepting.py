"""`accept`: a run whose code has changed goes on with the answers it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, Fate, Killed, somebody

from hermes_workflows.errors import Conflict, Divergence, InvalidInput
from hermes_workflows.runner.accepting import Acceptance, Wish, accept

FLOW = """
@step
def read(path: str) -> str:
    effect(path)
    return f"text of {path}"

@workflow
async def flow() -> Any:
    text = await read("a.txt")
    said = await agent("writer", "Write", returns=str, mock_output="draft")
    ok = await ask("Ship it?", key="ship", returns=str)
    await ask("Go on?", key="go", returns=str)
    return [text, said, ok]
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A run that has recorded three answers and waits for the fourth."""
    desk = Desk(tmp_path)
    desk.run(FLOW)
    desk.answer("ship", "yes")
    desk.work()
    return desk


def change(desk: Desk, *changes: tuple[str, str]) -> None:
    """Other code, which a runner has found to diverge."""
    code = FLOW
    for before, after in changes:
        assert before in code
        code = code.replace(before, after)
    desk.write(code)
    desk.workspace.wake("wf")
    desk.work()
    assert desk.marks() == ["divergence"]


def wish(desk: Desk, key: str | None, as_manual: bool = False) -> Acceptance:
    return accept(desk.workspace, Wish("wf", key, "the same question", somebody(), as_manual))


def refused(desk: Desk, key: str | None, as_manual: bool = False) -> Any:
    before = desk.paths()
    with pytest.raises((Divergence, InvalidInput)) as caught:
        wish(desk, key, as_manual)
    assert (desk.paths(), desk.marks()) == (before, ["divergence"])
    return caught.value


def finish(desk: Desk) -> Any:
    desk.work()
    desk.answer("go", "on")
    desk.work()
    assert desk.summary().status == "completed", desk.state()
    assert desk.ledger.verify("wf") == []
    return desk.summary().result


def test_the_recorded_answer_is_kept_and_nothing_is_executed_again(desk: Desk) -> None:
    change(desk, ('"a.txt"', '"b.txt"'))
    done = wish(desk, "read")
    assert [(each.key, each.kind, "b.txt" in each.diff) for each in done.accepted] == [("read", "step", True)]
    assert (done.remaining, desk.marks()) == (None, [])
    assert finish(desk) == ["text of a.txt", "draft", "yes"]
    assert desk.effects() == ["a.txt"]
    note = desk.receipt("control/1-accept.json")
    assert (note.request["why"], note.execution.provenance) == ("the same question", somebody())
    assert b'"b.txt"' in (desk.ledger.file("wf", f"source/{note.execution.code}/flow.py") or b"")
    assert b"Recorded answers kept for changed requests: step `read`" in (desk.ledger.file("wf", "README.md") or b"")


def test_one_key_at_a_time_says_what_still_differs(desk: Desk) -> None:
    change(desk, ('"a.txt"', '"b.txt"'), ('"Write"', '"Write well"'))
    assert "agent 'writer'" in str(wish(desk, "read").remaining)
    desk.work()
    assert desk.marks() == ["divergence"]
    assert wish(desk, "writer").remaining is None
    assert finish(desk)[:2] == ["text of a.txt", "draft"]
    assert [path for path in desk.paths() if "accept" in path] == ["control/1-accept.json", "control/2-accept.json"]


def test_everything_at_once_is_one_note(desk: Desk) -> None:
    change(desk, ('"a.txt"', '"b.txt"'), ('"Write"', '"Write well"'))
    assert [each.key for each in wish(desk, None).accepted] == ["read", "writer"]
    desk.lose_index()
    assert finish(desk)[:2] == ["text of a.txt", "draft"]


def test_a_question_to_people_is_kept_only_as_what_it_is(desk: Desk) -> None:
    change(desk, ('"Ship it?"', '"Ship it today?"'))
    assert "--as-manual" in refused(desk, "ship").hint
    wish(desk, "ship", as_manual=True)
    assert finish(desk)[2] == "yes"
    assert b"to the question as it was then; kept for another one" in (desk.ledger.file("wf", "README.md") or b"")


@pytest.mark.parametrize(
    ("key", "before", "after", "reason"),
    [
        (
            "writer",
            'agent("writer", "Write", returns=str',
            'agent("writer", "Write", returns=int',
            "the recorded output",
        ),
        ("read", 'await read("a.txt")', '(await bash("cat a.txt", name="read")).stdout', "makes it bash"),
        ("writer", 'agent("writer"', 'agent("author"', "does not request agent 'writer'"),
    ],
)
def test_what_no_longer_fits_cannot_be_kept(desk: Desk, key: str, before: str, after: str, reason: str) -> None:
    change(desk, (before, after.replace('mock_output="draft"', "mock_output=1")))
    error = refused(desk, key)
    assert reason in error.message
    assert "restore the code" in error.hint
    assert reason in refused(desk, None).message


def test_all_or_nothing(desk: Desk) -> None:
    change(desk, ('"a.txt"', '"b.txt"'), ('agent("writer"', 'agent("author"'))
    assert "'writer'" in refused(desk, None).message


def test_a_key_behind_another_difference_has_to_wait(desk: Desk) -> None:
    change(desk, ('"a.txt"', '"b.txt"'), ('"Write"', '"Write well"'))
    assert "before read" in refused(desk, "writer").message


def test_there_is_nothing_to_accept_in_a_run_that_agrees_or_has_ended(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="nothing to accept"):
        wish(desk, "read")
    finish(desk)
    with pytest.raises(Conflict, match="wf is completed"):
        wish(desk, "read")


def test_a_child_that_was_promised_starts_with_the_input_of_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    code = """
@workflow
async def inner(inputs: str) -> str:
    return inputs

@workflow
async def flow() -> Any:
    return await inner("old")
"""
    desk.write(code)
    desk.start()
    # Writes: claim, the child's note; the child itself is never begun.
    with pytest.raises(Killed):
        desk.work(on=desk.process(Fate(writes=2)))
    assert desk.paths() == ["run.json", "steps/inner.start.json"]
    desk.clock.advance(31.0)
    desk.write(code.replace('"old"', '"new"'))
    desk.work()
    assert desk.marks() == ["divergence"]
    accept(desk.workspace, Wish("wf", "inner", "the same", somebody()))
    desk.work()
    assert (desk.summary().result, desk.summary("wf.inner").result) == ("old", "old")
