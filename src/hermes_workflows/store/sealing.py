"""Sealing: finished runs move from refs of their own into one branch, `refs/heads/ledger` (FORMAT §2).

A seal grafts the run's folder into the ledger's tree and names the run's tip as its second parent, so nothing is
copied and everything stays reachable. The job compares trees, keeps no notes, and may die at any moment: what it did
not finish, the next one finds.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import layout
from ..core.messages import run_named
from ..core.names import run_component
from ..core.receipts import Author
from ..errors import IntegrityError
from . import commits, peek
from .admission import read_receipt
from .commits import Commit
from .durability import Barrier, Disk
from .objects import id_of
from .ports import Head
from .refs import Move, Refs
from .repository import GENESIS
from .snapshots import Located, Snapshots, Way
from .trees import FOLDER, Folder, Item, chunk_of

# Refs dropped in one transaction: what else waits for their locks, waits for a few milliseconds.
_DROPPED_AT_ONCE = 25


# The tip of a sealed run, by the name of its folder, from whoever remembers it.
Recall = Callable[[str], str | None]


@dataclass(frozen=True)
class Seal:
    """Who seals, and when (seconds since 1970)."""

    committer: Author
    time: int


class Sealed:
    """A ledger branch, ours or a fetched one, read. Thread-safe."""

    def __init__(self, repository: Path, snapshots: Snapshots, ref: str = peek.LEDGER) -> None:
        self._repository = repository
        self._ref = ref
        self._snapshots = snapshots
        self._guard = threading.Lock()
        self._days: dict[str, tuple[bytes, frozenset[str]]] = {}
        self._known: tuple[str | None, dict[str, str]] = (None, {})
        self._walked: tuple[str | None, dict[str, tuple[str, str]]] = (None, {})
        self._recall: Recall = lambda _: None

    def newest(self) -> str | None:
        return peek.read_ref(self._repository, self._ref)

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

    def ask(self, recall: Recall) -> None:
        """Have somebody who may know where a run ended: reading every seal takes 40 µs each."""
        self._recall = recall

    def tip(self, component: str, *, by_seal: bool = False) -> str:
        """The run's last commit, or "" when no run of this name is sealed; `by_seal` hears nobody but the seals.

        What somebody recalls is believed when the ledger's tree holds the same folder.
        """
        folders = self.folders()
        if component not in folders:
            return ""
        if not by_seal and self._walked[0] != self.newest():
            recalled = self._recall(component)
            if recalled and self._has(folders[component], recalled):
                return recalled
        return self._seals(folders).get(component, ("", ""))[1]

    def way(self, component: str) -> Way | None:
        """How a commit leads to a run that was seen in the ledger, if it has the same folder, and no other run."""
        if (folder := self._known[1].get(component)) is None:
            return None
        runs, day, name = folder.split("/")
        try:
            run = item = self._snapshots.trees.open(self._days[day][0]).item(name)
        except IntegrityError:
            return None  # the ledger has been exchanged since, or is damaged: this is no fault of the run
        if run is None or item is None or not run.is_folder:
            return None
        for part in (name, day):
            item = Item(FOLDER, id_of(b"tree", chunk_of(part, item)))
        root = self._snapshots.start.with_item(runs, item)
        root.oid = id_of(b"tree", root.serialise())
        return Way(root, folder, run.oid)

    def _has(self, folder: str, tip: str) -> bool:
        try:
            found = self._snapshots.locate(bytes.fromhex(tip))
        except IntegrityError:
            return False
        item = self._snapshots.trees.find(self.root(), folder)
        return item is not None and (found.head.folder, found.tree) == (folder, item.oid)

    def heads(self) -> Iterator[Head]:
        """Sealed runs, the newest seal first; those whose seal cannot be read come last, without a tip.

        Commits on the branch that are no seals are somebody's, and skipped.
        """
        folders = self.folders()
        for component, (run_id, tip) in self._seals(folders).items():
            if folder := folders.get(component):
                yield Head(run_id, tip, folder, sealed=True)

    def _seals(self, folders: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
        """Id and tip of each sealed run by the name of its folder. Only seals that are new are read."""
        with self._guard:
            newest = self.newest()
            known, before = self._walked
            if newest == known:
                return before
            new: dict[str, tuple[str, str]] = {}
            try:
                for oid, commit in self._snapshots.first_parents(bytes.fromhex(newest or GENESIS)):
                    if oid.hex() == known:
                        break
                    run_id = run_named(commit.message) or ""
                    if len(commit.parents) == 2:
                        new.setdefault(run_component(run_id), (run_id, commit.parents[1].hex()))
                else:
                    before = {}
            except IntegrityError:
                # The chain is broken there. The runs before it are still in the tree; reading one says what is wrong.
                return new | {name: (name, "") for name in folders if name not in new}
            self._walked = (newest, new | {name: seal for name, seal in before.items() if name not in new})
            return self._walked[1]

    def _read_folders(self) -> dict[str, str]:
        trees = self._snapshots.trees
        found = trees.folder(self.root(), "runs")
        days = sorted(found.items(), reverse=True) if found else []
        for day, item in days:
            if self._days.get(day, (b"",))[0] != item.oid:
                self._days[day] = (item.oid, frozenset(trees.open(item.oid).names()))
        return {name: f"runs/{day}/{name}" for day, _ in days for name in self._days[day][1]}


class Sealer:
    """The job. One seals at a time; others find its work done."""

    def __init__(self, repository: Path, refs: Refs, snapshots: Snapshots, sealed: Sealed, disk: Disk) -> None:
        self._repository = repository
        self._refs = refs
        self._snapshots = snapshots
        self._sealed = sealed
        self._disk = disk
        self._located: dict[str, Located] = {}

    def seal(self, seal: Seal, keep: int) -> int:
        """Seal what has finished, drop the refs of all but the newest `keep` of it; how many were sealed."""
        finished = self._finished()
        with self._refs.locked([peek.LEDGER]), contextlib.closing(self._disk.barrier()) as barrier:
            # Seen under the lock, so what is in there is durable, and its refs may go.
            root = self._sealed.root()
            came_back = self._came_back(root)
            new = [run for run in finished if not self._holds(root, run)]
            if new and not self._graft(root, new, seal, barrier):
                # git itself has moved the ledger; the next job compares again.
                return 0
        self._drop([*finished[: max(len(finished) - keep, 0)], *came_back])
        return len(new)

    def _finished(self) -> list[Located]:
        """Living runs that have their result, the oldest end first. A tip that was looked at is not read again."""
        tips = peek.list_refs(self._repository, peek.RUNS).values()
        self._located = {tip: self._located.get(tip) or self._locate(tip) for tip in tips if tip}
        finished = (run for run in self._located.values() if run.ended)
        return sorted(finished, key=lambda run: (run.time, run.head.run_id))

    def _came_back(self, root: Folder) -> list[Located]:
        """Refs that a power cut has put back to a value before their run's end, which the ledger holds."""
        unfinished = (run for run in self._located.values() if not run.ended and run.tree)
        sealed = [run for run in unfinished if self._snapshots.trees.find(root, run.head.folder)]
        return [
            run
            for run in sealed
            if self._is_behind(run, self._sealed.tip(run_component(run.head.run_id), by_seal=True))
        ]

    def _is_behind(self, run: Located, tip: str) -> bool:
        """Whether the ref's commit is an ancestor of the sealed one; else it is somebody's, and `verify` tells."""
        ancestors = self._snapshots.first_parents(bytes.fromhex(tip or GENESIS))
        return any(oid.hex() == run.head.tip for oid, _ in ancestors)

    def _locate(self, tip: str) -> Located:
        try:
            return self._snapshots.locate(bytes.fromhex(tip))
        except IntegrityError:
            # A damaged run must not keep the others from being sealed; `verify` and `doctor` report it.
            return Located(Head("", tip, ""), 0, b"", ended=False)

    def _holds(self, root: Folder, run: Located) -> bool:
        item = self._snapshots.trees.find(root, run.head.folder)
        # Also its commits: where a seal cannot be read any more, the run's ref is all that leads to them.
        held = item is not None and item.oid == run.tree
        return held and self._sealed.tip(run_component(run.head.run_id), by_seal=True) == run.head.tip

    def _graft(self, root: Folder, runs: Sequence[Located], seal: Seal, barrier: Barrier) -> bool:
        objects, trees = self._snapshots.objects, self._snapshots.trees

        def write(kind: bytes, body: bytes) -> bytes:
            return objects.write(kind, body, barrier)

        old = self._sealed.newest()
        newest = bytes.fromhex(old or GENESIS)
        for run in runs:
            root = trees.put(root, {run.head.folder: Item(FOLDER, run.tree)}, write)
            tip = bytes.fromhex(run.head.tip)
            status = read_receipt(self._snapshots.at(tip), layout.RESULT).status
            message = commits.seal_message(run.head.run_id, tip, status)
            commit = Commit(root.oid, (newest, tip), message, seal.committer, seal.committer, seal.time)
            newest = write(b"commit", commit.serialise())
        return self._refs.move([Move(peek.LEDGER, old, newest.hex())], barrier)[0]

    def _drop(self, runs: Sequence[Located]) -> None:
        """Remove refs whose runs the ledger holds durably, each only if it still has the value that was sealed."""
        for start in range(0, len(runs), _DROPPED_AT_ONCE):
            batch = runs[start : start + _DROPPED_AT_ONCE]
            with self._refs.locked(run.head.run_id for run in batch):
                self._refs.drop({peek.RUNS + run_component(run.head.run_id): run.head.tip for run in batch})
