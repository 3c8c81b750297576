"""Loose objects: one file each, which gets its final name when it is whole, whatever kills its writer.

It is written without a name and then linked (Linux), which costs no rename in a full folder, no temporary name to
sweep and no lock that a dead writer leaves for ever. A power cut may still leave a short one under the right name, so
an object that exists already is compared, and replaced when it is not whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import struct
import zlib

from . import peek
from .durability import Disk
from .largest import LARGEST, too_large

# A stored deflate block costs no zlib (0.15 ms a receipt). It takes the same disk block as a compressed one up to
# 4,000 bytes, and one or two more up to here, which is where a folder of a hundred receipts still is.
_STORED_BELOW = 16_000

# With the header that git puts before a body; deflated, what cannot be packed grows by a little.
_LARGEST_CONTENT = LARGEST + 32
_LARGEST_FILE = LARGEST + (LARGEST >> 8)

# Each is lost only to git tidying up at that very moment.
_ATTEMPTS = 20


class LooseFiles:
    """Below the folder `objects` of one repository. Thread-safe."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._unnamed = hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")
        self.written = 0

    def read(self, oid: bytes) -> bytes | None:
        """The inflated file of object `oid` (20 bytes), None when there is none.

        Raises zlib.error, OSError, TooLarge.
        """
        name = oid.hex()
        try:
            data = peek.whole(f"{self._folder}/{name[:2]}/{name[2:]}", _LARGEST_FILE)
        except FileNotFoundError:
            return None
        inflater = zlib.decompressobj()
        content = inflater.decompress(data, _LARGEST_CONTENT)
        if len(data) >= _LARGEST_FILE or len(content) == _LARGEST_CONTENT:
            raise too_large(f"object {name}")
        if not inflater.eof:
            raise zlib.error("incomplete")
        return content

    def put(self, oid: bytes, content: bytes) -> tuple[int, str]:
        """Have a whole file of `content`, which begins with its header, under its name: open, and in which folder.

        Whole is not yet durable. Raises OSError.
        """
        name = oid.hex()
        folder = f"{self._folder}/{name[:2]}"
        return self._place(folder, f"{folder}/{name[2:]}", content), folder

    def _place(self, folder: str, path: str, content: bytes) -> int:
        data = deflate(content)
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
            write_all(descriptor, data)
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


def deflate(content: bytes) -> bytes:
    """What zlib inflates to `content`."""
    size = len(content)
    if size >= _STORED_BELOW:
        return zlib.compress(content, 1)
    head = b"\x78\x01\x01" + struct.pack("<HH", size, size ^ 0xFFFF)
    return head + content + struct.pack(">I", zlib.adler32(content))


def write_all(descriptor: int, data: bytes | bytearray) -> None:
    """Write all of `data`, in as many pieces as the system takes it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
