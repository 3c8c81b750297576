"""Git trees in memory: read lazily, changed by copying the path, never walked whole to add one receipt.

A `Folder` never changes. Its entries are kept as the bytes that git stores, already in git's order, so making the
next version of a folder is one insertion and one join (dulwich's own Tree was most of the cost of a receipt).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from ..errors import IntegrityError, InvalidInput

FILE = 0o100644
FOLDER = 0o040000

# How many sub-folders a folder remembers: enough for what runs in parallel, and flat memory over 10,000 steps.
_REMEMBERED = 16
_RECENT = 64
# Of a path of ours: git itself takes 4,096 bytes. What others made may go down without end.
_DEEPEST = 300
# Files and folders of one run, or between two commits; a run of a hundred thousand calls has a third of that.
_MOST = 1_000_000

_ENTRY = re.compile(rb"(([0-7]+) ([^\0]+)\0[\s\S]{20})")
_ONE_FOLDER = re.compile(rb"40000 ([^\0/]+)\0([\s\S]{20})")
# Stands for the id of a folder that is in memory only.
_UNWRITTEN = bytes(20)
_FOLDER_MODES = (b"40000", b"040000")
_OUR_FILE = b"100644 "

Write = Callable[[bytes, bytes], bytes]


class Item(NamedTuple):
    mode: int
    oid: bytes

    @property
    def is_folder(self) -> bool:
        return self.mode == FOLDER


class Change(NamedTuple):
    """One difference between two trees: `old` is None for what was added, `new` for what is gone."""

    path: str
    old: Item | None
    new: Item | None


class Folder:
    """One tree object: `keys` are what git sorts by (a folder's name with its slash), `chunks` what it stores."""

    __slots__ = ("chunks", "keys", "oid", "opened")

    def __init__(self, keys: list[bytes], chunks: list[bytes], oid: bytes = b"") -> None:
        self.keys = keys
        self.chunks = chunks
        self.oid = oid
        self.opened: dict[str, Folder] = {}

    @classmethod
    def parse(cls, data: bytes, oid: bytes) -> Folder:
        """Raises IntegrityError for bytes that are no tree."""
        entries = _ENTRY.findall(data)
        keys = [name + b"/" if mode in _FOLDER_MODES else name for _, mode, name in entries]
        chunks = [chunk for chunk, _, _ in entries]
        # In another order, or with a name twice, what is listed would not be found; a path is no name.
        names = {name for _, _, name in entries if b"/" not in name}
        if sum(map(len, chunks)) != len(data) or keys != sorted(keys) or len(names) != len(keys):
            raise IntegrityError(f"tree {oid.hex()} is damaged")
        return cls(keys, chunks, oid)

    def item(self, name: str) -> Item | None:
        encoded = _encode(name)
        for key in (encoded, encoded + b"/"):
            position = bisect_left(self.keys, key)
            if position < len(self.keys) and self.keys[position] == key:
                return _item(self.chunks[position])
        return None

    def items(self) -> Iterator[tuple[str, Item]]:
        return map(_entry, self.chunks)

    def names(self) -> Iterator[str]:
        """Of files and folders; no name has a slash, and the key of a folder ends with one."""
        return (_decode(key.rstrip(b"/")) for key in self.keys)

    def with_item(self, name: str, item: Item, child: Folder | None = None) -> Folder:
        """The folder with one entry added or replaced; its id is not known yet. `child` is that entry in memory."""
        encoded = _encode(name)
        key = encoded + b"/" if item.mode == FOLDER else encoded
        chunk = b"%o %s\0%s" % (item.mode, encoded, item.oid)
        keys, chunks = self.keys, self.chunks.copy()
        position = bisect_left(keys, key)
        if position < len(keys) and keys[position] == key:
            chunks[position] = chunk
        else:
            keys = keys.copy()
            keys.insert(position, key)
            chunks.insert(position, chunk)
        changed = Folder(keys, chunks)
        changed.opened = self._opened_but(name, child)
        return changed

    def remember(self, name: str, child: Folder) -> None:
        # A new dict each time: several threads may read one folder.
        self.opened = self._opened_but(name, child)

    def _opened_but(self, name: str, child: Folder | None) -> dict[str, Folder]:
        opened = self.opened.copy()
        opened.pop(name, None)
        if child is not None:
            if len(opened) >= _REMEMBERED:
                del opened[next(iter(opened))]
            opened[name] = child
        return opened

    def serialise(self) -> bytes:
        return b"".join(self.chunks)


class Trees:
    """What can be done with trees, given a way to read one by its id (20 bytes)."""

    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        self._read = read
        self._recent: dict[bytes, Folder] = {}
        self._only: dict[bytes, list[tuple[str, Item]]] = {}

    def open(self, oid: bytes) -> Folder:
        """The folder with this id. Raises what reading raises, and IntegrityError."""
        if found := self._recent.get(oid):
            return found
        opened = Folder.parse(self._read(oid), oid)
        # Neighbouring commits share nearly all of their trees; the next comparison asks for the same ones.
        if len(self._recent) >= _RECENT:
            self._recent = {}
        self._recent[oid] = opened
        return opened

    def find(self, folder: Folder, path: str) -> Item | None:
        *parents, name = path.split("/")
        for parent in parents:
            child = self._child(folder, parent)
            if child is None:
                return None
            folder = child
        return folder.item(name)

    def folder(self, root: Folder, path: str) -> Folder | None:
        """The folder at `path` below `root`, or None."""
        current: Folder | None = root
        for name in path.split("/"):
            current = self._child(current, name) if current else None
        return current

    def only_folder(self, oid: bytes) -> tuple[str, Item] | None:
        """The sub-folder of a folder that has one, and no other. Raises what `open` raises."""
        if (known := self._only.get(oid)) is None:
            if len(self._only) >= _RECENT:
                self._only = {}
            known = self._only[oid] = self._only_in(self._read(oid), oid)
        return known[0] if len(known) == 1 else None

    def _only_in(self, data: bytes, oid: bytes) -> list[tuple[str, Item]]:
        # Nothing else lies on the way to a run, mostly, and whoever reads all runs goes it for each.
        if found := _ONE_FOLDER.fullmatch(data):
            return [(_decode(found[1]), Item(FOLDER, found[2]))]
        # Of several, two are as many as all.
        return [(name, item) for name, item in Folder.parse(data, oid).items() if item.is_folder][:2]

    def walk(self, folder: Folder, prefix: str = "", steps: _Steps | None = None) -> Iterator[tuple[str, Item]]:
        """Every file below `folder` in git's order. Raises IntegrityError for what no run has: so deep, so many.

        `steps` are for its own use, as below.
        """
        steps = steps or _Steps()
        steps.enter(prefix, len(folder.chunks))
        for name, item in map(_entry, folder.chunks):
            if item.mode == FOLDER:
                yield from self.walk(self.open(item.oid), f"{prefix}{name}/", steps)
            else:
                yield prefix + name, item

    def compare(
        self, old: Folder | None, new: Folder | None, prefix: str = "", steps: _Steps | None = None
    ) -> Iterator[Change]:
        """The files that differ; equal sub-folders are not opened, so the cost follows the difference."""
        steps = steps or _Steps()
        # As sets of bytes first: of a hundred entries one differs, and only that one is worth taking apart.
        before, after = (frozenset(folder.chunks if folder else ()) for folder in (old, new))
        then = dict(map(_entry, before - after))
        now = dict(map(_entry, after - before))
        steps.enter(prefix, len(then) + len(now))
        for name in sorted(then.keys() | now.keys()):
            yield from self._compare_item(prefix + name, then.get(name), now.get(name), steps)

    def _compare_item(self, path: str, old: Item | None, new: Item | None, steps: _Steps) -> Iterator[Change]:
        if not any(item and item.is_folder for item in (old, new)):
            yield Change(path, old, new)
            return
        if old and not old.is_folder:
            yield Change(path, old, None)
        folders = [self.open(item.oid) if item and item.is_folder else None for item in (old, new)]
        yield from self.compare(folders[0], folders[1], path + "/", steps)
        if new and not new.is_folder:
            yield Change(path, None, new)

    def pick(
        self, folder: Folder, wanted: Collection[str], write: Write, prefix: str = "", steps: _Steps | None = None
    ) -> Folder | None:
        """The folder with only the wanted files, None when there are none; changed folders below it are written.

        What is wanted whole is the folder that exists, so the cost follows what is left out.
        """
        steps = steps or _Steps()
        steps.enter(prefix, len(folder.chunks))
        keys, chunks = [], []
        for key, chunk in zip(folder.keys, folder.chunks, strict=True):
            name, item = _entry(chunk)
            if item.is_folder:
                below = self.pick(self.open(item.oid), wanted, write, f"{prefix}{name}/", steps)
                chunk = chunk_of(name, Item(FOLDER, below.oid or write(b"tree", below.serialise()))) if below else b""
            elif prefix + name not in wanted:
                chunk = b""
            if chunk:
                keys.append(key)
                chunks.append(chunk)
        return Folder(keys, chunks, folder.oid if chunks == folder.chunks else b"") if chunks else None

    def graft(self, folder: Folder, path: str, child: Folder) -> Folder:
        """`folder` with `child` at `path`, in memory: the next `put` writes what lies on the way to what it changes."""
        name, slash, rest = path.partition("/")
        below = self.graft(self._child(folder, name) or Folder([], []), rest, child) if slash else child
        return folder.with_item(name, Item(FOLDER, below.oid or _UNWRITTEN), below)

    def put(self, folder: Folder, changes: Mapping[str, Item], write: Write) -> Folder:
        """The tree with `changes` (path to item) put in; each folder on the way is written once.

        `write` takes a kind and a body and returns the object's id.
        Raises InvalidInput when a path leads through something that is a file.
        """
        inner: dict[str, dict[str, Item]] = {}
        for path, item in changes.items():
            name, slash, rest = path.partition("/")
            if slash:
                inner.setdefault(name, {})[rest] = item
            else:
                folder = folder.with_item(name, item)
        for name, below in inner.items():
            child = folder.opened.get(name) or self._child(folder, name)
            if child is None and folder.item(name) is not None:
                raise InvalidInput(f"{name} is a file, so nothing can lie below it")
            child = self.put(child or Folder([], []), below, write)
            folder = folder.with_item(name, Item(FOLDER, child.oid), child)
        folder.oid = write(b"tree", folder.serialise())
        return folder

    def _child(self, folder: Folder, name: str) -> Folder | None:
        if child := folder.opened.get(name):
            return child
        item = folder.item(name)
        if item is None or not item.is_folder:
            return None
        child = self.open(item.oid)
        folder.remember(name, child)
        return child


class _Steps:
    """What one walk has met. Ten trees that each name the next one ten times are a thousand million folders."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST

    def enter(self, prefix: str, entries: int) -> None:
        """Raises IntegrityError when there were too many of them, or it is too deep here."""
        self.left -= 1 + entries
        if self.left < 0:
            raise IntegrityError(f"more than {_MOST:,} files and folders")
        if prefix.count("/") > _DEEPEST:
            raise IntegrityError(f"folders in folders in folders: {prefix[:80]}…")


def chunk_of(name: str, item: Item) -> bytes:
    """As it stands in a tree."""
    return b"%o %s\0%s" % (item.mode, _encode(name), item.oid)


def _item(chunk: bytes) -> Item:
    if chunk.startswith(_OUR_FILE):
        return Item(FILE, chunk[-20:])
    return Item(int(chunk[: chunk.index(b" ")], 8), chunk[-20:])


def _entry(chunk: bytes) -> tuple[str, Item]:
    # Whoever walks through a run does this once a receipt.
    if chunk.startswith(_OUR_FILE):
        return chunk[len(_OUR_FILE) : -21].decode("utf-8", "surrogateescape"), Item(FILE, chunk[-20:])
    return _decode(chunk[chunk.index(b" ") + 1 : -21]), _item(chunk)


# Names in foreign trees are bytes; ours are ASCII.
def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
