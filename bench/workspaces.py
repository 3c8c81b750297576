"""Workspaces to measure in: made in a folder, opened as commands do, worked off by a runner in this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from hermes_workflows.clock import SystemClock
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import parse
from hermes_workflows.runner.worker import Runner, RunnerOptions
from hermes_workflows.workspace import Surroundings, Workspace

# How long a runner in this process waits for more: it is taken off what is measured.
IDLE_SECONDS = 0.05

REGISTRY = Path(".hermes") / "workflows.registry.json"
PROGRAM = str(Path(sys.executable).with_name("hermes-workflows"))


def new(folder: Path | None = None, *, bursts: bool = True) -> Path:
    """A folder with the benchmark's workflows and a registry."""
    root = Path(tempfile.mkdtemp(prefix="hermes-bench-", dir=folder))
    shutil.copy(Path(__file__).with_name("workflows.py"), root / "workflows.py")
    settle(root, bursts=bursts)
    return root


def settle(root: Path, *, bursts: bool = True) -> None:
    """Put a registry into a folder, and what a repository may be made beside."""
    (root / ".hermes").mkdir(exist_ok=True)
    (root / REGISTRY).write_text("{}" if bursts else '{"bursts": false}')


def opened(root: Path, *, create: bool = False) -> closing[Workspace]:
    registry = parse((root / REGISTRY).read_text(), root / REGISTRY)
    surroundings = Surroundings(SystemClock(), dict(os.environ))
    return closing(open_workspace(registry, registry.database(None, root), surroundings, create=create))


def work_off(workspace: Workspace, concurrency: int = 4) -> None:
    """Let a runner in this process do all that can be done."""
    Runner([workspace], RunnerOptions("bench", concurrency=concurrency, idle_exit_after=IDLE_SECONDS)).run()


@contextmanager
def runner(root: Path, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A runner in a process of its own, which is ended if it has not ended by itself."""
    command = [PROGRAM, "runner", "run", "--worker-id", name, *options]
    with (root / "log").open("ab") as log:
        started = subprocess.Popen(command, cwd=root, stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.terminate()
        started.wait()


def finished(folder: Path, workload: str, steps: int, runs: Sequence[str] = ("bench",)) -> Path:
    """A workspace whose runs of one workflow have ended."""
    root = new(folder)
    with opened(root, create=True) as workspace:
        for name in runs:
            workspace.start(f"workflows.py:{workload}", {"steps": steps}, run_id=name)
        work_off(workspace)
    return root


def seconds(command: Sequence[str], cwd: Path) -> float:
    """How long a process takes from its start to its end. Raises CalledProcessError."""
    # What is installed is compiled; a checkout would otherwise be compiled again each time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begin


def turns(ours: Sequence[str], theirs: Sequence[str], cwd: Path, rounds: int) -> list[tuple[float, float]]:
    """Seconds of both, one after the other, as often as there are rounds; the first time of each is for the caches."""
    seconds(ours, cwd), seconds(theirs, cwd)
    return [(seconds(ours, cwd), seconds(theirs, cwd)) for _ in range(rounds)]
