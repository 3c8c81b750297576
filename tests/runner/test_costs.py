"""What one more step of a run costs with git and SQLite on the disk, counted where the system is called."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import FrozenClock
from tests.contract.test_durability import needs_ext4
from tests.runner.desks import GONE, HEAD

from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.runner import bodies, bursts
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.workspace import Surroundings

COUNT = """
@step
def add(n: int) -> int:
    return n + 1

@workflow
async def flow(times: int) -> int:
    n = 0
    for _ in range(times):
        n = await add(n)
    return n
"""
# The steps that the one has more than the other lie in one folder.
FEW, MANY = 120, 160

pytestmark = pytest.mark.decides_otherwise("whoever looks whether they do reads each run once more")


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls to the system, statements of SQLite and bodies that were rebuilt, from now on."""
    counted: Counter[str] = Counter()

    def counting(name: str, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        counted[name] += 1
        return call(*given, **more)

    for call, name in {"fsync": "syncs", "fdatasync": "syncs", "rename": "renames"}.items():
        monkeypatch.setattr(os, call, partial(counting, name, getattr(os, call)))
    monkeypatch.setattr(bodies, "rebuild", partial(counting, "rebuilds", bodies.rebuild))
    connect = sqlite3.connect

    def connected(*given: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **more)
        connection.set_trace_callback(lambda text: counted.update([_kind(text)]))
        return connection

    monkeypatch.setattr(sqlite3, "connect", connected)
    return counted


def _kind(statement: str) -> str:
    return "settings" if statement.startswith("PRAGMA") else "statements"


def cost(root: Path, steps: int, counted: Counter[str], *, bursts: bool) -> Counter[str]:
    """Of a whole run of so many steps, in a workspace of its own."""
    (root / ".hermes").mkdir(parents=True)
    (root / "flow.py").write_text(HEAD + COUNT)
    registry = parse("{}" if bursts else '{"bursts": false}', root / ".hermes" / "workflows.registry.json")
    workspace = open_workspace(registry, registry.database(None, root), Surroundings(FrozenClock(), {}), create=True)
    ledger = workspace.ledger
    assert isinstance(ledger, GitLedger)
    # However slow the machine is, one burst holds all of it.
    ledger._ahead._patience = replace(ledger._ahead._patience, monotonic=lambda: 0.0)
    workspace.start("flow.py:flow", steps, run_id="wf")
    before = counted + Counter(objects=ledger.objects.written, reads=ledger.objects.reads)
    Runner([workspace], RunnerOptions("ada", concurrency=1, idle_exit_after=0.0, process=GONE)).run()
    after = counted + Counter(objects=ledger.objects.written, reads=ledger.objects.reads)
    assert workspace.summary("wf").result == steps
    workspace.close()
    return after - before


def of_one_more_step(tmp_path: Path, counted: Counter[str], *, bursts: bool) -> dict[str, float]:
    few, many = (cost(tmp_path / str(steps), steps, counted, bursts=bursts) for steps in (FEW, MANY))
    more = {name: many[name] - few[name] for name in sorted(few | many)}
    return {name: count / (MANY - FEW) for name, count in more.items() if count}


@needs_ext4
def test_what_one_more_step_costs(tmp_path: Path, counts: Counter[str]) -> None:
    # Blob, six folders and commit, with one sync; the ref; one transaction. Nothing is read, and nothing decided anew.
    each = {"objects": 8, "renames": 3, "statements": 11, "syncs": 1}
    assert of_one_more_step(tmp_path, counts, bursts=False) == each


@needs_ext4
def test_what_one_more_step_of_a_burst_costs(
    tmp_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "QUICK", 3600.0)
    # The same objects, all of them in one pack in the end; git and the queue are told once.
    assert of_one_more_step(tmp_path, counts, bursts=True) == {"objects": 8, "syncs": 1}
