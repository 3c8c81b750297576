"""A disk that fails once, at any call to the system: what was acknowledged is there, and the next try succeeds."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import DAY, end_draft, git, impatient, open_git, run_draft, start, step_draft

from hermes_workflows.errors import StoreFailure
from hermes_workflows.store import ahead, objects, peek
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry

_CALLS = (
    *("open", "write", "pwrite", "ftruncate", "link", "rename", "unlink"),
    *("mkdir", "makedirs", "stat", "utime", "fsync", "fdatasync"),
)
# How many calls lie between two that fail here; `make soak` has each of them fail.
_APART = int(os.environ.get("FAILING_CALLS_APART", "7"))
_AT_LEAST = 40
KEYS = ["a", "b", "c", "d"]


class FailingDisk:
    """Has call number `at` fail, and no other; `made` counts them."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.made = 0
        self._at, self._code = at, (errno.EIO, errno.ENOSPC)[at % 2]
        for name in _CALLS:
            patch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.made += 1
            if self.made == self._at:
                raise OSError(self._code, os.strerror(self._code))
            return real(*arguments, **options)

        return call

    @property
    def failed(self) -> bool:
        return self.made >= self._at


def insistently(act: Callable[[], Any]) -> Any:
    """What `act` says, at the second try if the first one met the fault: one error of ours, and no other."""
    try:
        return act()
    except StoreFailure:
        return act()


def live(ledger: GitLedger) -> None:
    """A run of four steps to its end, sealed. What a first try had recorded, the second finds there."""
    insistently(lambda: ledger.head("wf_a") or ledger.create(Entry("wf_a", (run_draft(),)), DAY))
    for draft in (*map(step_draft, KEYS), end_draft()):
        insistently(partial(ledger.append, [Entry("wf_a", (draft,))]))
        if draft.receipt.key == "c":
            insistently(ledger.land)
    insistently(ledger.land)
    insistently(partial(ledger.seal, keep=0))


@pytest.mark.parametrize(
    ("bursts", "packed_from"), [(False, 1000), (True, 1000), (True, 1)], ids=["one by one", "in a burst", "in packs"]
)
def test_a_call_that_fails_costs_a_second_try_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bursts: bool, packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    at, failed = 1, True
    while failed:
        folder = tmp_path / f"at-{at}"
        folder.mkdir()
        open_git(folder).close()
        ledger = open_git(folder, bursts=bursts, patience=impatient(), durability="power")
        with monkeypatch.context() as patch:
            disk = FailingDisk(patch, at)
            live(ledger)
            failed = disk.failed
        ledger.close()
        is_right(folder)
        at += _APART
    assert at > _AT_LEAST


def is_right(folder: Path) -> None:
    found = open_git(folder, patience=impatient(ours=0.2, theirs=0.2, stale=3600.0))
    assert [receipt.key for receipt in found.read("wf_a")[1] if receipt.key] == KEYS
    assert not peek.is_ahead(found.path)
    assert found.verify("wf_a") == []
    assert "error" not in git(found, "fsck", "--strict", check=False)
    start(found, "wf_b")
