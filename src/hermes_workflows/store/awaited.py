"""Bursts of other processes: waiting until git has them, and putting in what a dead writer left (`ahead`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from ..core.names import run_component
from ..errors import HermesError, IntegrityError, TemporarilyLocked
from . import peek
from .adding import Addition, add
from .ahead_file import WANTED, AheadFile, path_of
from .durability import Barrier, Disk
from .objects import Batch
from .refs import Move, Patience, Refs
from .snapshots import Snapshots

_READERS_WAIT = 2.0
_WAITS_AGAIN_AFTER = 10.0

Restore = Callable[[str, str], bool]


class Awaited:
    """What git is about to have, or lacks since its writer has died. Thread-safe."""

    def __init__(
        self, repository: Path, snapshots: Snapshots, refs: Refs, disk: Disk, patience: Patience, restore: Restore
    ) -> None:
        """`restore` moves a run's ref, which somebody has moved, to a commit of ours, and keeps where it was."""
        self._repository = os.fspath(repository)
        self._folder = f"{self._repository}/{peek.AHEAD}"
        self._snapshots = snapshots
        self._objects = snapshots.objects
        self._refs = refs
        self._disk = disk
        self._patience = patience
        self._restore = restore
        self._in_vain: dict[str, tuple[float, tuple[int, int] | None]] = {}

    def put(self, run_id: str, old: str, tip: str, batch: Batch) -> None:
        """Put a run's newest commits into git, where it has `old`. Raises StoreFailure, TemporarilyLocked, OSError."""
        move = Move(peek.RUNS + run_component(run_id), old, tip)
        # A ref that cannot be read takes nothing, and what was written for it would lie about.
        peek.read_ref(self._repository, move.ref)
        with contextlib.closing(self._disk.barrier()) as barrier, self._objects.putting(batch, barrier):
            # What was acknowledged comes before what somebody has put there meanwhile, past our locks.
            if not self._refs.move([move], barrier)[0] and not self._goes_on(move, batch, barrier):
                barrier.settle()
                self._hold_to(run_id, tip)

    def _goes_on(self, move: Move, batch: Batch, barrier: Barrier) -> bool:
        """The same from where the ref stands, when others who had the burst have put its beginning there meanwhile."""
        found = peek.read_ref(self._repository, move.ref)
        if found is None or found == move.new or bytes.fromhex(found) not in batch.objects:
            return False
        return self._refs.move([Move(move.ref, found, move.new)], barrier)[0]

    def is_held(self, run_id: str) -> bool:
        """Whether there is a file whose writer lives."""
        return AheadFile.is_held(path_of(self._repository, run_id))

    def settle(self, run_id: str, *, writing: bool = False, at_once: bool = False) -> None:
        """Wait until git has what others have recorded of the run, and put in what a dead one left.

        A reader waits for a moment only, and then sees what git has. Whoever is `writing`, under the run's lock, does
        not go on before: after `Patience.ours` a writer that lives and does nothing, since it is suspended, loses its
        burst; or `at_once`. Raises StoreFailure, OSError.
        """
        path = path_of(self._repository, run_id)
        if os.path.exists(path):
            wait = self._patience.ours if writing else _READERS_WAIT
            self._wait(path, self._patience.monotonic() + (-1.0 if at_once else wait), writing=writing)

    def settle_all(self, own: Collection[str], *, waiting: bool) -> None:
        """The same of every file but those of `own` paths, for a reader, or only of those whose writers have died."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        # One deadline: a suspended runner may have left many runs.
        deadline = self._patience.monotonic() + _READERS_WAIT if waiting else -1.0
        paths = [path for name in names if "." not in name and (path := f"{self._folder}/{name}") not in own]
        if waiting:
            # All are asked for at first, so that they are waited for together.
            for path in paths:
                with contextlib.suppress(OSError):
                    _touch(path + WANTED)
        for path in paths:
            self._wait(path, deadline, writing=False)

    def _wait(self, path: str, deadline: float, *, writing: bool) -> None:
        patience = self._patience
        by_force = False
        if not writing and self._was_in_vain(path):
            deadline = -1.0
        while True:
            try:
                self._take_over(path, by_force=by_force)
                break
            except BlockingIOError:
                if not writing and patience.monotonic() > deadline:
                    if deadline > 0:
                        self._in_vain[path] = patience.monotonic(), _state(path)
                    return
                with contextlib.suppress(OSError):
                    _touch(path + WANTED)
            except (HermesError, OSError):
                # The file stays, and `doctor` tells of it: a reader sees what git has, of this run and all others.
                if writing:
                    raise
                return
            by_force = writing and patience.monotonic() > deadline
            patience.sleep(patience.pause / 5)
        if not os.path.exists(path):
            with contextlib.suppress(OSError):
                os.unlink(path + WANTED)

    def _was_in_vain(self, path: str) -> bool:
        """Whether a reader has just waited for this file, which is as it was then: one command reads a run often."""
        when, state = self._in_vain.get(path, (0.0, None))
        if state and state == _state(path) and self._patience.monotonic() - when < _WAITS_AGAIN_AFTER:
            return True
        self._in_vain.pop(path, None)
        return False

    def _take_over(self, path: str, *, by_force: bool = False) -> None:
        """Put what a dead writer left into git. Raises BlockingIOError when it lives, and is not to be forced."""
        file = AheadFile.take(path, by_force=by_force)
        if file is None:
            return
        with contextlib.closing(file):
            run_id, additions = file.records()
            if additions and path_of(self._repository, run_id) == path:
                self._put_left(run_id, additions)
            file.remove()

    def _put_left(self, run_id: str, additions: Sequence[Addition]) -> None:
        found = peek.read_ref(self._repository, peek.RUNS + run_component(run_id)) or ""
        # Its writer may have put the beginning into git while it went on.
        parents = [each.parent for each in additions]
        left = additions[parents.index(found) :] if found in parents else additions
        with self._objects.gathering() as batch:
            tip = self._tip_of(left, batch)
            if tip != found:
                self.put(run_id, left[0].parent, tip, batch)

    def _tip_of(self, additions: Sequence[Addition], batch: Batch) -> str:
        """The commit that `additions` come to, one after the other; what git lacks of it is in `batch` then."""
        trees = self._snapshots.trees
        tip = bytes.fromhex(additions[0].parent)
        root = trees.open(self._snapshots.commit(tip).tree)
        for each in additions:
            if each.parent != tip.hex():
                raise IntegrityError(
                    f"a burst goes on from commit {each.parent[:12]}, where its receipts come to {tip.hex()[:12]}",
                    hint="another version of this program has recorded it: run that one once more",
                )
            tip, root = add(trees, root, each, batch.write)
        return tip.hex()

    def _hold_to(self, run_id: str, tip: str) -> None:
        if not self._restore(run_id, tip):
            raise TemporarilyLocked(f"{run_id} cannot be moved to {tip[:12]}", hint="hermes-workflows doctor")


def _state(path: str) -> tuple[int, int] | None:
    """What changes when a burst goes on, or is another one."""
    try:
        return os.stat(path).st_ino, peek.extent(path)
    except OSError:
        return None


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
