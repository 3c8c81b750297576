"""When something is on disk: never a ref before the objects it names, and both before anything is acknowledged.

On ext4 with an ordered journal that takes one fsync an append, however many objects it has. Writing out the new files
and waiting for it puts their blocks, sizes and names into the running transaction or an earlier one; the ref is renamed
after that, so its transaction is the same or a later one; transactions reach the disk in order and whole; and the
fsync of the ref's folder waits for the last of them. Elsewhere every file and folder is fsynced, in parallel, before
the rename, and the ref's folder after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, Protocol

from ..errors import StoreFailure
from .mounts import MOUNTS, mount_of

Durability = Literal["power", "process"]

# Open files an append may hold; a batch of 1,000 receipts has 8,000 new files, and the usual limit is 1,024.
_MOST_OPEN = 200
_START, _START_AND_WAIT = 2, 7
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class disk_errors:  # noqa: N801  # used like a function; as a generator it would cost each step three times as much
    """A full, read-only or failing disk is one clear error; nothing that was not acknowledged counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreFailure(
                f"cannot write to {self._path}: {error.strerror or error}",
                hint="nothing was acknowledged; free space or make the folder writable, and the run continues",
            ) from error


class Barrier(Protocol):
    """New files of one append, on their way to the disk."""

    def hold(self, descriptor: int, folder: str) -> None:
        """Take over an open, written file that lies in `folder`."""

    def settle(self) -> None:
        """After this, nothing that is done later can reach the disk before what is held."""

    def close(self) -> None:
        """Let go of what was held and never settled: the append has failed."""


class Disk:
    """How this file system is told to keep something; `counts` says how often it was, for tests and benchmarks."""

    def __init__(self, make_barrier: Callable[[Disk], Barrier], *, syncs: bool) -> None:
        self._make_barrier = make_barrier
        self._syncs = syncs
        # Names reach the disk in the order in which they change, and after what is written out.
        self._in_order = make_barrier is _WriteOut
        self.counts: Counter[str] = Counter()

    def barrier(self) -> Barrier:
        return self._make_barrier(self)

    def sync_file(self, descriptor: int) -> None:
        if self._syncs:
            self.counts["fsyncs"] += 1
            # On macOS fsync leaves the data in the drive's cache.
            if _FULL_FSYNC is not None:  # pragma: no cover  # macOS only
                fcntl.fcntl(descriptor, _FULL_FSYNC)
            else:
                os.fsync(descriptor)

    def put_before_names(self, descriptor: int) -> None:
        """Have a new file's content on the disk before any name that is given from now on. Raises OSError."""
        if self._in_order:
            _write_out(descriptor, _START_AND_WAIT)
            self.counts["writeouts"] += 1
        else:
            self.sync_file(descriptor)

    def sync_content(self, descriptor: int) -> None:
        """The same of a file whose times nobody asks for: what needs no entry in the journal gets none."""
        if _FULL_FSYNC is not None:  # pragma: no cover  # macOS only
            self.sync_file(descriptor)
        elif self._syncs:
            self.counts["fsyncs"] += 1
            os.fdatasync(descriptor)

    def start_content(self, descriptor: int, position: int, size: int) -> None:
        """Begin to write out `size` bytes, so that `sync_content` has less to wait for.

        It promises nothing: what the disk refuses, the sync tells.
        """
        if self._syncs and _sync_file_range is not None:
            _sync_file_range(descriptor, position, size, _START)

    def sync_folder(self, path: str | Path) -> None:
        if self._syncs:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self.sync_file(descriptor)
            finally:
                os.close(descriptor)


def disk_for(path: Path, durability: Durability) -> Disk:
    """The disk that `path` lies on.

    `power` survives a power cut; `process` survives only the end of the process, and is for tests.
    """
    if durability == "process":
        return Disk(_Nothing, syncs=False)
    if has_ordered_journal(path) and _sync_file_range is not None:
        return Disk(_WriteOut, syncs=True)
    return Disk(_FsyncEach, syncs=True)


def has_ordered_journal(path: Path, mounts: Path = MOUNTS) -> bool:
    """Whether `path` lies on ext4 whose journal waits for data (the default; `data=writeback` does not)."""
    found = mount_of(path, mounts)
    if found is None or not found[1]:
        return False
    kind, options = found
    return kind == "ext4" and not {"data=writeback", "nobarrier", "barrier=0"} & options


class _Nothing:
    def __init__(self, disk: Disk) -> None:
        pass

    def hold(self, descriptor: int, folder: str) -> None:
        os.close(descriptor)

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class _WriteOut:
    """ext4: write the blocks of every file, so that its journal has all that a later rename depends on."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: list[int] = []

    def hold(self, descriptor: int, folder: str) -> None:
        self._open.append(descriptor)
        # The disk works while the next object is made; waiting comes later, for all.
        _write_out(descriptor, _START)
        if len(self._open) >= _MOST_OPEN:
            self.settle()

    def settle(self) -> None:
        descriptors, self._open = self._open, []
        try:
            # Only the waiting form is sure to skip no page.
            for descriptor in descriptors:
                _write_out(descriptor, _START_AND_WAIT)
            self._disk.counts["writeouts"] += len(descriptors)
        finally:
            _close(descriptors)

    def close(self) -> None:
        _close(self._open)


class _FsyncEach:
    """Any other file system: data by fsync of the file, names by fsync of the folder and of the folder above."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: list[int] = []
        self._folders: set[str] = set()

    def hold(self, descriptor: int, folder: str) -> None:
        self._open.append(descriptor)
        self._folders.update((folder, os.path.dirname(folder)))
        if len(self._open) >= _MOST_OPEN:
            self._sync_files()

    def settle(self) -> None:
        self._sync_files()
        folders, self._folders = self._folders, set()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._sync_folder, folders))

    def close(self) -> None:
        _close(self._open)

    def _sync_folder(self, path: str) -> None:
        # `git gc` removes a folder of objects when it has packed the last one that lay there.
        with contextlib.suppress(FileNotFoundError):
            self._disk.sync_folder(path)

    def _sync_files(self) -> None:
        descriptors, self._open = self._open, []
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(self._disk.sync_file, descriptors))
        finally:
            _close(descriptors)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _find_sync_file_range() -> Callable[[int, int, int, int], int] | None:
    if sys.platform != "linux":
        return None  # pragma: no cover  # Linux alone has the call
    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is None:
        return None  # pragma: no cover  # a C library without it
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    function.restype = ctypes.c_int
    call: Callable[[int, int, int, int], int] = function
    return call if _is_allowed(call) else None


def _is_allowed(call: Callable[[int, int, int, int], int]) -> bool:
    """False in a sandbox that forbids it, and on WSL 1, where only the C library has it."""
    return call(-1, 0, 0, _START) == 0 or ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)


_sync_file_range = _find_sync_file_range()


def _write_out(descriptor: int, flags: int) -> None:
    assert _sync_file_range is not None
    if _sync_file_range(descriptor, 0, 0, flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
