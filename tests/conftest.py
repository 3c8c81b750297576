"""What holds for every test: workflows decide by their receipts alone (tests/guarantees/watching.py), and no disk is
waited for, since power is cut only in tests/contract/test_power_cuts.py, which knows what was synced."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.guarantees import watching

from hermes_workflows.runner import records
from hermes_workflows.store import durability


@pytest.fixture(autouse=True)
def _every_run_is_decided_again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Marked `decides_otherwise`, a test has bodies that decide by more than their receipts, and says which."""
    if request.node.get_closest_marker("decides_otherwise"):
        yield
        return
    monkeypatch.setattr(records, "Bodies", watching.NotedBodies)
    watching.NOTED.clear()
    yield
    assert watching.NOTED == []


@pytest.fixture(autouse=True)
def _syncs_are_only_counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked `syncs`, a test waits for the disk."""
    if not request.node.get_closest_marker("syncs"):
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)
        monkeypatch.setattr(durability, "_sync_file_range", lambda *_: 0)
