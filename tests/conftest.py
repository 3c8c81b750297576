<<<<<<< ours
"""What holds for every test: its workflows decide by their receipts alone (tests/guarantees/watching.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.guarantees import watching

from hermes_workflows.runner import records


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
=======
"""No test waits for a disk: power is cut only in tests/contract/test_power_cuts.py, which knows what was synced."""

from __future__ import annotations

import os

import pytest

from hermes_workflows.store import durability


@pytest.fixture(autouse=True)
def quick_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs are asked for and counted as ever, and done only for tests that are marked with `syncs`."""
    if "syncs" not in request.keywords:
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)
        monkeypatch.setattr(durability, "_sync_file_range", lambda *_: 0)
>>>>>>> theirs
