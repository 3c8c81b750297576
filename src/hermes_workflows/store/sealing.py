"""Sealing: finished runs move from refs of their own into one branch, `refs/heads/ledger` (FORMAT §2).

A seal grafts the run's folder into the ledger's tree and names the run's tip as its second parent, so nothing is
copied and everything stays reachable. The job compares trees, keeps no notes, and may die at any moment: what it did
not finish, the next one finds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import layout
from ..core.names import run_component
from ..core.receipts import Author
from . import commits, peek
from .admission import read_receipt
from .commits import Commit
from .durability import Disk
from .ports import Head
from .refs import Move, Refs
from .repository import GENESIS
from .snapshots import Snapshot, Snapshots
from .trees import FOLDER, Folder, Item

_GENESIS = bytes.fromhex(GENESIS)
# Refs dropped in one transaction: what else waits for their locks, waits for a few milliseconds.
_DROPPED_AT_ONCE = 25


class Sealed:
    """The ledger branch, read. Thread-safe."""

    def __init__(self, repository: Path, snapshots: Snapshots) -> None:
        self._repository = repository
        self._snapshots = snapshots
        self._guard = threading.Lock()
        self._days: dict[str, tuple[bytes, frozenset[str]]] = {}
        self._known: tuple[str | None, dict[str, str]] = (None, {})

    def newest(self) -> str | None:
        return peek.read_ref(self._repository, peek.LEDGER)

    def root(self) -> Folder:
        commit = self._snapshots.commit(bytes.fromhex(self.newest() or GENESIS))
        return self._snapshots.trees.open(commit.tree)

    def folders(self) -> Mapping[str, str]:
        """Every sealed run: the name of its folder, and its path. Days that have not changed are not read again."""
        with self._guard:
            newest = self.newest()
            if newest != self._known[0]:
                self._known = (newest, self._read_folders())
            return self._known[1]

    def tip(self, component: str) -> str:
        """The run's last commit, or "" when no run of this name is sealed."""
        if component not in self.folders():
            return ""
        return next((head.tip for head in self.heads() if run_component(head.run_id) == component), "")

    def heads(self) -> Iterator[Head]:
        """Sealed runs, the newest seal first."""
        folders = self.folders()
        oid = bytes.fromhex(self.newest() or GENESIS)
        while oid != _GENESIS:
            commit = self._snapshots.commit(oid)
            oid, tip = commit.parents
            run_id = commit.trailers()[0]["Run"]
            yield Head(run_id, tip.hex(), folders.get(run_component(run_id), ""), sealed=True)

    def _read_folders(self) -> dict[str, str]:
        trees = self._snapshots.trees
        found = trees.folder(self.root(), "runs")
        days = sorted(found.items(), reverse=True) if found else []
        for day, item in days:
            if self._days.get(day, (b"",))[0] != item.oid:
                self._days[day] = (item.oid, frozenset(name for name, _ in trees.open(item.oid).items()))
        return {name: f"runs/{day}/{name}" for day, _ in days for name in self._days[day][1]}


@dataclass(frozen=True)
class _Finished:
    ref: str
    snapshot: Snapshot
    time: int


class Sealer:
    """The job. One seals at a time; others find its work done."""

    def __init__(self, repository: Path, refs: Refs, snapshots: Snapshots, sealed: Sealed, disk: Disk) -> None:
        self._repository = repository
        self._refs = refs
        self._snapshots = snapshots
        self._sealed = sealed
        self._disk = disk

    def seal(self, committer: Author, now: int, keep: int) -> int:
        """Seal what has finished, drop the refs of all but the newest `keep` of it; how many were sealed."""
        finished = self._finished()
        with self._refs.locked([peek.LEDGER]):
            root = self._sealed.root()
            new = [run for run in finished if not self._holds(root, run)]
            if new:
                self._graft(root, new, committer, now)
        self._drop(finished[: max(len(finished) - keep, 0)])
        return len(new)

    def _finished(self) -> list[_Finished]:
        """Living refs whose run has its result, the oldest end first."""
        found = []
        for ref, tip in peek.list_refs(self._repository, peek.RUNS).items():
            if tip and (snapshot := self._snapshots.at(bytes.fromhex(tip))).ended:
                found.append(_Finished(ref, snapshot, self._snapshots.commit(snapshot.tip).time))
        return sorted(found, key=lambda run: (run.time, run.ref))

    def _holds(self, root: Folder, run: _Finished) -> bool:
        item = self._snapshots.trees.find(root, run.snapshot.folder)
        return item is not None and item.oid == run.snapshot.run_folder().oid

    def _graft(self, root: Folder, runs: Sequence[_Finished], committer: Author, now: int) -> None:
        objects, trees, barrier = self._snapshots.objects, self._snapshots.trees, self._disk.barrier()

        def write(kind: bytes, body: bytes) -> bytes:
            return objects.write(kind, body, barrier)

        old = self._sealed.newest()
        newest = bytes.fromhex(old or GENESIS)
        for run in runs:
            snapshot = run.snapshot
            root = trees.put(root, {snapshot.folder: Item(FOLDER, snapshot.run_folder().oid)}, write)
            message = commits.seal_message(snapshot.run_id, snapshot.tip, read_receipt(snapshot, layout.RESULT).status)
            commit = Commit(root.oid, (newest, snapshot.tip), message, committer, committer, now)
            newest = write(b"commit", commit.serialise())
        # We hold the lock; a False could only come from git itself moving the ledger, and the next job seals then.
        self._refs.move([Move(peek.LEDGER, old, newest.hex())], barrier)

    def _drop(self, runs: Sequence[_Finished]) -> None:
        """Remove refs whose runs the ledger holds durably, each only if it still has the value that was sealed."""
        for start in range(0, len(runs), _DROPPED_AT_ONCE):
            batch = runs[start : start + _DROPPED_AT_ONCE]
            with self._refs.locked(run.snapshot.run_id for run in batch):
                root = self._sealed.root()
                self._refs.drop({run.ref: run.snapshot.tip.hex() for run in batch if self._holds(root, run)})
