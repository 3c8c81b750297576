"""The file that a ref's next value is written into, and that the ref's old file becomes.

Moving a ref by rename frees the old file's inode, and ext4 avoids recently freed inodes for minutes: it walks over all
of them for each new object, a fifth of the cost of a receipt. So the old file is kept by a second name and holds the
value after next.

    written, and linked as git's lock    renamed to the ref, old file kept    the rename is durable
    next = <new>   ref = <old>           next, ref = <new>   old = <old>      next = <old>   ref = <new>

Only a file that durably is no ref is written into: whoever dies in the middle column leaves a `next` that is the ref
itself, which is let go of, and never reused.
"""

from __future__ import annotations

import contextlib
import os


class NextValue:
    """Of one ref, under our lock for it. `path` is the file's own place, `ref` the ref's."""

    def __init__(self, path: str, ref: str) -> None:
        self.path = path
        self._old = path + ".old"
        self._ref = ref
        self.lock = ref + ".lock"

    def write(self, value: str) -> int:
        """Write the value; the open descriptor, not yet synced. Raises OSError."""
        self._clear()
        data = value.encode() + b"\n"
        descriptor = self._open()
        try:
            os.write(descriptor, data)
            os.ftruncate(descriptor, len(data))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def take_place(self) -> None:
        """Become the ref, from being git's lock. The caller makes it durable, and then calls `recycle`."""
        # No old file: the ref is new or packed, or another user's and not ours to link to.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.link(self._ref, self._old)
        os.rename(self.lock, self._ref)

    def recycle(self) -> None:
        """Keep the old file for the value after this one."""
        try:
            os.rename(self._old, self.path)
        except FileNotFoundError:
            os.unlink(self.path)

    def forget(self) -> None:
        """Remove what is kept for a ref that is gone."""
        for path in (self.path, self._old):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _clear(self) -> None:
        """Undo what a writer that died under our lock left behind."""
        # A file of one name only is neither; one look instead of four at every receipt.
        if _names(self.path) > 1:
            if _same(self.path, self.lock):
                os.unlink(self.lock)
            if _same(self.path, self._ref):
                os.unlink(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._old)

    def _open(self) -> int:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        # Missing, or made by another user who may also run workflows here.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def _names(path: str) -> int:
    try:
        return os.stat(path).st_nlink
    except FileNotFoundError:
        return 0


def _same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except FileNotFoundError:
        return False
