"""One measurement in a process of its own: a workspace is made, a run goes through it, numbers come out as JSON.

python -m bench.measuring sequential 1000 --concurrency 4 --runs 1

The workspace is left in the folder it was made in: freeing its files slows down for seconds every file that is made
on the same disk after it, and so the next measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.workspaces import IDLE_SECONDS, new, opened, work_off
from hermes_workflows.workspace import Workspace

APPEND_BYTES = 2048


@dataclass
class Measured:
    """`anchor` is 2 KB append + fsync a second right before and after, on the same disk; memory is in MB.

    Times of tenths are those of the first run.
    """

    workload: str
    steps: int
    runs: int
    per_second: float
    anchor: float
    first_tenth_ms: float
    last_tenth_ms: float
    memory_early: float | None
    memory_late: float | None
    memory_most: float | None

    @property
    def ratio(self) -> float:
        return self.per_second / self.anchor


def fsync_limit(folder: Path, count: int = 500) -> float:
    """2 KB appends a second, each synced: what this disk allows a program that only writes."""
    block = os.urandom(APPEND_BYTES)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        begin = time.perf_counter()
        for _ in range(count):
            os.write(file.fileno(), block)
            os.fsync(file.fileno())
        return count / (time.perf_counter() - begin)


def resident() -> float | None:
    """MB of this process in memory; None where /proc does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


class Sampler:
    """Resident memory over time, from a thread, as a list."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._end.wait(0.05):
            if (now := resident()) is not None:
                self.samples.append(now)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._end.set()
        self._thread.join()

    def around(self, share: float) -> float | None:
        """The median of the samples near this share of the whole time."""
        if not self.samples:
            return None
        middle = int(share * (len(self.samples) - 1))
        near = sorted(self.samples[max(0, middle - 3) : middle + 4])
        return round(near[len(near) // 2], 1)


def measure(
    workload: str, steps: int, concurrency: int, folder: Path | None = None, runs: int = 1, *, bursts: bool = True
) -> Measured:
    """`folder` is where the workspace is made; the system's folder for temporary files when left out."""
    root = new(folder, bursts=bursts)
    before = fsync_limit(root)
    with opened(root, create=True) as workspace:
        for number in range(runs):
            workspace.start(f"workflows.py:{workload}", {"steps": steps}, run_id=f"bench-{number}")
        begin = time.perf_counter()
        with Sampler() as memory:
            work_off(workspace, concurrency)
        seconds = time.perf_counter() - begin - IDLE_SECONDS
        after = fsync_limit(root)
        tenths = _tenths(workspace, steps)
    rates = steps * runs / seconds, (before + after) / 2
    used = memory.around(0.15), memory.around(0.95), max(memory.samples, default=None)
    return Measured(workload, steps, runs, *rates, *tenths, *used)


def _tenths(workspace: Workspace, steps: int) -> tuple[float, float]:
    """Milliseconds a step in the first and in the last tenth, by the receipts' own times."""
    assert workspace.summary("bench-0").status == "completed"
    times = [
        receipt.execution.finished_at.timestamp()
        for receipt in workspace.ledger.read("bench-0")[1]
        if receipt.kind == "step" and receipt.execution.finished_at
    ]
    tenth = steps // 10
    return (times[tenth] - times[0]) / tenth * 1000, (times[-1] - times[-1 - tenth]) / tenth * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=["sequential", "fan_out", "kilobytes"])
    parser.add_argument("steps", type=int)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--runs", type=int, default=1, help="how many runs of so many steps live at once")
    parser.add_argument("--folder", type=Path, help="where the workspace is made, and left")
    parser.add_argument("--no-bursts", action="store_true", help="each step in git and in the queue before the next")
    given = parser.parse_args()
    measured = measure(
        given.workload, given.steps, given.concurrency, given.folder, given.runs, bursts=not given.no_bursts
    )
    print(json.dumps({**asdict(measured), "ratio": measured.ratio}))


if __name__ == "__main__":
    main()
