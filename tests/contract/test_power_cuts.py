"""What a power cut leaves, at every moment of writing: the repository is whole, and holds what was acknowledged.

The model is ext4 with an ordered journal. Names change in the order in which they were changed; a file has the content
that it had when it was last synced or written out, and none before. So the state after each change of a name or a
content is one that a cut may leave, and each is opened as a repository of its own. Objects that nothing leads to may
be torn; whoever needs one writes it again.

`CUTS_APART` says how many such states lie between two that are opened; the last one is, and `make soak` opens each.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import end_draft, git, impatient, open_git, record, start, step_draft
from tests.contract.test_durability import needs_ext4

from hermes_workflows.store import ahead, durability, objects
from hermes_workflows.store.git_ledger import GitLedger

_CHANGES = ("write", "pwrite", "ftruncate", "link", "rename", "unlink")


_APART = int(os.environ.get("CUTS_APART", "3"))


class Camera:
    """Takes a copy of a folder after each change, without what is not yet on the disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.acknowledged: list[str] = []
        self.taken: list[tuple[dict[Path, bytes | None], list[str]]] = []
        self._kept: dict[int, bytes] = {}
        for name in _CHANGES:
            monkeypatch.setattr(os, name, self._seen(name, getattr(os, name)))
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._synced(getattr(os, name)))
        monkeypatch.setattr(durability, "_write_out", self._written_out(durability._write_out))

    def _seen(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            done = real(*arguments, **options)
            if name in ("write", "pwrite", "ftruncate"):
                self._kept.setdefault(os.fstat(arguments[0]).st_ino, b"")
            self.take()
            return done

        return change

    def _synced(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            real(descriptor)
            self._keep(descriptor)

        return sync

    def _written_out(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def write_out(descriptor: int, flags: int) -> None:
            real(descriptor, flags)
            if flags == durability._START_AND_WAIT:
                self._keep(descriptor)

        return write_out

    def _keep(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            self._kept[found.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def take(self) -> None:
        found: dict[Path, bytes | None] = {}
        for folder, _, names in os.walk(self.folder):
            found[Path(folder)] = None
            for name in names:
                kept = self._kept.get((path := Path(folder, name)).stat().st_ino)
                found[path] = path.read_bytes() if kept is None else kept
        state = (found, list(self.acknowledged))
        # What is written and not synced looks like nothing.
        if not self.taken or state != self.taken[-1]:
            self.taken.append(state)

    def develop(self, taken: dict[Path, bytes | None], folder: Path) -> Path:
        """A folder that looks as it did then."""
        shutil.rmtree(folder, ignore_errors=True)
        for path, content in taken.items():
            there = folder / path.relative_to(self.folder)
            if content is None:
                there.mkdir(parents=True)
            else:
                there.write_bytes(content)
        return folder


def steps(ledger: GitLedger, camera: Camera, *keys: str) -> None:
    for key in keys:
        record(ledger, "wf_a", step_draft(key))
        camera.acknowledged.append(key)


@needs_ext4
@pytest.mark.parametrize(
    ("bursts", "packed_from"), [(False, 1000), (True, 1000), (True, 1)], ids=["one by one", "in a burst", "in packs"]
)
def test_no_power_cut_loses_what_was_acknowledged_or_damages_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bursts: bool, packed_from: int
) -> None:
    monkeypatch.setattr(objects, "PACKED_FROM", packed_from)
    monkeypatch.setattr(ahead, "BEGINS_WITHIN", 3600.0)
    monkeypatch.setattr(ahead, "LANDS_WITHIN", 3600.0)
    ledger = open_git(tmp_path, durability="power", bursts=bursts)
    start(ledger)
    with monkeypatch.context() as watched:
        camera = Camera(ledger.path, watched)
        steps(ledger, camera, "a", "b")
        ledger.land()
        steps(ledger, camera, "c")
        record(ledger, "wf_a", end_draft())
    assert len(camera.taken) > 10
    # Backwards, so that the state in which everything was acknowledged is one of them.
    for taken, acknowledged in camera.taken[::-_APART]:
        repository = camera.develop(taken, tmp_path / "after" / "workflows.git")
        assert is_whole(repository)
        found = open_git(repository.parent, patience=impatient())
        assert [each.key for each in found.read("wf_a")[1] if each.key][: len(acknowledged)] == acknowledged
        record_more(found)
        assert is_whole(found.path)


def is_whole(repository: Path) -> bool:
    """Whether git can read everything that any ref leads to, to the last byte."""
    return git(repository, "log", "--all", "--patch") != ""


def record_more(ledger: GitLedger) -> None:
    """The run goes on from what was found, unless it has ended."""
    if ledger.file("wf_a", "result.json") is None:
        record(ledger, "wf_a", step_draft("more"))
