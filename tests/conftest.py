"""What holds for every test: workflows decide by their receipts alone (tests/guarantees/watching.py), and no disk is
waited for, since power is cut only in tests/contract/test_power_cuts.py, which knows what was synced."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import pytest
from tests import memory
from tests.guarantees import watching

from hermes_workflows.runner import records
from hermes_workflows.store import durability

memory.use()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: nothing is found by looking through it again and again."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(autouse=True)
def _path_is_put_back() -> Iterator[None]:
    """A loader leaves the folders of its workspace on the path for ever (`importing.on_path`), and each import of each
    later test would look through those of all tests before it."""
    before = list(sys.path)
    yield
    for folder in {*sys.path} - {*before}:
        sys.path_importer_cache.pop(folder, None)
    sys.path[:] = before


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
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, lambda descriptor: None)
        monkeypatch.setattr(durability, "_sync_file_range", lambda *_: 0)
        if memory.is_used():
            monkeypatch.setattr(durability, "has_ordered_journal", memory.is_ordered_on_disk)
