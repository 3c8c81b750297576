"""Opening a workspace: made when asked for, never replaced by an empty one, readable where nothing can be written."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.ledgers import record, step_draft
from tests.contract.workspaces import FLOW

from hermes_workflows.clock import SystemClock
from hermes_workflows.errors import IntegrityError, NotFound, StoreFailure
from hermes_workflows.looking import LookingQueue
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import Registry, parse
from hermes_workflows.store import ahead as bursts
from hermes_workflows.store import peek
from hermes_workflows.store.queue_port import Change, Claim, Stuck
from hermes_workflows.workspace import Surroundings

AROUND = Surroundings(SystemClock(), {})


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "flow.py").write_text(FLOW)
    return parse("{}", tmp_path / ".hermes" / "workflows.registry.json")


def started(registry: Registry, run_id: str = "wf") -> None:
    workspace = open_workspace(registry, registry.dbs["default"], AROUND, create=True)
    workspace.start("flow.py:launch", {"topic": "docs"}, run_id=run_id)
    workspace.close()


def test_nothing_is_made_by_looking(registry: Registry) -> None:
    paths = registry.dbs["default"]
    with pytest.raises(NotFound, match="no receipts at"):
        open_workspace(registry, paths, AROUND)
    assert not paths.receipts.exists()
    assert not paths.sqlite.exists()


def test_an_index_without_its_receipts_is_told_not_emptied(registry: Registry) -> None:
    started(registry)
    paths = registry.dbs["default"]
    paths.receipts.rename(paths.receipts.with_suffix(".elsewhere"))
    before = paths.sqlite.read_bytes()
    with pytest.raises(IntegrityError, match="is gone, and its index"):
        open_workspace(registry, paths, AROUND, create=True)
    assert paths.sqlite.read_bytes() == before


def test_receipts_without_an_index_get_one(registry: Registry) -> None:
    started(registry)
    for file in registry.root.glob(".hermes/workflows.sqlite*"):
        file.unlink()
    workspace = open_workspace(registry, registry.dbs["default"], AROUND)
    assert [run.run_id for run in workspace.runs()] == ["wf"]
    workspace.close()


def test_an_index_made_for_looking_agrees_with_the_real_one(registry: Registry) -> None:
    started(registry)
    workspace = open_workspace(registry, registry.dbs["default"], AROUND)
    workspace.queue.apply(Change(claim=Claim(1)), "ada")
    workspace.queue.apply(Change(stuck=[Stuck("wf", "divergence", "the code differs", "restore it")]), "ada")
    looking = LookingQueue(workspace.paths, workspace.ledger, workspace.clock)
    assert looking.indexed("wf") == workspace.queue.indexed("wf")
    assert [(row.status, row.runner) for row in looking.work("wf")] == [("leased", "ada")]
    assert [mark.reason for mark in looking.stuck("wf")] == ["the code differs"]
    looking.close()
    workspace.close()


def test_a_folder_that_takes_no_writing_can_be_looked_at(registry: Registry) -> None:
    started(registry)
    paths = registry.dbs["default"]
    paths.sqlite.parent.chmod(0o555)
    try:
        if os.access(paths.sqlite.parent, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(StoreFailure):
            open_workspace(registry, paths, AROUND)
        workspace = open_workspace(registry, paths, AROUND, look=True)
        assert workspace.summary("wf").status == "running"
        workspace.close()
    finally:
        paths.sqlite.parent.chmod(0o755)


@pytest.mark.parametrize(("settings", "ahead"), [("{}", True), ('{"bursts": false}', False)])
def test_the_registry_says_whether_git_may_have_steps_a_moment_later(
    registry: Registry, tmp_path: Path, settings: str, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bursts, "BEGINS_WITHIN", 3600.0)
    monkeypatch.setattr(bursts, "LANDS_WITHIN", 3600.0)
    started(registry)
    chosen = parse(settings, tmp_path / ".hermes" / "workflows.registry.json")
    with closing(open_workspace(chosen, chosen.dbs["default"], AROUND)) as workspace:
        for n in range(2):
            record(workspace.ledger, "wf", step_draft(f"s{n}"))
        assert peek.is_ahead(workspace.paths.receipts) == ahead
    assert not peek.is_ahead(registry.dbs["default"].receipts)
