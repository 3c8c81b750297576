"""One write-ahead file: the newest receipts of one run in a burst, durable, and not yet in git.

    hermes-ahead 2 <run id>\\n
    ( length of what follows the hash | SHA-1 of the hash before it and of what follows | part+ )*
    part:  length | bytes         a commit but for its tree, then path and content of each file that it adds

It lies in `hermes/ahead`, named by the hash of the run's id, from the first receipt of a burst until git has them all.
Lengths have four bytes. The hash before the first one is that of the first line.
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
from collections.abc import Iterator

from ..errors import NewerSchema
from . import peek
from .adding import Addition
from .flocks import let_go, open_to_lock
from .links import names_of

WANTED, REVOKED = ".wanted", ".revoked"
"""Beside a file: somebody waits for it; somebody has taken it from a writer that lives."""

_HEADER = re.compile(rb"hermes-ahead ([0-9]+) ([A-Za-z0-9._-]+)\n")
_VERSION = b"2"
_HASH = 20
_HEADER_SIZE = 128
LARGEST = 64 << 20
"""Bytes of a record: more than a receipt with its files may have (a batch of many goes into git)."""
_LEAST_ROOM, _MOST_ROOM = 16 << 10, 512 << 10
_LENGTH = struct.Struct(">L")


def path_of(repository: str, run_id: str) -> str:
    """Where a run's file lies while there is one."""
    return f"{repository}/{peek.AHEAD}/{_sha1(run_id.encode()).hex()}"


class AheadFile:
    """An open and locked file. Not thread-safe."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._end = self._room = os.fstat(descriptor).st_size
        self._hash = b""
        self.path = path
        self._revoked = path + REVOKED

    @classmethod
    def make(cls, repository: str, run_id: str) -> AheadFile:
        """An empty one, locked before anybody can see it. The caller holds the run's lock, and none exists."""
        path = path_of(repository, run_id)
        temporary = f"{repository}/hermes/pending/ahead-{secrets.token_hex(8)}"
        descriptor = open_to_lock(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            made = cls(descriptor, path)
            header = b"hermes-ahead %s %s\n" % (_VERSION, run_id.encode())
            made._write(header)
            made._hash = _sha1(header)
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

    def append(self, addition: Addition) -> None:
        """Write a record; the caller syncs, and takes it back when that fails. Raises OSError."""
        parts = [addition.words]
        for path, data in addition.files.items():
            parts += (path.encode(), data)
        payload = b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])
        digest = _sha1(self._hash + payload)
        self._write(_LENGTH.pack(len(payload)) + digest + payload)
        self._hash = digest

    @property
    def mark(self) -> tuple[int, bytes]:
        """Where the next record begins, in bytes, and the hash that it goes on from."""
        return self._end, self._hash

    def take_back(self, mark: tuple[int, bytes]) -> None:
        """Let the next record begin at `mark` again: what stands there was not acknowledged, and shall not be found."""
        self._end, self._hash = mark
        self._room = self._end
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._end)

    def records(self) -> tuple[str, list[Addition]]:
        """The run's id and what is recorded, up to the first record that is not whole. "" for no file of ours.

        Raises NewerSchema for one that another version of ours has written: what it holds must not be lost.
        """
        header = _HEADER.match(os.pread(self._descriptor, _HEADER_SIZE, 0))
        if header is None:
            return "", []
        if header[1] != _VERSION:
            raise NewerSchema(
                f"{self.path} was written by another version of this program",
                hint="run that version once more, so that it puts into git what it has recorded",
            )
        return header[2].decode(), list(_records(self._descriptor, header.end(), _sha1(header[0])))

    def is_ours(self) -> bool:
        """Whether what was recorded until now counts: nobody has taken the file away by force."""
        # Its one name is the one that we gave it: whoever took it would have removed that.
        return names_of(self._descriptor) > 0 and not os.access(self._revoked, os.F_OK)

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


def _records(descriptor: int, position: int, newest: bytes) -> Iterator[Addition]:
    size = os.fstat(descriptor).st_size
    while True:
        start = position + _LENGTH.size + _HASH
        head = os.pread(descriptor, _LENGTH.size + _HASH, position)
        if len(head) < _LENGTH.size + _HASH:
            return
        position = start + _LENGTH.unpack_from(head)[0]
        # A length that nobody has written may be any number.
        if position > min(size, start + LARGEST):
            return
        payload = os.pread(descriptor, position - start, start)
        # What follows a record that failed half-way may be whole and of an earlier try: it goes on from nothing.
        newest = _sha1(newest + payload)
        if newest != head[_LENGTH.size :]:
            return
        parts = _parts(payload)
        # An odd number: the commit, then pairs. Nothing else is of our making.
        if len(parts) % 2 == 0:
            return
        paths = [path.decode("utf-8", "surrogateescape") for path in parts[1::2]]
        yield Addition(parts[0], dict(zip(paths, parts[2::2], strict=True)))


def _parts(payload: bytes) -> list[bytes]:
    """None for bytes that are no row of parts."""
    parts: list[bytes] = []
    position = 0
    while position < len(payload):
        start = position + _LENGTH.size
        if start > len(payload):
            return []
        position = start + _LENGTH.unpack_from(payload, position)[0]
        parts.append(payload[start:position])
    return parts if position == len(payload) else []


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
