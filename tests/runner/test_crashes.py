"""A process that dies at any write: the next one ends every run right (SEMANTICS §4).

`KILLS_APART` says how many writes lie between two that are looked at. In `make test` each way to die has other ones, so
that together they have each write; `make soak` lets a process die in each way at each of them.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.runner.desks import Desk, Fate, Killed

from hermes_workflows.core.readme import render
from hermes_workflows.core.summary import summarize

STEPS = """
@step
def add(n: int) -> int:
    effect(f"add {n}")
    return n + 1

@workflow
async def flow() -> int:
    return await add(await add(await add(0)))
"""
FAN = """
@step
def square(n: int) -> int:
    effect(f"square {n}")
    return n * n

@workflow
async def flow() -> int:
    async def pair(n: int) -> int:
        return await square(n) + await square(n + 10)
    return sum(await parallel([pair(n) for n in range(3)], limit=2))
"""
ASKING = """
@step
def note(text: str) -> str:
    effect(text)
    return text

@workflow
async def flow() -> str:
    one, two = await parallel([ask("One?", key="one", returns=str), ask("Two?", key="two", returns=str)])
    return await note(one + two)
"""
SLEEPING = """
@step
def late() -> str:
    effect("late")
    return "slept"

@workflow
async def flow() -> str:
    try:
        async with asyncio.timeout(30):
            await ask("Anybody?", key="who", returns=str)
    except TimeoutError:
        pass
    await asyncio.sleep(60)
    return await late()
"""
CHILDREN = """
@step
def work(n: int) -> int:
    effect(f"work {n}")
    if n == 3:
        raise ValueError("three")
    return n

@workflow
async def child(inputs: dict[str, int]) -> int:
    return await work(inputs["n"])

@workflow
async def flow() -> str:
    good = await parallel([child({"n": 1}, key="one"), child({"n": 2}, key="two")])
    try:
        await child({"n": 3}, key="three")
    except Exception as error:
        return f"{good} {type(error).__name__}"
    return "never"
"""
FAILING = """
@step(retry=Retry(attempts=2, initial=5.0))
def shaky() -> None:
    effect("shaky")
    raise ValueError("broken")

@workflow
async def flow() -> None:
    await shaky()
"""
CANCELLED = """
@step
def tidy() -> None:
    effect("tidy")

@workflow
async def flow() -> None:
    try:
        await ask("Go on?", key="go", returns=str)
    finally:
        await tidy()
"""


_APART = int(os.environ.get("KILLS_APART", "3"))
KINDS = ("before", "after", "index lost")


def _answer(desk: Desk) -> None:
    for key in desk.summary().open_reviews:
        desk.answer(key, f"<{key}>")


def _cancel(desk: Desk) -> None:
    if desk.summary().open_reviews:
        desk.cancel()


def _wait(desk: Desk) -> None:
    desk.clock.advance(100.0)


def _nothing(desk: Desk) -> None:
    pass


Outside = Callable[[Desk], None]
PLAYS: dict[str, tuple[str, Outside, str, object]] = {
    "steps": (STEPS, _nothing, "completed", 3),
    "parallel": (FAN, _nothing, "completed", 0 + 1 + 4 + 100 + 121 + 144),
    "asks": (ASKING, _answer, "completed", "<one><two>"),
    "timers": (SLEEPING, _wait, "completed", "slept"),
    "children": (CHILDREN, _nothing, "completed", "[1, 2] ChildFailed"),
    "retries": (FAILING, _wait, "failed", None),
    "cancelled": (CANCELLED, _cancel, "cancelled", None),
}


def _play(desk: Desk, outside: Outside, fate: Fate | None = None) -> None:
    """Everything up to the end of the run, or of the process that `fate` is about."""
    for _ in range(6):
        desk.work(on=desk.process(fate))
        if desk.summary().ended:
            return
        outside(desk)


def _recover(desk: Desk, outside: Outside) -> None:
    for _ in range(3):
        # The dead process's leases run out: the twins live in one process, whose pid still answers.
        desk.clock.advance(31.0)
        _play(desk, outside)
        if not any(desk.rows(head.run_id) for head in desk.ledger.heads()):
            return


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLAYS)
def test_a_death_at_any_write_changes_nothing_but_the_number_of_executions(
    tmp_path: Path, name: str, kind: str
) -> None:
    code, outside, status, result = PLAYS[name]
    undisturbed = Fate()
    whole = _started(tmp_path / "whole", code)
    _play(whole, outside, undisturbed)
    assert (whole.summary().status, whole.summary().result) == (status, result)
    assert undisturbed.made > 5
    for writes in range(KINDS.index(kind) % _APART, undisturbed.made, _APART):
        desk = _started(tmp_path / f"{writes}", code)
        # What is ready in one instant shares a write, so that some plays have fewer of them.
        with suppress(Killed):
            _play(desk, outside, Fate(writes, after=kind == "after"))
        if kind == "index lost":
            desk.lose_index()
        _recover(desk, outside)
        _assert_same(desk, whole)
        shutil.rmtree(desk.root)


def _started(root: Path, code: str) -> Desk:
    root.mkdir()
    desk = Desk(root)
    desk.write(code)
    desk.start()
    return desk


def _assert_same(desk: Desk, whole: Desk) -> None:
    runs = sorted(head.run_id for head in whole.ledger.heads())
    assert sorted(head.run_id for head in desk.ledger.heads()) == runs
    for run_id in runs:
        assert sorted(desk.paths(run_id)) == sorted(whole.paths(run_id))
        assert desk.ledger.verify(run_id) == []
        assert (desk.summary(run_id).status, desk.summary(run_id).result) == (
            whole.summary(run_id).status,
            whole.summary(run_id).result,
        )
        assert desk.rows(run_id) == []
        told = desk.receipts(run_id)
        readme = render(summarize(run_id, told), told)
        assert desk.ledger.file(run_id, "README.md") == readme
    # At least once: what was under way is done again, and nothing else.
    more = Counter(desk.effects()) - Counter(whole.effects())
    assert not Counter(whole.effects()) - Counter(desk.effects())
    assert sum(more.values()) <= 4
