"""Whether deciding a run ends the process that does it: tried in a process of its own, which may be lost.

That a run was claimed by several processes that died says only that they died: of the machine, of an operator, of
another run. What a slice does, it does again; so when a run is under suspicion its body is decided once from its
receipts, beside the runner, and nothing is written.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..clock import SystemClock
from ..errors import HermesError
from ..registry import choose
from ..store.git_ledger import GitLedger
from ..store.memory_queue import MemoryQueue
from ..workspace import Surroundings, Workspace
from .bodies import Bodies, CannotAdvance, Over
from .processes import StopSignal, run_command
from .pythons import python
from .slices import Decider, SliceLimits

SURVIVED = b"survived"
# In seconds. A slice that blocks is stopped and survived; one that holds the interpreter ends the probe.
_LIMITS = SliceLimits(soft=5.0, hard=10.0, dead_man=15.0)
_SECONDS = 60.0


def survives(workspace: Workspace, run_id: str) -> bool:
    """Whether a process has just decided this run and lived. Takes a second, a minute at most."""
    paths, registry = workspace.paths, workspace.registry
    if not paths.receipts.is_dir():
        return False
    environment = dict(workspace.environment)
    config = str(registry.path) if registry.path is not None else None
    told = {"run": run_id, "sqlite": str(paths.sqlite), "config": config, "environment": environment}
    # Deciding needs the fixed seed, which the runner has been started with.
    seeded = {**environment, "PYTHONHASHSEED": "0"}
    command = python(__name__, told, cwd=registry.root, environment=seeded, timeout=_SECONDS)
    outcome = run_command(command, stop=StopSignal(), redactor=workspace.redactor, now=workspace.clock.now)
    return SURVIVED in outcome.stdout.whole


def probe(run_id: str, sqlite: str, config: str | None, environment: dict[str, str]) -> None:
    """Decide a run as a runner does, from its receipts, and forget it."""
    clock = SystemClock()
    registry = choose(config, sqlite, Path.cwd())
    paths = registry.database(sqlite, Path.cwd())
    ledger = GitLedger.open(paths.receipts, create=False, clock=clock, committer="probe")
    workspace = Workspace(registry, paths, ledger, MemoryQueue(clock=clock), Surroundings(clock, environment))
    Bodies(workspace, Decider(_LIMITS), lambda line: None).current(run_id)


def main(told: Any) -> None:
    # What is raised is survived: the runner will meet the same, live, and say what it is.
    with suppress(HermesError, CannotAdvance, Over):
        probe(told["run"], told["sqlite"], told["config"], told["environment"])
    # A word, not a status: `os._exit(0)` in a body must not look like a survivor.
    sys.stdout.buffer.write(SURVIVED)
    sys.stdout.buffer.flush()
