"""One measurement in a process of its own: a workspace is made, a run goes through it, numbers come out as JSON.

python -m bench.measuring sequential 1000 --concurrency 4

The workspace is left in the folder it was made in: freeing its files slows down for seconds every file that is made
on the same disk after it, and so the next measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes_workflows.clock import SystemClock
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.workspace import Surroundings, Workspace

APPEND_BYTES = 2048


@dataclass
class Measured:
    """`anchor` is 2 KB append + fsync a second right before and after, on the same disk; memory is in MiB."""

    workload: str
    steps: int
    per_second: float
    anchor: float
    first_tenth_ms: float
    last_tenth_ms: float
    memory_early: float | None
    memory_late: float | None

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
    """MiB of this process in memory; None where /proc does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


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


def open_here(root: Path) -> Workspace:
    (root / ".hermes").mkdir()
    registry = parse("{}", root / ".hermes" / "workflows.registry.json")
    surroundings = Surroundings(SystemClock(), dict(os.environ))
    return open_workspace(registry, registry.database(None, root), surroundings, create=True)


def measure(workload: str, steps: int, concurrency: int, folder: Path | None = None) -> Measured:
    """`folder` is where the workspace is made; the system's folder for temporary files when left out."""
    root = Path(tempfile.mkdtemp(prefix="hermes-bench-", dir=folder))
    shutil.copy(Path(__file__).with_name("workflows.py"), root / "workflows.py")
    before = fsync_limit(root)
    workspace = open_here(root)
    workspace.start(f"workflows.py:{workload}", {"steps": steps}, run_id="bench")
    options = RunnerOptions("bench", concurrency=concurrency, idle_exit_after=0.05)
    begin = time.perf_counter()
    with Sampler() as memory:
        Runner([workspace], options).run()
    seconds = time.perf_counter() - begin - 0.05
    after = fsync_limit(root)
    tenths = _tenths(workspace, steps)
    workspace.close()
    return Measured(
        workload, steps, steps / seconds, (before + after) / 2, *tenths, memory.around(0.15), memory.around(0.95)
    )


def _tenths(workspace: Workspace, steps: int) -> tuple[float, float]:
    """Milliseconds a step in the first and in the last tenth, by the receipts' own times."""
    assert workspace.summary("bench").status == "completed"
    times = [
        receipt.execution.finished_at.timestamp()
        for receipt in workspace.ledger.read("bench")[1]
        if receipt.kind == "step" and receipt.execution.finished_at
    ]
    tenth = steps // 10
    return (times[tenth] - times[0]) / tenth * 1000, (times[-1] - times[-1 - tenth]) / tenth * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=["sequential", "fan_out"])
    parser.add_argument("steps", type=int)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where the workspace is made, and left")
    given = parser.parse_args()
    measured = measure(given.workload, given.steps, given.concurrency, given.folder)
    print(json.dumps({**asdict(measured), "ratio": measured.ratio}))


if __name__ == "__main__":
    main()
