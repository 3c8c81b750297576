"""The project's own examples decide by their receipts alone: what the kit promises of anybody's workflow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hermes_workflows.examples.reviewable_draft import DraftRequest, Review, reviewable_draft_workflow
from hermes_workflows.testing import run_workflow

ROOT = Path(__file__).parents[2]


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_installed_example_needs_no_agent() -> None:
    run = run_workflow(
        reviewable_draft_workflow,
        DraftRequest("receipts"),
        answers={"review_draft": Review("approve", "Ship it.")},
        always_replay=True,
    )
    assert run.result is not None
    assert (run.result.approved, run.result.feedback) == (True, "Ship it.")


def test_the_health_of_this_repository_is_decided_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    health = example("repo_health", monkeypatch)
    run = run_workflow(
        health.repo_health,
        {"at_most": 3},
        agents={
            "summariser": health.Summary("Fine", "low", ["nothing"]),
            "planner": [health.Plan("Do it."), health.Plan("Ana does it.")],
        },
        answers={"review_plan": [health.Verdict("revise", "Name the owners."), health.Verdict("approve")]},
        commands={"compile": None, "changed-files": "src/hermes_workflows/errors.py\nsrc/hermes_workflows/clock.py\n"},
        root=ROOT,
        always_replay=True,
    )
    assert run.result is not None
    assert run.result.plan == "Ana does it."
    assert [file.path for file in run.result.files] == [
        "src/hermes_workflows/clock.py",
        "src/hermes_workflows/errors.py",
    ]
