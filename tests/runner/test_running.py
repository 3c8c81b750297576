"""A runner on one run: every kind of call, from the text of a workflow to its last receipt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runner.desks import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_each_step_is_a_receipt_and_the_last_one_is_the_end(desk: Desk) -> None:
    done = desk.run("""
@step
def add(n: int) -> int:
    return n + 1

@workflow
async def flow() -> int:
    return await add(await add(0))
""")
    assert (done.status, done.result) == ("completed", 2)
    assert desk.paths() == ["run.json", "steps/add.json", "steps/add-2.json", "result.json"]
    assert desk.rows() == []
