"""What it costs to look at, compare, replay and fork a run of 1,000 receipts, as commands in processes of their own.

python -m bench.looking --steps 1000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.workspaces import PROGRAM, finished, seconds

ROUNDS = 5


def milliseconds(root: Path, command: Sequence[str]) -> float:
    return seconds(command, root) * 1000


def lines(root: Path) -> None:
    git = ["git", "-C", ".hermes/workflows.git"]
    for what, command in (
        ("`python -c 'import click, sqlite3'`", [sys.executable, "-c", "import click, sqlite3"]),
        ("`log RUN`", [PROGRAM, "log", "one"]),
        ("`log RUN --graph`", [PROGRAM, "log", "one", "--graph"]),
        ("`git log` of the same", [*git, "log", "--format=%an %ad %B", "runs/one"]),
        ("`show RUN`", [PROGRAM, "show", "one"]),
        ("`diff A B` of equal runs", [PROGRAM, "diff", "one", "two"]),
        ("`replay RUN`", [PROGRAM, "replay", "one"]),
        ("`verify RUN`", [PROGRAM, "verify", "one"]),
    ):
        times = [milliseconds(root, command) for _ in range(ROUNDS)]
        print(f"{what:<40} {median(times):>8,.0f} ms ({min(times):,.0f} to {max(times):,.0f})", flush=True)
    print(f"{'`fork RUN`':<40} {milliseconds(root, [PROGRAM, 'fork', 'one', '--id', 'three']):>8,.0f} ms, once")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    steps = parser.parse_args().steps
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        # Two finished runs of one workflow with the same input.
        lines(finished(Path(folder), "sequential", steps, ["one", "two"]))


if __name__ == "__main__":
    main()
