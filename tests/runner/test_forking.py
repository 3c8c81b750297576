"""`fork` and `retry`: a run that begins with what another one has recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk, somebody

from hermes_workflows.core.summary import RunSummary
from hermes_workflows.errors import Conflict, Divergence, HermesError, InvalidInput, NotFound
from hermes_workflows.runner.forking import Forked, Wish, fork, retry, retry_id

FLOW = """
@step
def read(path: str) -> str:
    effect(f"read {path}")
    return f"text of {path}"

@step
def publish(text: str) -> str:
    effect("publish")
    if not (HERE / "disk").exists():
        raise OSError("no disk")
    return "published"

@workflow
async def flow(path: str) -> Any:
    text = await read(path)
    ok = await ask("Ship it?", key="ship", returns=str)
    return [text, ok, await publish(text)]
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A run that has read, was approved, and could not publish."""
    desk = Desk(tmp_path)
    desk.run(FLOW, "a.txt")
    desk.answer("ship", "yes")
    desk.work()
    assert desk.summary().status == "failed"
    return desk


def forked(desk: Desk, text: str = "wf", run_id: str = "new", **wish: Any) -> Forked:
    return fork(desk.workspace, Wish(desk.workspace.find(text), run_id, somebody(), **wish))


def finish(desk: Desk, run_id: str = "new") -> Any:
    desk.work()
    assert desk.summary(run_id).status == "completed", desk.state(run_id)
    assert desk.ledger.verify(run_id) == []
    return desk.summary(run_id).result


def test_a_failed_run_goes_on_in_a_fork_with_what_had_succeeded(desk: Desk) -> None:
    done = forked(desk)
    assert (done.adopted, done.after, done.stopped) == (3, "ship", "the run failed on publish")
    (desk.root / "disk").touch()
    assert finish(desk) == ["text of a.txt", "yes", "published"]
    assert desk.effects() == ["read a.txt", "publish", "publish"]
    assert desk.summary().status == "failed"


def test_a_fork_after_a_key_asks_people_again(desk: Desk) -> None:
    done = forked(desk, "wf@read")
    assert (done.adopted, done.after) == (1, "read")
    desk.work()
    assert desk.state("new").state == "waiting"
    assert desk.effects() == ["read a.txt", "publish"]


def test_adopted_receipts_are_the_same_bytes_and_the_answer_says_whose_it_was(desk: Desk) -> None:
    forked(desk)
    for path in desk.paths("new")[1:]:
        assert desk.ledger.file("new", path) == desk.ledger.file("wf", path)
    source = desk.receipts("new")[0].execution.source
    tip = desk.ledger.read("wf")[0].tip
    assert source is not None
    assert {name: source[name] for name in ("run", "commit", "how", "seq")} == {
        "run": "wf", "commit": tip, "how": "fork", "seq": "3",
    }  # fmt: skip


def test_code_that_differs_inside_the_prefix_is_refused_by_its_key(desk: Desk) -> None:
    desk.write(FLOW.replace('"Ship it?"', '"Really ship it?"'))
    with pytest.raises(Divergence, match="review 'ship' was recorded with another request") as caught:
        forked(desk, "wf@ship")
    assert "adopts as much as still fits, which ends after read" in (caught.value.hint or "")
    assert desk.ledger.head("new") is None
    assert forked(desk).after == "read"
    desk.work()
    desk.answer("ship", "again", "new")
    (desk.root / "disk").touch()
    assert finish(desk) == ["text of a.txt", "again", "published"]


def test_another_input_keeps_what_does_not_depend_on_it(desk: Desk) -> None:
    done = forked(desk, given=("b.txt",))
    assert (done.adopted, done.after) == (0, None)
    desk.work()
    assert desk.effects()[-1] == "read b.txt"
    source = desk.receipts("new")[0].execution.source
    assert source is not None
    assert "clock" not in source


def test_a_result_given_by_hand_stands_for_the_failed_one_and_says_so(desk: Desk) -> None:
    done = forked(desk, answers={"publish": "by hand"})
    assert (done.adopted, done.after) == (4, "publish")
    assert finish(desk) == ["text of a.txt", "yes", "by hand"]
    given = desk.receipt("steps/publish.json", "new")
    assert given.execution.provenance is not None
    assert (given.execution.provenance.kind, given.execution.provenance.by) == ("test", "ana")
    assert desk.effects() == ["read a.txt", "publish"]


def test_nobody_approves_by_setting_an_answer(desk: Desk) -> None:
    person = somebody().model_copy(update={"kind": "human"})
    fork(desk.workspace, Wish(desk.workspace.find("wf@ship"), "new", person, answers={"ship": "no"}))
    given = desk.receipt("reviews/ship/response.json", "new")
    assert (given.output, given.execution.provenance and given.execution.provenance.kind) == ("no", "manual")
    assert b"not a verified person" in (desk.ledger.file("new", "README.md") or rendered(desk))


def rendered(desk: Desk) -> bytes:
    desk.work()
    return desk.ledger.file("new", "README.md") or b""


REFUSED: list[tuple[dict[str, Any], type[HermesError], str]] = [
    ({"answers": {"publisch": "x"}}, NotFound, "no result of 'publisch' to replace"),
    ({"answers": {"publish": 5}}, InvalidInput, "the answer to publish does not fit: (?!divergence)"),
    ({"given": (5,)}, InvalidInput, "does not fit str"),
    ({"run_id": "wf"}, Conflict, "wf exists already"),
    ({"run_id": "WF"}, Conflict, "differs only in case"),
    ({"run_id": "no/id"}, InvalidInput, "not a run id"),
]


@pytest.mark.parametrize(("wish", "error", "message"), REFUSED)
def test_what_cannot_begin_leaves_no_trace(desk: Desk, wish: dict[str, Any], error: Any, message: str) -> None:
    before = [head.run_id for head in desk.ledger.heads()]
    with pytest.raises(error, match=message):
        forked(desk, **wish)
    assert [head.run_id for head in desk.ledger.heads()] == before


def test_a_fork_of_a_fork_goes_on_from_it(desk: Desk) -> None:
    forked(desk)
    desk.work()
    forked(desk, "new@read", "newer")
    desk.work()
    desk.answer("ship", "fine", "newer")
    (desk.root / "disk").touch()
    assert finish(desk, "newer") == ["text of a.txt", "fine", "published"]


def test_a_fork_has_the_time_and_the_chance_of_the_run_it_goes_on_from(tmp_path: Path) -> None:
    code = """
from hermes_workflows.authoring import now, random

@workflow
async def flow() -> Any:
    before = await agent("writer", f"{now()} {random()}", returns=str, mock_output="said")
    await ask("Go on?", key="go", returns=str)
    return [before, str(now()), random()]
"""
    desk = Desk(tmp_path)
    desk.run(code)
    desk.clock.advance(3600)
    assert forked(desk).after == "writer"
    desk.work()
    desk.answer("go", "on", "new")
    assert finish(desk)[0] == "said"


def test_a_cancelled_run_is_forked_before_its_cancel_request(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(FLOW, "a.txt")
    desk.cancel()
    desk.work()
    assert desk.summary().status == "cancelled"
    done = forked(desk)
    assert (done.after, done.stopped) == ("read", "there the run was cancelled")
    desk.work()
    assert desk.state("new").state == "waiting"


def test_children_that_succeeded_stay_those_of_the_other_run_and_failed_ones_start_anew(tmp_path: Path) -> None:
    code = """
@step
def text_of(name: str) -> str:
    return (HERE / name).read_text()

@workflow
async def below(name: str) -> str:
    return await text_of(name)

@workflow
async def flow() -> Any:
    return [await below("good", key="good"), await below("bad", key="bad")]
"""
    desk = Desk(tmp_path)
    (tmp_path / "good").write_text("fine")
    desk.run(code)
    assert desk.summary().status == "failed"
    assert forked(desk).after == "good"
    (tmp_path / "bad").write_text("mended")
    assert finish(desk) == ["fine", "mended"]
    assert {"new.bad", "wf.good", "wf.bad"} <= {head.run_id for head in desk.ledger.heads()}
    assert desk.ledger.head("new.good") is None


def test_an_at_most_once_step_that_runs_again_is_named(tmp_path: Path) -> None:
    code = """
@step(at_most_once=True)
def pay() -> str:
    effect("paid")
    raise OSError("no answer")

@workflow
async def flow() -> Any:
    await agent("writer", "w", returns=str, mock_output="w")
    return await pay()
"""
    desk = Desk(tmp_path)
    desk.run(code)
    assert desk.summary().status == "failed"
    assert forked(desk).again == ("pay",)
    assert forked(desk, "wf@writer", "newer").again == ("pay",)
    assert forked(desk, "wf@pay", "newest").again == ()


def test_the_inbox_says_where_an_adopted_answer_was_given(desk: Desk) -> None:
    forked(desk, "wf@ship")
    (row,) = desk.workspace.reviews(run_id="new", status=None)
    assert (row.provenance or {})["adopted_from"] == "wf"
    desk.lose_index()
    (row,) = desk.workspace.reviews(run_id="new", status=None)
    assert (row.provenance or {})["adopted_from"] == "wf"


# -- retry -------------------------------------------------------------------------------------------------------


def retried(desk: Desk, run_id: str = "wf") -> Forked | RunSummary:
    name = retry_id(desk.workspace, run_id)
    return retry(desk.workspace, Wish(desk.workspace.find(run_id), name, somebody()))


def test_a_failed_run_is_tried_again_under_the_first_free_name(desk: Desk) -> None:
    first = retried(desk)
    assert isinstance(first, Forked)
    assert first.run_id == "wf-retry-1"
    desk.work()
    again = retried(desk, "wf-retry-1")
    assert isinstance(again, Forked)
    assert (again.run_id, again.source.run_id) == ("wf-retry-2", "wf-retry-1")


def test_a_stuck_run_is_tried_again_in_place(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run(FLOW, "a.txt")
    desk.write(
        FLOW.replace('effect(f"read', 'effect(f"Read').replace("text = await read(path)", 'text = await read("x")')
    )
    desk.workspace.wake("wf")
    desk.work()
    assert desk.marks() == ["divergence"]
    desk.write(FLOW)
    assert not isinstance(retried(desk), Forked)
    desk.work()
    assert desk.state().state == "waiting"


def test_a_run_that_goes_on_or_has_completed_is_not_tried_again(desk: Desk) -> None:
    forked(desk, "wf@read")
    desk.work()
    with pytest.raises(Conflict, match="new is waiting"):
        retried(desk, "new")
    desk.answer("ship", "yes", "new")
    (desk.root / "disk").touch()
    finish(desk)
    with pytest.raises(Conflict, match="new is completed"):
        retried(desk, "new")


# -- runs from elsewhere -----------------------------------------------------------------------------------------


def foreign(desk: Desk) -> None:
    """From now on, the run is one of another workspace."""
    desk.ledger._home = "somewhere else"


def test_a_run_from_elsewhere_is_forked_into_one_of_our_own(desk: Desk) -> None:
    foreign(desk)
    forked(desk)
    (desk.root / "disk").touch()
    assert finish(desk) == ["text of a.txt", "yes", "published"]
    assert desk.receipts("new")[0].execution.workspace == "somewhere else"


def test_a_run_from_elsewhere_does_not_choose_what_is_imported(desk: Desk) -> None:
    (desk.root / "evil.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('imported').touch()\nflow = 1\n"
    )
    foreign(desk)
    found = desk.workspace.find("wf")
    start = found.receipts[0]
    claimed = start.model_copy(update={"request": start.request.model_copy(update={"workflow": "evil.py:flow"})})
    with pytest.raises(InvalidInput, match="comes from elsewhere"):
        fork(desk.workspace, Wish(replace(found, receipts=(claimed, *found.receipts[1:])), "new", somebody()))
    assert not (desk.root / "imported").exists()
