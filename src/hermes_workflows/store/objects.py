"""Loose git objects, written our way and read from wherever they are.

An object gets its final name when it is whole, whatever kills its writer: it is written without a name and then
linked (Linux), which costs no rename in a full folder, no temporary name to sweep and no lock that a dead writer
leaves for ever. A power cut may still leave a short one under the right name, so an object that exists already is
compared, and replaced when it is not whole.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import struct
import zlib
from pathlib import Path

from ..errors import IntegrityError, StoreFailure
from .durability import Barrier, Disk
from .packs import Packs

# A stored deflate block costs no zlib (0.15 ms a receipt). It takes the same disk block as a compressed one up to
# 4,000 bytes, and one or two more up to here, which is where a folder of a hundred receipts still is.
_STORED_BELOW = 16_000

# Hex digits of a file's name in its folder; others there are git's temporary ones.
_NAME = 38

# Each is lost only to git tidying up at that very moment.
_ATTEMPTS = 20


class Objects:
    """The objects of one repository. Thread-safe."""

    def __init__(self, repository: Path, disk: Disk) -> None:
        self._repository = repository
        self._folder = os.path.join(repository, "objects")
        self._disk = disk
        self._packs = Packs(repository)
        self._unnamed = hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")
        self.written = 0

    def read(self, oid: bytes, kind: bytes) -> bytes:
        """The body of object `oid` (20 bytes).

        Raises IntegrityError when it is missing, damaged or of another kind, StoreFailure when it cannot be read.
        """
        try:
            data = self._loose(oid)
            found, body = self._packs.read(oid) if data is None else _split(oid, data)
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
        content = b"%s %d\0%s" % (kind, len(body), body)
        oid = hashlib.sha1(content, usedforsecurity=False).digest()
        name = oid.hex()
        folder = f"{self._folder}/{name[:2]}"
        descriptor = self._place(folder, f"{folder}/{name[2:]}", content)
        barrier.hold(descriptor, folder)
        return oid

    def close(self) -> None:
        """Close what is open for reading; reading opens it again."""
        self._packs.close()

    def _place(self, folder: str, path: str, content: bytes) -> int:
        data = _deflate(content)
        for _ in range(_ATTEMPTS):
            try:
                return self._create(folder, path, data)
            except FileExistsError:
                # Packed and removed by git while we look at it: written again.
                with contextlib.suppress(FileNotFoundError):
                    return self._reuse(path, content, data)
            except OSError as error:
                # Also when it was there a moment ago: git removes a folder of objects that it has emptied, and ext4
                # says EPERM for a new file in a folder that is just being removed.
                if error.errno not in (errno.ENOENT, errno.EPERM):
                    raise
                os.makedirs(folder, exist_ok=True)
        return self._create(folder, path, data)

    def _create(self, folder: str, path: str, data: bytes) -> int:
        """Write a whole file under a new name; its open descriptor. Raises FileExistsError."""
        descriptor, temporary = self._open_new(folder)
        try:
            _write_all(descriptor, data)
            if temporary:
                os.link(temporary, path)
            else:
                # Any descriptor will do as the folder of an absolute path; with one, the link of /proc is followed.
                os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
        except OSError:
            os.close(descriptor)
            raise
        finally:
            if temporary:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
        self.written += 1
        return descriptor

    def _open_new(self, folder: str) -> tuple[int, str]:
        """An open file and its name, which is empty where the system knows files without one."""
        if self._unnamed:
            try:
                return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o444), ""
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                    raise
                self._unnamed = False
        # The name that git gives its own: `git gc` sweeps what a killed writer leaves.
        temporary = f"{folder}/tmp_obj_{secrets.token_hex(8)}"
        return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444), temporary

    def _reuse(self, path: str, content: bytes, data: bytes) -> int:
        """An object of this name exists: keep it if it is whole, else put a whole one in its place.

        Whole is not yet durable (its writer may have died before its barrier), so its file is handed on as well.
        """
        with open(path, "rb") as file:
            try:
                whole = zlib.decompress(file.read()) == content
            except zlib.error:
                whole = False
            if whole:
                # `git prune` goes by this time; a reused object must not look two weeks old.
                with contextlib.suppress(PermissionError):
                    os.utime(file.fileno())
                return os.dup(file.fileno())
        return self._replace(path, data)

    def _replace(self, path: str, data: bytes) -> int:
        temporary = f"{path[: path.rindex('/')]}/tmp_obj_{secrets.token_hex(8)}"
        descriptor = self._create(os.path.dirname(path), temporary, data)
        # Another writer may hold the damaged file in its barrier and move its ref before we do:
        # the new file is durable before it takes the name.
        self._disk.sync_file(descriptor)
        os.rename(temporary, path)
        return descriptor

    def _loose(self, oid: bytes) -> bytes | None:
        name = oid.hex()
        try:
            with open(f"{self._folder}/{name[:2]}/{name[2:]}", "rb") as file:
                return zlib.decompress(file.read())
        except FileNotFoundError:
            return None
        except zlib.error:
            raise _damaged(oid) from None


def _deflate(content: bytes) -> bytes:
    size = len(content)
    if size >= _STORED_BELOW:
        return zlib.compress(content, 1)
    head = b"\x78\x01\x01" + struct.pack("<HH", size, size ^ 0xFFFF)
    return head + content + struct.pack(">I", zlib.adler32(content))


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


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
