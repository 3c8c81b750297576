"""What a ledger of many finished runs costs: sealing, listing, finding, verifying, packing.

python -m bench.ledger --runs 10000

Nothing is fsynced while the runs are made: they are the scenery. What is measured is durable as in real life.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_workflows.clock import SystemClock
from hermes_workflows.core import layout
from hermes_workflows.core.names import run_component
from hermes_workflows.core.receipts import Author, Execution, RunEnded, RunRequest, RunStarted, draft
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry
from hermes_workflows.workspace import Surroundings

BATCH = 500
DAYS = 30
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def opened(folder: Path, durability: Any = "power") -> closing[GitLedger]:
    path = folder / ".hermes" / "workflows.git"
    path.parent.mkdir(exist_ok=True)
    made = GitLedger.open(path, create=True, clock=SystemClock(), committer="bench", durability=durability)
    return closing(made)


def started(ledger: GitLedger, number: int, runs: int) -> str:
    moment = BEGIN + timedelta(days=number * DAYS // runs)
    receipt = RunStarted(
        key="",
        request=RunRequest(workflow="bench:nothing", input={"number": number}),
        execution=Execution(started_at=moment, workspace=ledger.home),
        path=layout.RUN,
    )
    run_id = f"run-{number:06}"
    ledger.create(Entry(run_id, (draft(receipt, Author("workflow")),)), moment.strftime("%Y-%m-%d"))
    return run_id


def end_of(run_id: str) -> Entry:
    receipt = RunEnded(
        key="", status="completed", output=run_id, execution=Execution(finished_at=BEGIN), path=layout.RESULT
    )
    return Entry(run_id, (draft(receipt, Author("workflow")),))


def make(folder: Path, runs: int) -> None:
    """Finished runs, a batch at a time, sealed and packed as a runner would have."""
    with opened(folder, "process") as ledger:
        for begin in range(0, runs, BATCH):
            names = [started(ledger, number, runs) for number in range(begin, min(begin + BATCH, runs))]
            ledger.append([end_of(name) for name in names])
            ledger.seal(keep=100)


@contextmanager
def told(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    print(f"{what:<66} {(time.perf_counter() - begin) * 1000:>10,.1f} ms", flush=True)


def measure(folder: Path, runs: int) -> None:
    with opened(folder) as ledger:
        # Warm, as a runner is: it has sealed before.
        ledger.seal(keep=100)
        ledger.append([end_of(started(ledger, runs, runs))])
        with told("sealing one more run"):
            assert ledger.seal(keep=100) == 1
        ledger.append([end_of(started(ledger, runs + number, runs)) for number in range(1, 101)])
        with told("sealing a hundred more at once"):
            assert ledger.seal(keep=100) == 100
    with opened(folder) as ledger, told("every run and its commit, read cold from git"):
        assert len(list(ledger.heads())) == runs + 101
    oldest = "run-000000"
    with opened(folder) as ledger, told("the oldest run by its id, cold, without an index"):
        assert ledger.head(oldest) is not None
    git = ["git", "-C", str(folder / ".hermes" / "workflows.git")]
    with told("the same by `git log --grep`"):
        grep = [*git, "log", "-1", "--format=%H", f"--grep=^Hermes-Run: {run_component(oldest)}$", "ledger"]
        assert subprocess.run(grep, check=True, capture_output=True).stdout


def commands(folder: Path) -> None:
    (folder / ".hermes" / "workflows.registry.json").write_text("{}")
    program = str(Path(sys.executable).with_name("hermes-workflows"))

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)

    for what, command in (
        ("`list`, the index deleted", run("list")),
        ("`list` again", run("list")),
        ("`status` of the oldest run", run("status", "run-000000")),
        ("`show` of the oldest run", run("show", "run-000000")),
        ("`verify` of the oldest run", run("verify", "run-000000")),
        ("`verify --all`", run("verify", "--all")),
    ):
        with told(what):
            command()


def packing(folder: Path) -> None:
    registry = parse("{}", folder / ".hermes" / "workflows.registry.json")
    surroundings = Surroundings(SystemClock(), dict(os.environ))
    with closing(open_workspace(registry, registry.database(None, folder), surroundings)) as workspace:
        for full in (False, True):
            with told("`maintenance run --full`" if full else "`maintenance run`"):
                done = workspace.maintain(full=full)
            print(f"    {done.before.size:,} bytes became {done.after.size:,}, in {done.after.packs} packs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    folder = Path(tempfile.mkdtemp(prefix="hermes-bench-"))
    try:
        with told(f"making and sealing {runs:,} runs of two receipts, not fsynced"):
            make(folder, runs)
        packing(folder)
        measure(folder, runs)
        commands(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
