"""`make bench`: what this disk allows, and what the runtime makes of it, in one run on one disk.

Rates are quoted as shares of the fsync limit measured right before and after, since disks and neighbours differ.
The floors are those this version promises; none of them is a test.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = (100, 1_000, 10_000)
FAN_OUT = 1_000
FAN_OUT_CONCURRENCY = 32
STARTS = 15


def measured(folder: Path, workload: str, steps: int, concurrency: int = 4) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.measuring", workload, str(steps), "--concurrency", str(concurrency)]
    command += ["--folder", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def steps_lines(folder: Path, rounds: int) -> None:
    print("\ndurable trivial steps, one run, one after the other (each one commit, durable before the next)")
    print(
        f"{'n':>7} {'steps/s':>9} {'fsync limit/s':>14} {'ratio':>7} {'first 10th':>11} {'last 10th':>10} {'growth':>7}"
    )
    for steps in STEPS:
        results = [measured(folder, "sequential", steps) for _ in range(1 if steps > 1_000 else rounds)]
        _print_row(_median(results))
        if steps == max(STEPS) and results[0]["memory_early"]:
            early, late = results[0]["memory_early"], results[0]["memory_late"]
            print(f"        memory of the runner: {early} MiB early, {late} MiB late")


def _median(results: list[dict[str, Any]]) -> dict[str, Any]:
    return sorted(results, key=lambda each: each["ratio"])[len(results) // 2]


def _print_row(row: dict[str, Any]) -> None:
    first, last = row["first_tenth_ms"], row["last_tenth_ms"]
    growth = last / first if first else float("nan")
    print(
        f"{row['steps']:>7,} {row['per_second']:>9,.0f} {row['anchor']:>14,.0f} {row['ratio']:>7.3f}"
        f" {first:>8.2f} ms {last:>7.2f} ms {growth:>7.2f}"
    )


def fan_out_line(folder: Path, rounds: int) -> None:
    row = _median([measured(folder, "fan_out", FAN_OUT, FAN_OUT_CONCURRENCY) for _ in range(rounds)])
    print(f"\none parallel of {FAN_OUT:,} trivial steps, --concurrency {FAN_OUT_CONCURRENCY}")
    print(f"        {row['per_second']:,.0f} receipts/s where the fsync limit is {row['anchor']:,.0f}/s")


def start_line() -> None:
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        root = Path(folder)
        cli = [str(Path(sys.executable).with_name("hermes-workflows"))]
        subprocess.run([*cli, "init"], cwd=root, check=True, capture_output=True)
        reference = "hermes_workflows.examples.reviewable_draft:reviewable_draft_workflow"
        start = [*cli, "run", reference, "--id", "bench", "--input-json", '{"topic": "bench"}']
        subprocess.run(start, cwd=root, check=True, capture_output=True)
        bare = [sys.executable, "-c", "import click, sqlite3"]
        ours = [*cli, "status", "--id", "bench"]
        pairs = [(_seconds(bare, root), _seconds(ours, root)) for _ in range(STARTS)]
    ratios = [one / other for other, one in pairs]
    print("\nstart-up of `hermes-workflows status` against `python -c 'import click, sqlite3'`")
    print(
        f"        {statistics.median(one for _, one in pairs) * 1000:.0f} ms against"
        f" {statistics.median(other for other, _ in pairs) * 1000:.0f} ms:"
        f" {statistics.median(ratios):.2f} × (median of {STARTS} pairs)"
    )


def _seconds(command: list[str], cwd: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often the short measurements are repeated")
    rounds = parser.parse_args().rounds
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {platform.machine()}")
    # One folder, removed at the end: see `bench.measuring`.
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        steps_lines(Path(folder), rounds)
        fan_out_line(Path(folder), rounds)
        start_line()


if __name__ == "__main__":
    main()
