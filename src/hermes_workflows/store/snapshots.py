"""A run as one commit holds it: its folder, its last seq, whether it has ended.

Commits never change, so a snapshot is kept by its commit id and is right for ever; only memory bounds it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import NamedTuple

from ..core import layout
from ..core.checks import is_receipt
from ..core.messages import run_named
from ..core.names import run_component
from ..core.receipts import Receipt, load
from ..errors import IntegrityError
from . import commits
from .admission import blob_of, read_receipt
from .commits import Commit
from .objects import Objects
from .ports import Head
from .repository import GENESIS
from .trees import Folder, Item, Trees

_GENESIS = bytes.fromhex(GENESIS)
_KEPT = 256
_OF_RECEIPTS = (layout.Role.RESULT, layout.Role.NOTE)
_SEQ = attrgetter("execution.seq")


class NoRun(IntegrityError):
    """A commit that is whole, and of something else than one run."""


@dataclass(frozen=True)
class Snapshot:
    """`tip` is the commit (20 bytes), `root` its whole tree, `folder` the run's place in it.

    `seq` is the newest receipt's, when whoever made the snapshot knows it.
    """

    run_id: str
    tip: bytes
    root: Folder
    folder: str
    store: Snapshots
    sealed: bool = False
    seq: int | None = None

    @property
    def last_seq(self) -> int:
        # Whoever appends knows it, and a cached property takes a lock when it is first asked.
        return self._last_seq if self.seq is None else self.seq

    @cached_property
    def _last_seq(self) -> int:
        return self.store.last_seq(self)

    def content(self, path: str) -> bytes | None:
        item = self._find(path)
        return None if item is None or item.is_folder else self.store.objects.read(item.oid, b"blob")

    def has(self, path: str) -> bool:
        return self._find(path) is not None

    @property
    def ended(self) -> bool:
        return self.has(layout.RESULT)

    def run_folder(self) -> Folder:
        found = self._run_folder
        assert found is not None  # `Snapshots.at` found it there, and a tree has each name once
        return found

    @cached_property
    def _run_folder(self) -> Folder | None:
        """None before its first receipt."""
        return self.store.trees.folder(self.root, self.folder)

    def _find(self, path: str) -> Item | None:
        return self.store.trees.find(self._run_folder, path) if self._run_folder else None

    def head(self) -> Head:
        return Head(self.run_id, self.tip.hex(), self.folder, self.sealed)


class Way(NamedTuple):
    """How a commit leads to its run: its whole tree, the path of the run's folder in it, and that folder's id."""

    root: Folder
    folder: str
    run: bytes


@dataclass(frozen=True)
class Located:
    """What one look at a tip tells: `time` is when it was made (seconds), `tree` the id of the run's folder."""

    head: Head
    time: int
    tree: bytes
    ended: bool

    @classmethod
    def unread(cls, run_id: str, tip: str) -> Located:
        """What its ref alone says of a run."""
        return cls(Head(run_id, tip, ""), 0, b"", ended=False)


class Snapshots:
    """Reads snapshots. Thread-safe."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.trees = Trees(lambda oid: objects.read(oid, b"tree"))
        self._kept: OrderedDict[bytes, Snapshot] = OrderedDict()
        self._guard = threading.Lock()
        self._last: tuple[bytes, Commit] | None = None
        self._expect: Callable[[str], Way | None] = lambda _: None

    @cached_property
    def start(self) -> Folder:
        """The tree that each run begins with, before its first receipt."""
        return self.trees.open(self.commit(_GENESIS).tree)

    def ask(self, expect: Callable[[str], Way | None]) -> None:
        """Have somebody who may know the way to a run, by the name of its folder, before it is read tree by tree.

        It is believed when the tree has the id that the commit names.
        """
        self._expect = expect

    def commit(self, oid: bytes) -> Commit:
        # Of the same commit it is asked first what it is, and then for its run.
        if (last := self._last) and last[0] == oid:
            return last[1]
        found = commits.parse(self.objects.read(oid, b"commit"), oid)
        self._last = (oid, found)
        return found

    def known(self, tip: bytes) -> Snapshot | None:
        """The snapshot of a commit that was met lately: every step of a live run asks for the newest one."""
        with self._guard:
            if found := self._kept.get(tip):
                self._kept.move_to_end(tip)
            return found

    def first_parents(self, oid: bytes) -> Iterator[tuple[bytes, Commit]]:
        """Commits from `oid` back along first parents, down to genesis or another root, which is not given."""
        while oid != _GENESIS:
            commit = self.commit(oid)
            yield oid, commit
            if not commit.parents:
                return
            oid = commit.parents[0]

    def at(self, tip: bytes) -> Snapshot:
        """The run whose commit `tip` is. Raises IntegrityError for a commit that is no run's."""
        if found := self.known(tip):
            return found
        commit = self.commit(tip)
        root, folder, run = self._way(tip, commit)
        snapshot = Snapshot(self._run_id(tip, commit, folder), tip, root, folder, self)
        vars(snapshot)["_run_folder"] = self.trees.open(run)
        self.keep(snapshot)
        return snapshot

    def locate(self, tip: bytes) -> Located:
        """Which run's commit `tip` is: less reading than `at`, the same errors."""
        commit = self.commit(tip)
        _, folder, run = self._way(tip, commit)
        head = Head(self._run_id(tip, commit, folder), tip.hex(), folder)
        return Located(head, commit.time, run, self.trees.open(run).item(layout.RESULT) is not None)

    def keep(self, snapshot: Snapshot, instead_of: bytes = b"") -> None:
        """Remember a snapshot; its predecessor is hardly ever asked for again."""
        with self._guard:
            self._kept.pop(instead_of, None)
            self._kept[snapshot.tip] = snapshot
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def receipts(self, new: Snapshot, old: Snapshot | None = None) -> list[Receipt]:
        """The receipts of `new`, or those it has more than `old`, in seq order.

        Raises IntegrityError when a receipt of `old` was changed or removed, or a new one cannot be read.
        """
        if old and old.folder != new.folder:
            raise IntegrityError(f"commit {old.tip.hex()} is not one of run {new.run_id}")
        files = self._added(new, old) if old else self.trees.walk(new.run_folder())
        fetch, receipts = partial(blob_of, new), []
        for path, item in files:
            place = layout.place(path)
            if place is None:
                raise IntegrityError(f"{new.run_id}: {path} is no file of a run")
            if place.role in _OF_RECEIPTS:
                # The walk has just been there: going down from the root for each costs more than reading it.
                receipts.append(load(path, self.objects.read(item.oid, b"blob"), fetch))
        return sorted(receipts, key=_SEQ)

    def _added(self, new: Snapshot, old: Snapshot) -> Iterator[tuple[str, Item]]:
        for change in self.trees.compare(old.run_folder(), new.run_folder()):
            if change.old is None and change.new:
                yield change.path, change.new
            elif change.path != layout.README:
                verb = "was removed" if change.new is None else "was changed"
                raise IntegrityError(
                    f"{new.run_id}: {change.path} {verb} after {old.tip.hex()[:12]}",
                    hint=f"`hermes-workflows verify {new.run_id}` shows every such place",
                )

    def _way(self, tip: bytes, commit: Commit) -> Way:
        expected = self._expect(run_component(run_named(commit.message) or ""))
        if expected and expected.root.oid == commit.tree:
            return expected
        root = self.trees.open(commit.tree)
        path, item = "runs", root.item("runs")
        for _ in range(2):
            only = self.trees.only_folder(item.oid) if item and item.is_folder else None
            if only is None:
                raise NoRun(f"commit {tip.hex()} holds no run, or several")
            path, item = f"{path}/{only[0]}", only[1]
        assert item  # as the last one that was found
        return Way(root, path, item.oid)

    @staticmethod
    def _run_id(tip: bytes, commit: Commit, folder: str) -> str:
        """The id as it was given: the trailer says it, and is believed because the folder's name is made from it."""
        component = folder.rpartition("/")[2]
        named = run_named(commit.message)
        if named is None:
            return component
        if run_component(named) != component:
            raise IntegrityError(f"commit {tip.hex()} says it is of run {named!r}, but its folder is {folder}")
        return named

    def last_seq(self, snapshot: Snapshot) -> int:
        """The newest receipt's seq: that of what this commit added, or the nearest before it that added any."""
        for _, commit in self.first_parents(snapshot.tip):
            before = self._parent_folder(commit, snapshot.folder)
            changes = self.trees.compare(before, self._folder_of(commit, snapshot.folder))
            added = [change.path for change in changes if change.new and is_receipt(change.path)]
            if added:
                return max(read_receipt(snapshot, path).seq for path in added)
        return -1

    def _parent_folder(self, commit: Commit, folder: str) -> Folder | None:
        return self._folder_of(self.commit(commit.parents[0]), folder) if commit.parents else None

    def _folder_of(self, commit: Commit, folder: str) -> Folder | None:
        return self.trees.folder(self.trees.open(commit.tree), folder)
