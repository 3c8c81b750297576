"""Git objects, written our way and read from wherever they are: made and not yet written, one by one, in packs."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..errors import IntegrityError, StoreFailure
from .durability import Barrier, Disk
from .loose import LooseFiles
from .packing import PACKED_FROM, packing
from .packs import Packs

# Hex digits of a file's name in its folder; others there are git's temporary ones.
_NAME = 38


def id_of(kind: bytes, body: bytes) -> bytes:
    """An object's id (20 bytes)."""
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(body), body), usedforsecurity=False).digest()


class Batch:
    """Objects that are made and not yet written: id (20 bytes) to kind and body."""

    def __init__(self, objects: Mapping[bytes, tuple[bytes, bytes]] | None = None) -> None:
        self.objects = dict(objects or {})
        # Bytes of all bodies that were written to it.
        self.size = 0

    def write(self, kind: bytes, body: bytes) -> bytes:
        """Take an object in; its id."""
        oid = id_of(kind, body)
        self.objects[oid] = (kind, body)
        self.size += len(body)
        return oid


class Gathering:
    """See `Objects.gathering`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._batch = Batch()

    def __enter__(self) -> Batch:
        self._objects.show(self._batch)
        return self._batch

    def __exit__(self, *error: object) -> None:
        self._objects.hide(self._batch)


class Objects:
    """The objects of one repository. Thread-safe."""

    def __init__(self, repository: Path, disk: Disk) -> None:
        self._repository = repository
        self._folder = os.path.join(repository, "objects")
        self._disk = disk
        self._loose = LooseFiles(self._folder, disk)
        self._packs = Packs(repository)
        self._packed = 0
        # How many objects were asked for, for tests and benchmarks.
        self.reads = 0
        self._from_packs = False
        self._batches: tuple[Batch, ...] = ()
        self._guard = threading.Lock()

    @property
    def written(self) -> int:
        """How many objects this process has written, for tests and benchmarks."""
        return self._loose.written + self._packed

    def read(self, oid: bytes, kind: bytes) -> bytes:
        """The body of object `oid` (20 bytes).

        Raises IntegrityError when it is missing, damaged or of another kind, StoreFailure when it cannot be read.
        """
        self.reads += 1
        try:
            found, body = (self._made(oid) if self._batches else None) or self._written(oid)
        except OSError as error:
            raise StoreFailure(f"cannot read {self._repository}: {error.strerror or error}") from error
        if found != kind:
            raise IntegrityError(f"object {oid.hex()} is a {found.decode('latin-1')}, not a {kind.decode()}")
        return body

    def has(self, oid: bytes) -> bool:
        """Whether the object is there at all, whole or not."""
        return bool(list(self.beginning(oid.hex())))

    def is_packed(self, oid: bytes) -> bool:
        """Whether a pack has the object, whole."""
        return self._packs.has(oid)

    def beginning(self, prefix: str) -> list[bytes]:
        """Objects whose names begin with `prefix` (two hex digits or more), of any kind, in the order of names."""
        try:
            loose = os.listdir(f"{self._folder}/{prefix[:2]}")
        except (FileNotFoundError, NotADirectoryError):
            loose = []
        names = {prefix[:2] + name for name in loose if len(name) == _NAME and name.startswith(prefix[2:])}
        return [bytes.fromhex(name) for name in sorted(names | self._packs.beginning(prefix))]

    def write(self, kind: bytes, body: bytes, barrier: Barrier) -> bytes:
        """Write an object and hand its file to `barrier`; returns its id (20 bytes). Raises OSError."""
        content = _content(kind, body)
        oid = hashlib.sha1(content, usedforsecurity=False).digest()
        barrier.hold(*self._loose.put(oid, content))
        return oid

    def gathering(self) -> Gathering:
        """Objects that are read here as soon as they are made; leaving drops them, written or not."""
        return Gathering(self)

    def show(self, batch: Batch) -> None:
        """Let what is in `batch`, now or later, be read here."""
        with self._guard:
            self._batches = (*self._batches, batch)

    def hide(self, batch: Batch) -> None:
        with self._guard:
            self._batches = tuple(each for each in self._batches if each is not batch)

    @contextmanager
    def putting(self, batch: Batch, barrier: Barrier) -> Iterator[None]:
        """Write what was gathered, in the way that its number asks for. Refs to it are moved in here. Raises OSError.

        `git repack -a -d` beside us removes packs of which it has seen no ref; it finds these kept until we leave.
        """
        if len(batch.objects) >= PACKED_FROM:
            with packing(os.fspath(self._repository), batch.objects, self._disk, barrier):
                self._packed += len(batch.objects)
                yield
            return
        for oid, (kind, body) in batch.objects.items():
            barrier.hold(*self._loose.put(oid, _content(kind, body)))
        yield

    def close(self) -> None:
        """Close what is open for reading; reading opens it again."""
        self._packs.close()

    def _made(self, oid: bytes) -> tuple[bytes, bytes] | None:
        for batch in self._batches:
            if found := batch.objects.get(oid):
                return found
        return None

    def _written(self, oid: bytes) -> tuple[bytes, bytes]:
        # What is read together mostly lies together, and looking in vain for a file takes as long as reading from a
        # pack. The first look is for a file: a live run's are not packed.
        if self._from_packs and (found := self._packs.find(oid)):
            return found
        try:
            data = self._loose.read(oid)
        except zlib.error:
            raise _damaged(oid) from None
        self._from_packs = data is None
        return self._packs.read(oid) if data is None else _split(oid, data)


def _content(kind: bytes, body: bytes) -> bytes:
    return b"%s %d\0%s" % (kind, len(body), body)


def _split(oid: bytes, content: bytes) -> tuple[bytes, bytes]:
    header, zero, body = content.partition(b"\0")
    kind, _, size = header.partition(b" ")
    if not zero or size != b"%d" % len(body):
        raise _damaged(oid)
    return kind, body


def _damaged(oid: bytes) -> IntegrityError:
    return IntegrityError(
        f"object {oid.hex()} is damaged",
        hint="a crash may have left it so; `hermes-workflows doctor` says how to repair it",
    )
