"""Ledgers of many finished runs, made by the store itself and not by a runner: what is measured comes afterwards.

Nothing is fsynced while they are made.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

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
CODE = "66827d58b1ea"


def ledger_in(folder: Path, durability: Any = "power") -> closing[GitLedger]:
    path = folder / ".hermes" / "workflows.git"
    path.parent.mkdir(exist_ok=True)
    made = GitLedger.open(path, create=True, clock=SystemClock(), committer="bench", durability=durability)
    return closing(made)


def run_name(number: int) -> str:
    return f"run-{number:06}"


class Begun(NamedTuple):
    """A run, and when it was started. Its number is its input: as in life, no two runs have a receipt in common."""

    number: int
    moment: datetime

    @property
    def name(self) -> str:
        return run_name(self.number)

    def after(self, steps: int) -> datetime:
        return self.moment + timedelta(milliseconds=steps)


def started(ledger: GitLedger, number: int, runs: int, days: int = 30) -> Begun:
    """Start a run on its day: `runs` of them are spread evenly over `days`."""
    run = Begun(number, BEGIN + timedelta(days=number * days / runs))
    receipt = RunStarted(
        key="",
        request=RunRequest(workflow="bench:nothing", input={"number": number}),
        execution=Execution(started_at=run.moment, workspace=ledger.home, code=CODE, python="3.11"),
        path=layout.RUN,
    )
    ledger.create(Entry(run.name, (draft(receipt, BY),)), run.moment.strftime("%Y-%m-%d"))
    return run


def step_of(run: Begun, number: int) -> Entry:
    key = "increment" if number == 1 else f"increment-{number}"
    value = run.number + number
    request: dict[str, Any] = {"function": "workflows:increment", "arguments": {"value": value - 1}}
    execution = Execution(
        requested_after=number - 1,
        attempt=1,
        operation_id=f"{run.name}/{key}",
        runner="bench",
        started_at=run.after(number - 1),
        finished_at=run.after(number),
        duration_seconds=0.001,
        code=CODE,
    )
    receipt = CallReceipt(
        kind="step",
        key=key,
        status="completed",
        fingerprint=fingerprint("step", request),
        request=request,
        output=value,
        execution=execution,
        path=layout.step(key),
    )
    return Entry(run.name, (draft(receipt, Author("step")),))


def end_of(run: Begun, steps: int = 0) -> Entry:
    execution = Execution(runner="bench", finished_at=run.after(steps), duration_seconds=steps / 1000, code=CODE)
    receipt = RunEnded(key="", status="completed", output=run.name, execution=execution, path=layout.RESULT)
    return Entry(run.name, (draft(receipt, BY),))


def make(folder: Path, runs: int, *, steps: int = 0, days: int = 30, packed: bool = False) -> None:
    """Finished runs of `steps` + 2 receipts, a commit each, sealed a batch at a time as a runner would have."""
    loose = 0
    for begin in range(0, runs, BATCH):
        with ledger_in(folder, "process") as ledger:
            made = [started(ledger, number, runs, days) for number in range(begin, min(begin + BATCH, runs))]
            for number in range(1, steps + 1):
                ledger.append([step_of(run, number) for run in made])
            ledger.append([end_of(run, steps) for run in made])
            ledger.seal(keep=100)
        loose += len(made) * (steps + 2)
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
