"""The file that a ref's next value is written into, and that the ref's old file becomes.

Moving a ref by rename frees the old file's inode, and ext4 avoids recently freed inodes for minutes: it walks over all
of them for each new object, a fifth of the cost of a receipt. So the old file is kept as the ref's spare, which the
value after next is written into.

    claimed and written, git's lock    renamed to the ref, old one kept     the rename is durable
    mine = lock = <new>   ref = <old>  mine = ref = <new>   old = <old>     spare = <old>   ref = <new>

Whoever writes has claimed the spare by renaming it to a name of his own: so nobody else writes into it, however long he
is suspended meanwhile. Only a file that has no other name is written into: whoever died in the middle column leaves
one that is the ref itself.
While it is git's lock, its writer holds a lock of ours on it: one that nobody holds is a dead writer's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator

from .flocks import let_go, open_to_lock


class NextValue:
    """Of one ref, for one move. `spare` is where the file lies between two moves, `ref` the ref's own place."""

    def __init__(self, spare: str, ref: str) -> None:
        self.spare = spare
        self.path = f"{spare}-{secrets.token_hex(8)}"
        self._old = f"{self.path}.old"
        self._ref = ref
        self.lock = ref + ".lock"

    def write(self, value: str) -> int:
        """Write the value; the open descriptor, not yet synced. Raises OSError."""
        data = value.encode() + b"\n"
        claimed = self._claimed()
        descriptor = self._made() if claimed is None else claimed
        try:
            os.write(descriptor, data)
            os.ftruncate(descriptor, len(data))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Show that whoever has made it git's lock lives. Raises OSError."""
        descriptor = open_to_lock(self.path, os.O_RDONLY)
        try:
            # Who looks whether anybody does holds it for as long.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            let_go(descriptor)

    def take_place(self) -> None:
        """Become the ref, from being git's lock. The caller makes it durable, and then calls `recycle`."""
        # No old file: the ref is new or packed, or another user's and not ours to link to.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.link(self._ref, self._old)
        os.rename(self.lock, self._ref)

    def recycle(self) -> None:
        """Keep the old file for the value after this one."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._old, self.spare)

    def close(self) -> None:
        """Remove all names but the ref and its spare, however far it has come."""
        for path in (self.path, self._old):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _claimed(self) -> int | None:
        """The spare, when there is one, and it is nothing else."""
        try:
            os.rename(self.spare, self.path)
        except FileNotFoundError:
            return None
        # Another user may also run workflows here, and have made it; or it is the ref.
        with contextlib.suppress(PermissionError):
            if os.stat(self.path).st_nlink == 1:
                return os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        os.unlink(self.path)
        return None

    def _made(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def is_left(path: str) -> int | None:
    """The inode of a file that nobody holds: of ours, its writer died. None for one that is held, and for none."""
    try:
        descriptor = open_to_lock(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return found.st_ino
    except OSError:
        return None
    finally:
        let_go(descriptor)
