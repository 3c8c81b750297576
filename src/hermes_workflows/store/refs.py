"""Moving refs: one writer a ref at a time, compare-and-swap against everybody else, no lock that outlives us.

Two locks. Ours is a `flock`, which the kernel drops when a process dies; whoever adds to a run takes it first, and only
what was durable before (`ahead`) is put into git without it.
git's is the file `<ref>.lock`, which stays for ever when its holder dies. We hold git's only for the microseconds
between comparing and renaming, and we make it as a second name of a file in `hermes/pending` that its writer holds a
`flock` on (`next_value`): a `.lock` that is such a file, and free, was left by a dead writer of ours.
A `.lock` of anyone else is taken away only when it has not changed for 10 s (FORMAT §7).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import resource
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dulwich.file import FileLocked
from dulwich.objects import ObjectID
from dulwich.refs import DiskRefsContainer, Ref

from ..errors import HermesError, TemporarilyLocked
from . import git_binary, peek
from .durability import Barrier, Disk
from .flocks import let_go, open_to_lock
from .next_value import NextValue, is_left


@dataclass(frozen=True)
class Patience:
    """How long to wait for others, in seconds; `stale` is when a lock of git's that nobody touches is dead."""

    ours: float = 30.0
    theirs: float = 15.0
    stale: float = 10.0
    pause: float = 0.005
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Move:
    """Where a ref shall point; `old` None means that it must not exist yet. Ids are 40 hex digits."""

    ref: str
    old: str | None
    new: str


# Named by two hex digits.
_STRIPES = 256


class Refs:
    """The refs of one repository, written. Reading needs no lock: peek.py."""

    def __init__(self, repository: Path, disk: Disk, patience: Patience | None = None) -> None:
        self._repository = os.fspath(repository)
        self._disk = disk
        self._patience = patience or Patience()
        self._locks = f"{self._repository}/hermes/locks"
        self._pending = f"{self._repository}/hermes/pending"

    @contextlib.contextmanager
    def locked(self, names: Iterable[str]) -> Iterator[None]:
        """Hold our lock for each of `names` (refs or run ids). Raises TemporarilyLocked, OSError."""
        with contextlib.ExitStack() as held:
            # So many lock files for ever, instead of one a run; in sorted order, so that two writers cannot deadlock.
            for stripe in sorted({_digest(name.lower())[:2] for name in names}):
                held.enter_context(self._flock(stripe))
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold every lock of ours: nobody of us moves any ref meanwhile. Raises TemporarilyLocked, OSError."""
        with _open_files(_STRIPES), contextlib.ExitStack() as held:
            for number in range(_STRIPES):
                held.enter_context(self._flock(f"{number:02x}"))
            yield

    def move(self, moves: Sequence[Move], barrier: Barrier) -> list[bool]:
        """Settle `barrier`, then move each ref; False where its value was not `old` any more.

        What is True is durable on return.
        Raises TemporarilyLocked when somebody else keeps a ref locked; refs before it may have moved.
        """
        values = [self._next_value(move.ref) for move in moves]
        try:
            # Nothing that is renamed later reaches the disk before the values and the objects.
            for move, value in zip(moves, values, strict=True):
                barrier.hold(value.write(move.new), self._pending)
            barrier.settle()
            moved = self._swapped(moves, values)
            for value in itertools.compress(values, moved):
                value.recycle()
        finally:
            for value in values:
                value.close()
        return moved

    def _swapped(self, moves: Sequence[Move], values: Sequence[NextValue]) -> list[bool]:
        try:
            return [self._swap(move, value) for move, value in zip(moves, values, strict=True)]
        finally:
            for folder in sorted({os.path.dirname(move.ref) for move in moves}):
                self._publish(f"{self._repository}/{folder}")

    def drop(self, values: Mapping[str, str]) -> None:
        """Delete refs, each only if it still has the value given here. The caller holds our locks.

        A lock of git's in the way leaves them for the next time.
        """
        # Never dulwich's add_packed_refs({ref: None}): it deletes without comparing.
        if values and not git_binary.delete_refs(self._repository, values):
            container = DiskRefsContainer(self._repository)
            for ref, value in values.items():
                with contextlib.suppress(FileLocked, FileNotFoundError):
                    container.remove_if_equals(Ref(ref.encode()), ObjectID(value.encode()))
        self._forget([ref for ref in values if peek.read_ref(self._repository, ref) is None])

    def _forget(self, gone: Iterable[str]) -> None:
        """Remove what is kept for refs that are gone, and what writers that died have left of them."""
        digests = {_digest(ref) for ref in gone}
        for name in os.listdir(self._pending) if digests else ():
            path = f"{self._pending}/{name}"
            if name in digests or (name.partition("-")[0] in digests and is_left(path)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    @contextlib.contextmanager
    def _flock(self, stripe: str) -> Iterator[None]:
        descriptor = self._open_lock(f"{self._locks}/{stripe}")
        try:
            self._wait_for_flock(descriptor)
            yield
        finally:
            let_go(descriptor)

    def _open_lock(self, path: str) -> int:
        try:
            return open_to_lock(path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            # A restored mirror has no folder of ours. A repository that was moved away has nothing, and is not to be
            # begun anew: it could not be put back where something lies.
            if not os.path.isdir(f"{self._repository}/objects"):
                raise peek.gone(self._repository) from None
            for folder in (self._locks, self._pending):
                os.makedirs(folder, exist_ok=True)
            return self._open_lock(path)

    def _wait_for_flock(self, descriptor: int) -> None:
        patience = self._patience
        deadline = patience.monotonic() + patience.ours
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if patience.monotonic() > deadline:
                    raise TemporarilyLocked(
                        f"another process has been writing for {patience.ours:g} s in {self._repository}",
                        hint="try again; if nothing runs here, a process with the repository open is suspended",
                    ) from None
            patience.sleep(patience.pause / 10)

    def _swap(self, move: Move, value: NextValue) -> bool:
        with value.held():
            self._take(value.lock, value.path)
            try:
                as_expected = peek.read_ref(self._repository, move.ref) == move.old
            except HermesError:
                os.unlink(value.lock)
                raise
            if as_expected:
                value.take_place()
            else:
                os.unlink(value.lock)
            return as_expected

    def _take(self, lock: str, pending: str) -> None:
        """Make git's lock file, waiting for whoever has it."""
        patience = self._patience
        deadline = patience.monotonic() + patience.theirs
        seen, since = None, 0.0
        while True:
            try:
                return os.link(pending, lock)
            except FileNotFoundError:
                if not os.path.exists(pending):
                    raise
                # git removes the folder of a ref that it deletes or packs when it was the last one.
                folder = os.path.dirname(lock)
                os.makedirs(folder, exist_ok=True)
                self._disk.sync_folder(os.path.dirname(folder))
                continue
            except FileExistsError:
                now, state = patience.monotonic(), _state(lock)
            if state != seen:
                seen, since = state, now
            if state and (now - since >= patience.stale or state[0] == _of_the_dead(lock)):
                self._sweep(lock, state[0])
            elif now > deadline:
                raise TemporarilyLocked(
                    f"git has kept {lock} for {patience.theirs:g} s",
                    hint="remove that file if no git process is running in the repository",
                )
            else:
                patience.sleep(patience.pause)

    def _sweep(self, lock: str, inode: int) -> None:
        # Renamed, not removed, so that of two sweepers only one takes a given lock; the ref is read again after.
        with contextlib.suppress(FileNotFoundError):
            away = f"{self._pending}/swept-{secrets.token_hex(8)}"
            os.rename(lock, away)
            if os.stat(away).st_ino != inode:
                # The other sweeper was faster, and this one's holder lives.
                with contextlib.suppress(FileExistsError):
                    os.link(away, lock)
            os.unlink(away)

    def _publish(self, folder: str) -> None:
        """Make renames in `folder` durable, and give the folder a time of its own for `peek.stamp`.

        A rename sets the clock's last tick, which is up to 4 ms long: two updates in one tick would look like one.
        """
        try:
            self._disk.sync_folder(folder)
        except FileNotFoundError:
            # `git pack-refs` came in between: it has moved the refs to `packed-refs` and removed the empty folder.
            self._disk.sync_folder(self._repository)
            return
        with contextlib.suppress(OSError):
            found = os.stat(folder)
            os.utime(folder, ns=(found.st_atime_ns, found.st_mtime_ns + 1 + secrets.randbelow(999_999)))

    def _next_value(self, ref: str) -> NextValue:
        return NextValue(f"{self._pending}/{_digest(ref)}", f"{self._repository}/{ref}")


@contextlib.contextmanager
def _open_files(more: int) -> Iterator[None]:
    """Let this process have so many more files open: where it may have 256, as on macOS, not all locks would go in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # No limit is a negative number.
    most = soft if soft < 0 else soft + more if hard < 0 else min(soft + more, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _digest(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def _of_the_dead(lock: str) -> int | None:
    """The inode of a lock of git's that a writer of ours has left: theirs have one name only."""
    with contextlib.suppress(FileNotFoundError):
        if os.stat(lock).st_nlink > 1:
            return is_left(lock)
    return None


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
