"""Ledgers of many finished runs, made by the store itself and not by a runner: what is measured comes afterwards.

Nothing is fsynced while they are made.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_workflows.clock import SystemClock
from hermes_workflows.core import layout
from hermes_workflows.core.fingerprints import fingerprint
from hermes_workflows.core.receipts import Author, CallReceipt, Execution, RunEnded, RunRequest, RunStarted, draft
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.maintenance import TASKS
from hermes_workflows.store.ports import Entry

BATCH = 500
# Receipts between two packings: as many as an idle runner would let lie.
PACKED_EVERY = 10_000
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BY = Author("workflow")


def ledger_in(folder: Path, durability: Any = "power") -> closing[GitLedger]:
    path = folder / ".hermes" / "workflows.git"
    path.parent.mkdir(exist_ok=True)
    made = GitLedger.open(path, create=True, clock=SystemClock(), committer="bench", durability=durability)
    return closing(made)


def run_name(number: int) -> str:
    return f"run-{number:06}"


def started(ledger: GitLedger, number: int, runs: int, days: int = 30) -> str:
    """Start a run on its day: `runs` of them are spread evenly over `days`."""
    moment = BEGIN + timedelta(days=number * days // runs)
    receipt = RunStarted(
        key="",
        request=RunRequest(workflow="bench:nothing", input={"number": number}),
        execution=Execution(started_at=moment, workspace=ledger.home),
        path=layout.RUN,
    )
    ledger.create(Entry(run_name(number), (draft(receipt, BY),)), moment.strftime("%Y-%m-%d"))
    return run_name(number)


def step_of(run_id: str, number: int) -> Entry:
    key = "increment" if number == 1 else f"increment-{number}"
    request: dict[str, Any] = {"function": "workflows:increment", "arguments": {"value": number - 1}}
    receipt = CallReceipt(
        kind="step",
        key=key,
        status="completed",
        fingerprint=fingerprint("step", request),
        request=request,
        output=number,
        execution=Execution(finished_at=BEGIN, runner="bench"),
        path=layout.step(key),
    )
    return Entry(run_id, (draft(receipt, Author("step")),))


def end_of(run_id: str) -> Entry:
    receipt = RunEnded(
        key="", status="completed", output=run_id, execution=Execution(finished_at=BEGIN), path=layout.RESULT
    )
    return Entry(run_id, (draft(receipt, BY),))


def make(folder: Path, runs: int, *, steps: int = 0, days: int = 30, packed: bool = False) -> None:
    """Finished runs of `steps` + 2 receipts, a commit each, sealed a batch at a time as a runner would have."""
    loose = 0
    for begin in range(0, runs, BATCH):
        with ledger_in(folder, "process") as ledger:
            names = [started(ledger, number, runs, days) for number in range(begin, min(begin + BATCH, runs))]
            for number in range(1, steps + 1):
                ledger.append([step_of(name, number) for name in names])
            ledger.append([end_of(name) for name in names])
            ledger.seal(keep=100)
        loose += len(names) * (steps + 2)
        if packed and loose >= PACKED_EVERY:
            pack(folder)
            loose = 0
    if packed:
        pack(folder)


def pack(folder: Path) -> None:
    """What `maintenance run` has git do."""
    for task in TASKS:
        git(folder, *task)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder / ".hermes" / "workflows.git"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
