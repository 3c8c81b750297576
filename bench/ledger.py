"""What a ledger of many finished runs costs: sealing, listing, finding, verifying, packing.

python -m bench.ledger --runs 10000

Nothing is fsynced while the runs are made: they are the scenery. What is measured is durable as in real life.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.scenery import end_of, ledger_in, make, run_name, started
from bench.workspaces import PROGRAM, opened, settle
from hermes_workflows.core.names import run_component


@contextmanager
def told(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    print(f"{what:<66} {(time.perf_counter() - begin) * 1000:>10,.1f} ms", flush=True)


def measure(folder: Path, runs: int) -> None:
    with ledger_in(folder) as ledger:
        # Warm, as a runner is: it has sealed before.
        ledger.seal(keep=100)
        ledger.append([end_of(started(ledger, runs, runs))])
        with told("sealing one more run"):
            assert ledger.seal(keep=100) == 1
        ledger.append([end_of(started(ledger, runs + number, runs)) for number in range(1, 101)])
        with told("sealing a hundred more at once"):
            assert ledger.seal(keep=100) == 100
    with ledger_in(folder) as ledger, told("every run and its commit, read cold from git"):
        assert len(list(ledger.heads())) == runs + 101
    oldest = run_name(0)
    with ledger_in(folder) as ledger, told("the oldest run by its id, cold, without an index"):
        assert ledger.head(oldest) is not None
    git = ["git", "-C", str(folder / ".hermes" / "workflows.git")]
    with told("the same by `git log --grep`"):
        grep = [*git, "log", "-1", "--format=%H", f"--grep=^Hermes-Run: {run_component(oldest)}$", "ledger"]
        assert subprocess.run(grep, check=True, capture_output=True).stdout


def commands(folder: Path) -> None:

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([PROGRAM, *arguments], cwd=folder, check=True, capture_output=True)

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
    settle(folder)
    with opened(folder) as workspace:
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
