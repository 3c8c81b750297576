"""`registry doctor` reads the bodies of workflows and warns of what cannot be replayed."""

from __future__ import annotations

from pathlib import Path

from tests.contract.test_loader import write

from hermes_workflows.doctor import examine_registry
from hermes_workflows.registry import load as load_registry

FLOW = """
from datetime import datetime

from helping import stamp
from hermes_workflows import workflow

@workflow
async def one() -> str:
    return stamp() + str(datetime.now())

@workflow
async def two() -> str:
    return stamp()
"""
HELPING = """
import os

def stamp() -> str:
    return os.environ["USER"]
"""
REGISTRY = '{"workflows": {"one": {"workflow_ref": "flows/a.py:one"}, "two": {"workflow_ref": "flows/a.py:two"}}}'


def test_the_doctor_names_file_and_line_of_what_a_body_must_not_do_once(tmp_path: Path) -> None:
    write(tmp_path, {".hermes/workflows.registry.json": REGISTRY, "flows/a.py": FLOW, "flows/helping.py": HELPING})
    registry = load_registry(tmp_path / ".hermes" / "workflows.registry.json")
    warnings = [finding.what for finding in examine_registry(registry) if finding.level == "warning"]
    assert warnings == [
        "flows/a.py:9: datetime.datetime.now in a workflow's body",
        "flows/helping.py:5: os.environ in a workflow's body",
    ]
