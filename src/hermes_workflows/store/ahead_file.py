"""One write-ahead file: the newest receipts of one run in a burst, durable, and not yet in git.

    hermes-ahead 1 <run id>\\n
    ( length of what follows the hash, 4 bytes | its SHA-1 | old commit | new commit | ( kind | length | body )* )*

It lies in `hermes/ahead`, named by the hash of the run's id, from the first receipt of a burst until git has them all.
What follows the records are zeros: room for the next ones, since a sync of what is written over something takes half
as long as one that makes a file longer.
Its writer holds a lock on it for as long. A file that can be locked was left by a writer that died, and whoever meets
it puts what it holds into git. A record that a crash has cut short ends the file: it was never acknowledged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from . import peek
from .flocks import let_go, open_to_lock

WANTED, REVOKED = ".wanted", ".revoked"
"""Beside a file: somebody waits for it; somebody has taken it from a writer that lives."""

_HEADER = re.compile(rb"hermes-ahead 1 ([A-Za-z0-9._-]+)\n")
_KINDS = {b"b": b"blob", b"t": b"tree", b"c": b"commit"}
_ID = 20
_HEADER_SIZE = 128
LARGEST = 64 << 20
"""Bytes of a record: more than a receipt with its files may have (a batch of many goes into git)."""
_LEAST_ROOM, _MOST_ROOM = 16 << 10, 512 << 10
# A run's first commit has no commit before it; then there is no burst yet, so this only guards the format.
_LENGTH = struct.Struct(">L")


@dataclass(frozen=True)
class Record:
    """One step of a run's ref, ids of 20 bytes, and the objects that it brought: id's kind and body."""

    old: bytes
    new: bytes
    objects: tuple[tuple[bytes, bytes], ...]


def path_of(repository: str, run_id: str) -> str:
    """Where a run's file lies while there is one."""
    return f"{repository}/{peek.AHEAD}/{hashlib.sha1(run_id.encode(), usedforsecurity=False).hexdigest()}"


class AheadFile:
    """An open and locked file. Not thread-safe."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._end = self._room = os.fstat(descriptor).st_size
        self.path = path

    @classmethod
    def make(cls, repository: str, run_id: str) -> AheadFile:
        """An empty one, locked before anybody can see it. The caller holds the run's lock, and none exists."""
        path = path_of(repository, run_id)
        temporary = f"{repository}/hermes/pending/ahead-{secrets.token_hex(8)}"
        descriptor = open_to_lock(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            made = cls(descriptor, path)
            made._write(b"hermes-ahead 1 %s\n" % run_id.encode())
            # Only whoever holds the run's lock revokes, and we do: a mark that is here is of a burst that is gone.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + REVOKED)
            # A link, unlike a rename, takes nobody's place.
            os.link(temporary, path)
        except OSError:
            let_go(descriptor)
            raise
        finally:
            os.unlink(temporary)
        return made

    @classmethod
    def take(cls, path: str, *, by_force: bool = False) -> AheadFile | None:
        """The file that a dead writer left, now locked by us; None when there is none any more.

        `by_force` takes it from a living writer as well, whose records count no more from now on.
        Raises BlockingIOError while its writer lives, or somebody else puts it into git.
        """
        try:
            # For reading: it may be another user's, who has made it with the usual rights.
            descriptor = open_to_lock(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            if by_force:
                # Before anything is read: what is acknowledged after this is in no file that anybody reads.
                os.close(os.open(path + REVOKED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Locked after its writer had removed it: another one may lie there by now.
            if _is_at(descriptor, path):
                return cls(descriptor, path)
        except BaseException:
            let_go(descriptor)
            raise
        let_go(descriptor)
        return None

    @classmethod
    def is_held(cls, path: str) -> bool:
        """Whether a living writer, or somebody who puts it into git, has the file at `path`."""
        try:
            descriptor = open_to_lock(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            let_go(descriptor)
        return False

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def append(self, old: bytes, new: bytes, objects: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Write a record; the caller syncs, and takes it back when that fails. Raises OSError."""
        parts = [old, new]
        for kind, body in objects.values():
            parts += (kind[:1], _LENGTH.pack(len(body)), body)
        payload = b"".join(parts)
        self._write(_LENGTH.pack(len(payload)) + hashlib.sha1(payload, usedforsecurity=False).digest() + payload)

    def take_back(self, size: int) -> None:
        """Let the next record begin at `size` again: what stands there was not acknowledged, and shall not be found."""
        self._end = self._room = size
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, size)

    def records(self) -> tuple[str, list[Record]]:
        """The run's id and what is recorded, up to the first record that is not whole. "" for no file of ours."""
        header = _HEADER.match(os.pread(self._descriptor, _HEADER_SIZE, 0))
        if header is None:
            return "", []
        return header[1].decode(), list(_records(self._descriptor, header.end()))

    def is_ours(self) -> bool:
        """Whether what was recorded until now counts: nobody has taken the file away by force."""
        # Its one name is the one that we gave it: whoever took it would have removed that.
        return os.fstat(self._descriptor).st_nlink > 0 and not os.access(self.path + REVOKED, os.F_OK)

    def remove(self) -> None:
        """Git has everything: the name goes, with the wish for it. The caller closes, which lets go of the lock.

        Not the mark of one that was revoked: by then another burst may have begun, and be marked. `make` removes it.
        """
        if _is_at(self._descriptor, self.path):
            for path in (self.path, self.path + WANTED):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def close(self) -> None:
        """Let go of the file and its lock; it stays for whoever comes next. Once: its number may be another's then."""
        descriptor, self._descriptor = self._descriptor, -1
        let_go(descriptor)

    @property
    def size(self) -> int:
        """Bytes of what is recorded."""
        return self._end

    def _write(self, data: bytes) -> None:
        self._pwrite(data, self._end)
        self._end += len(data)
        if self._end > self._room:
            room = min(max(self._end, _LEAST_ROOM), _MOST_ROOM)
            self._room = self._end
            # Where there is no room for more, there was for this.
            with contextlib.suppress(OSError):
                self._pwrite(bytes(room), self._end)
                self._room += room

    def _pwrite(self, data: bytes, position: int) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._descriptor, view, position)
            position += done
            view = view[done:]


def _records(descriptor: int, position: int) -> Iterator[Record]:
    newest = b""
    size = os.fstat(descriptor).st_size
    while True:
        start = position + _LENGTH.size + _ID
        head = os.pread(descriptor, _LENGTH.size + _ID, position)
        if len(head) < _LENGTH.size + _ID:
            return
        position = start + _LENGTH.unpack_from(head)[0]
        # A length that nobody has written may be any number.
        if position > min(size, start + LARGEST):
            return
        payload = os.pread(descriptor, position - start, start)
        if hashlib.sha1(payload, usedforsecurity=False).digest() != head[_LENGTH.size :]:
            return
        record = _record(payload)
        # What follows a record that failed half-way may be whole and of an earlier try: it goes on from nothing.
        if record is None or newest not in (b"", record.old):
            return
        newest = record.new
        yield record


def _record(payload: bytes) -> Record | None:
    objects = []
    position = 2 * _ID
    while position < len(payload):
        kind = _KINDS.get(payload[position : position + 1])
        start = position + 1 + _LENGTH.size
        if kind is None or start > len(payload):
            return None
        position = start + _LENGTH.unpack_from(payload, position + 1)[0]
        objects.append((kind, payload[start:position]))
    return Record(payload[:_ID], payload[_ID : 2 * _ID], tuple(objects)) if position == len(payload) else None


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
