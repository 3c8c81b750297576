"""`run_workflow`: a whole run in memory, in milliseconds, on the path that a runner takes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ..authoring.workflow import Workflow
from ..core.encoding import Plain
from ..core.receipts import Receipt, RunEnded
from ..core.summary import summarize
from ..core.values import plain
from ..errors import InvalidInput
from ..registry import DEFAULT_DB, DatabasePaths, Registry
from ..runner.records import log
from ..store.memory_ledger import MemoryLedger
from ..store.memory_queue import MemoryQueue
from ..workspace import Surroundings, Workspace
from .clocks import MovableClock, clock_of
from .definitions import GivenLoader
from .driver import Driver
from .elsewhere import replay_elsewhere
from .failures import HIDDEN
from .frozen_time import Freezer
from .people import People
from .replaying import replay_here
from .results import RunResult
from .scripts import Scripts
from .stand_ins import StandIns
from .traces import Scene
from .watching import WatchedBodies

__tracebackhide__ = HIDDEN

T = TypeVar("T")

_RUN_ID = "test"
# Nobody renews leases here, and the clock may jump by years.
_LEASE_SECONDS = 1e12


def run_workflow(
    workflow: Workflow[T],
    inputs: Any = None,
    *,
    agents: Mapping[str, Any] | None = None,
    answers: Mapping[str, Any] | None = None,
    commands: Mapping[str, Any] | None = None,
    signals: Mapping[str, Any] | None = None,
    clock: MovableClock | Freezer | datetime | None = None,
    always_replay: bool = False,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> RunResult[T]:
    """Run a workflow in memory until it ends, waits for an answer that nobody gives, or is stuck.

    `agents` answer by name, `answers` by the key of the question, `signals` by name when somebody waits for them,
    `commands` by name, key or the command itself; each is a value, a list of values, a function of the request, an
    exception, or any of these `later(seconds, …)`. A name may be a pattern with `*`. Agents must be scripted; commands
    that are not, and every `@step`, are executed for real, in the folder `root` (the current one) and with
    `environment` (this process's own).
    `clock` is a `TestClock`, a time to begin at, or what freezegun's `freeze_time` gives; it jumps to what is due.

    `always_replay` builds the body again from its receipts at every await, and at the end in other processes with
    other hash seeds, and compares what it decides.

    `timeout` is in seconds of the real world. Raises TookTooLong after that, Unscripted for an agent without an
    answer, ReplayMismatch, InvalidInput for inputs or answers that do not fit their type.
    """
    if not isinstance(workflow, Workflow):
        raise InvalidInput(f"{workflow!r} is no workflow", hint="decorate it with @workflow, and do not call it")
    time = clock_of(clock)
    surroundings = Surroundings(time, dict(os.environ) if environment is None else environment)
    workspace = _workspace(workflow, (root or Path.cwd()).resolve(), surroundings)
    scene = Scene(workspace.declared, str(workspace.root), workspace.secret)
    stand_ins = StandIns(Scripts("agents", agents), Scripts("commands", commands))
    people = People(workspace, Scripts("answers", answers), Scripts("signals", signals))
    driver = Driver(workspace, time, stand_ins, people, timeout)
    if always_replay:
        driver.records.bodies = WatchedBodies(workspace, driver.decider, log.warning, scene)
    try:
        workspace.start(workflow.ref, _plain_input(workflow, inputs), run_id=_RUN_ID)
        driver.run()
        result = _result(workspace, _RUN_ID, workflow, scene)
        if always_replay:
            replay_elsewhere(replay_here(result, driver.decider), surroundings.environment)
    finally:
        driver.close()
        workspace.close()
    return result


def _workspace(workflow: Workflow[Any], root: Path, surroundings: Surroundings) -> Workspace:
    paths = DatabasePaths(DEFAULT_DB, root / "memory.sqlite", root / "memory.git")
    registry = Registry(root=root, path=None, dbs={DEFAULT_DB: paths})
    ledger = MemoryLedger()
    queue = MemoryQueue(clock=surroundings.clock, lease_seconds=_LEASE_SECONDS, home=ledger.home)
    return Workspace(registry, paths, ledger, queue, surroundings, GivenLoader(registry, workflow))


def _plain_input(workflow: Workflow[Any], inputs: Any) -> Plain:
    """The input as the command line would be given it; its form is checked by the start of the run."""
    if inputs is None or isinstance(inputs, dict) or workflow.input_codec is None:
        return plain(inputs)
    return workflow.encode_input(inputs)


def _result(workspace: Workspace, run_id: str, workflow: Workflow[T], scene: Scene) -> RunResult[T]:
    _, receipts = workspace.ledger.read(run_id)
    summary = summarize(run_id, receipts)
    end = next((each for each in receipts if isinstance(each, RunEnded)), None)
    marks = workspace.queue.stuck(run_id)
    return RunResult(
        run_id=run_id,
        status=summary.status,
        result=workflow.output_codec.from_plain(end.output) if end and end.status == "completed" else None,
        error=end.error if end else None,
        stuck="; ".join(f"{mark.reason} ({mark.hint})" if mark.hint else mark.reason for mark in marks) or None,
        waiting_on=(*summary.open_reviews, *summary.open_waits),
        receipts=tuple(receipts),
        children=dict(_children(workspace, receipts, scene)),
        workflow=workflow,
        scene=scene,
    )


def _children(workspace: Workspace, receipts: Sequence[Receipt], scene: Scene) -> Iterator[tuple[str, RunResult[Any]]]:
    for start in receipts:
        child = start.execution.child
        if child is not None and start.status == "started" and workspace.ledger.head(child) is not None:
            recorded = workspace.ledger.read(child)[1][0]
            definition = workspace.loader.load(recorded.request.workflow).definition
            yield start.key, _result(workspace, child, definition, scene)
