"""`cancel --now` and `--superseded-by`: what executes is killed wherever it runs, and nothing is cleaned up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk, somebody, until
from tests.runner.test_cancelling import SLEEPER, _lives, _pid

from hermes_workflows.errors import Conflict, InvalidInput


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_executes_in_any_runner_is_killed_and_no_cleanup_runs(desk: Desk) -> None:
    desk.write(SLEEPER)
    desk.start()
    with desk.working("ada"), desk.working("bob"):
        pid = _pid(desk)
        desk.cancel(now=True)
        until(lambda: desk.summary().ended)
    assert not _lives(pid)
    assert desk.effects() == []
    assert desk.summary().status == "cancelled"
    assert desk.summary().error["message"] == "its cleanup was skipped; it cut off bash"
    assert desk.receipt("steps/bash.json").status == "cancelled"
    assert desk.paths()[-1] == "result.json"


def test_children_end_at_once_as_well(desk: Desk) -> None:
    desk.write(
        SLEEPER.replace("async def flow", "async def child")
        + """
@workflow
async def flow() -> None:
    try:
        await child()
    finally:
        await tidy("parent")
"""
    )
    desk.start()
    with desk.working():
        pid = _pid(desk)
        desk.cancel(now=True)
        until(lambda: desk.summary("wf.child").ended and desk.summary().ended)
    assert not _lives(pid)
    assert desk.effects() == []
    assert desk.summary("wf.child").error["message"] == "its cleanup was skipped; it cut off bash"
    assert desk.summary().error["message"] == "its cleanup was skipped; it cut off child"


def test_a_cleanup_that_takes_long_is_cut_off_by_asking_again(desk: Desk) -> None:
    desk.write("""
@workflow
async def flow() -> None:
    try:
        await bash("touch begun; sleep 300", key="work", timeout=600)
    finally:
        await bash("echo $$ > pid; sleep 300 & wait", key="tidy", timeout=600)
""")
    desk.start()
    with desk.working():
        until((desk.root / "begun").exists)
        desk.cancel()
        pid = _pid(desk)
        desk.cancel(now=True)
        until(lambda: desk.summary().ended)
    assert not _lives(pid)
    assert desk.summary().error["message"] == "the rest of its cleanup was skipped; it cut off tidy"
    assert [desk.receipt(f"steps/{key}.json").status for key in ("work", "tidy")] == ["cancelled", "cancelled"]


def test_asking_for_the_end_at_once_twice_adds_nothing(desk: Desk) -> None:
    desk.write(SLEEPER)
    desk.start()
    for _ in range(2):
        desk.cancel(now=True)
    assert [path for path in desk.paths() if path.startswith("control/")] == ["control/1-cancel.json"]


def test_a_cancelled_run_names_what_took_its_place(desk: Desk) -> None:
    desk.write(SLEEPER)
    desk.start()
    desk.start("newer")
    desk.workspace.control("wf", "cancel", by=somebody(), superseded_by="newer")
    desk.work(max_commands=1)
    summary = desk.summary()
    assert (summary.cancel_requested, summary.superseded_by) == ("superseded by newer", "newer")
    desk.cancel(superseded_by="newer")
    assert [path for path in desk.paths() if path.startswith("control/")] == ["control/1-cancel.json"]
    with pytest.raises(Conflict, match="its receipts name newer"):
        desk.cancel(superseded_by="another")
    with pytest.raises(InvalidInput, match="by itself"):
        desk.cancel("newer", superseded_by="newer")
