"""What it costs to look at, compare, replay and fork a run of 1,000 receipts, as commands in processes of their own.

python -m bench.looking --steps 1000
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from hermes_workflows.clock import SystemClock
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.workspace import Surroundings

ROUNDS = 5


def make(root: Path, steps: int) -> None:
    """Two finished runs of one workflow with the same input."""
    (root / ".hermes").mkdir()
    shutil.copy(Path(__file__).with_name("workflows.py"), root / "workflows.py")
    (root / ".hermes" / "workflows.registry.json").write_text("{}")
    registry = parse("{}", root / ".hermes" / "workflows.registry.json")
    surroundings = Surroundings(SystemClock(), dict(os.environ))
    with closing(open_workspace(registry, registry.database(None, root), surroundings, create=True)) as made:
        for name in ("one", "two"):
            made.start("workflows.py:sequential", {"steps": steps}, run_id=name)
        Runner([made], RunnerOptions("bench", idle_exit_after=0.05)).run()


def milliseconds(root: Path, command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return (time.perf_counter() - begin) * 1000


def lines(root: Path) -> None:
    program = str(Path(sys.executable).with_name("hermes-workflows"))
    git = ["git", "-C", ".hermes/workflows.git"]
    for what, command in (
        ("`python -c 'import click, sqlite3'`", [sys.executable, "-c", "import click, sqlite3"]),
        ("`log RUN`", [program, "log", "one"]),
        ("`log RUN --graph`", [program, "log", "one", "--graph"]),
        ("`git log` of the same", [*git, "log", "--format=%an %ad %B", "runs/one"]),
        ("`show RUN`", [program, "show", "one"]),
        ("`diff A B` of equal runs", [program, "diff", "one", "two"]),
        ("`replay RUN`", [program, "replay", "one"]),
        ("`verify RUN`", [program, "verify", "one"]),
    ):
        times = [milliseconds(root, command) for _ in range(ROUNDS)]
        print(f"{what:<40} {median(times):>8,.0f} ms ({min(times):,.0f} to {max(times):,.0f})", flush=True)
    print(f"{'`fork RUN`':<40} {milliseconds(root, [program, 'fork', 'one', '--id', 'three']):>8,.0f} ms, once")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    steps = parser.parse_args().steps
    root = Path(tempfile.mkdtemp(prefix="hermes-bench-"))
    try:
        make(root, steps)
        lines(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
