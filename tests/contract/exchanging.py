"""Builders for the tests of exchange: workspaces with a repository, and runs that say whose they are."""

from __future__ import annotations

from pathlib import Path

from tests.contract.ledgers import (
    DAY,
    NOON,
    TickingClock,
    end_draft,
    open_git,
    record,
    request_draft,
    response_draft,
    step_draft,
)
from tests.contract.remotes import ENVIRONMENT

from hermes_workflows import exchange
from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, Draft, Execution, RunRequest, RunStarted, draft
from hermes_workflows.registry import parse
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Entry
from hermes_workflows.workspace import Surroundings, Workspace

WITHOUT_GIT = {"PATH": "/nonexistent", "HOME": "/nonexistent"}


def desk(folder: Path, name: str, environment: dict[str, str] | None = None) -> Workspace:
    (folder / name).mkdir()
    registry = parse("{}", folder / name / ".hermes" / "workflows.registry.json")
    clock = TickingClock()
    ledger, queue = open_git(folder / name, clock=clock), MemoryQueue(clock=clock)
    return Workspace(registry, registry.dbs["default"], ledger, queue, Surroundings(clock, environment or ENVIRONMENT))


def store(workspace: Workspace) -> GitLedger:
    assert isinstance(workspace.ledger, GitLedger)
    return workspace.ledger


def own_start(workspace: Workspace, home: str | None = None) -> Draft:
    execution = Execution(started_at=NOON, workspace=home or workspace.ledger.home)
    request = RunRequest(workflow="module:function", input={"topic": "launch"})
    return draft(RunStarted(key="", request=request, execution=execution, path=layout.RUN), Author("starter"))


def run(workspace: Workspace, run_id: str = "wf_a", *drafts: Draft, home: str | None = None) -> str:
    """A run of this workspace (or one that says it is of `home`); its tip."""
    made = workspace.ledger.create(Entry(run_id, (own_start(workspace, home),)), DAY)
    tip = made.head.tip
    for each in drafts:
        tip = record(workspace.ledger, run_id, each).head.tip
    return tip


def whole_run(workspace: Workspace, run_id: str = "wf_a") -> str:
    asked = request_draft("ask")
    return run(
        workspace,
        run_id,
        step_draft("a", "x" * 70_000),
        step_draft("fan/tick-250"),
        asked,
        response_draft("ask", asked),
        end_draft(output="done"),
    )


def bundle(workspace: Workspace, run_id: str, file: Path) -> Path:
    exchange.export_bundle(workspace, workspace.find(run_id), file)
    return file
