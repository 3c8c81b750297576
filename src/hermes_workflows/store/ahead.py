"""Bursts: receipts that one process adds to a run faster than git can take them one by one.

The first receipts of a burst go into git as every other does. Once the same process adds to the same run again within
20 ms, its next ones are made durable in a write-ahead file, with one sync each, and put into git together, a quarter
of a second later at most, or as soon as anybody waits for them. Nothing that git shows is ever ahead of its objects;
what it may lack is the end of a burst, and every reader of ours waits for that end, or puts it in when its writer has
died. What people wait for, such as a question or a run's end, is in git before it counts as recorded.

    a burst begins     its writer holds a lock on the run's file; others that want to read or add to the run ask for
                       it (a file beside it) and wait for the lock
    it is put into git objects, then the ref, as always; then the file goes, and the lock with it
    its writer dies    the lock is free and the file is there: the next process that meets it does the same
    it is suspended    who wants to write revokes the file after half a minute, and puts it into git; a record counts
                       only if the file was not revoked when it was durable
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import layout
from ..core.names import run_component
from ..errors import HermesError, TemporarilyLocked
from . import peek
from .ahead_file import WANTED, AheadFile, Record, path_of
from .durability import Disk
from .objects import Batch, Objects
from .ports import Entry
from .refs import Move, Patience, Refs

BEGINS_WITHIN = 0.02
"""Seconds between two receipts of one run that make a burst: an agent's answer never comes so soon."""

LANDS_WITHIN = 0.25
"""Seconds that a receipt may be missing in git; few people see it, and what lands together is one pack."""

_LARGEST = 16 << 20
_LOOKS_EVERY = 0.005
_READERS_WAIT = 2.0
_WAITS_AGAIN_AFTER = 10.0
_REMEMBERED = 256
_FAMILIES = frozenset({"step", "attempt"})

Restore = Callable[[str, str], bool]


@dataclass
class _Burst:
    """`old` and `tip` are commits (40 hex digits): where git has the run, and where it stands. `due` is monotonic."""

    run_id: str
    old: str
    tip: str
    file: AheadFile
    batch: Batch
    due: float


@dataclass(frozen=True)
class _Named:
    """Runs, by the names of their files."""

    repository: str
    names: frozenset[str]

    def __contains__(self, run_id: object) -> bool:
        return bool(self.names) and os.path.basename(path_of(self.repository, str(run_id))) in self.names


class Ahead:
    """The bursts of one ledger, and those of others as far as it must wait for them. Thread-safe."""

    def __init__(
        self, repository: Path, objects: Objects, refs: Refs, disk: Disk, patience: Patience, restore: Restore
    ) -> None:
        """`restore` moves a run's ref, which somebody has moved, to a commit of ours, and keeps where it was."""
        self._repository = os.fspath(repository)
        self._folder = f"{self._repository}/{peek.AHEAD}"
        self._objects = objects
        self._refs = refs
        self._disk = disk
        self._patience = patience
        self._restore = restore
        self._bursts: dict[str, _Burst] = {}
        self._newest: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self.guard = threading.RLock()
        self._thread: threading.Thread | None = None
        self._in_vain: dict[str, tuple[float, tuple[int, int] | None]] = {}
        self._durable = False
        _OPEN.add(self)

    def tip(self, run_id: str) -> str | None:
        """Where a run stands that is in a burst of ours."""
        burst = self._bursts.get(run_id)
        return burst.tip if burst else None

    def runs(self) -> Container[str]:
        """The ids of all runs in a burst, ours or not, of which git may lack the end."""
        return _Named(self._repository, frozenset(peek.bursts(self._repository)))

    # -- a burst of ours -------------------------------------------------------------------------------------

    def takes(self, entries: Sequence[Entry], tip: Callable[[str], str | None]) -> bool:
        """Whether these entries go on with a burst, or begin one. Under the run's lock."""
        run_id = entries[0].run_id
        if run_id in self._bursts:
            return self.goes_on(entries)
        if any(entry.run_id != run_id or not _are_results(entry) for entry in entries):
            return False
        last, when = self._newest.get(run_id, ("", 0.0))
        return bool(last) and self._patience.monotonic() - when < BEGINS_WITHIN and tip(run_id) == last

    def goes_on(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries go on with a burst that is open. It stays so for whoever holds our `guard`."""
        burst = self._bursts.get(entries[0].run_id)
        if burst is None or burst.file.size >= _LARGEST:
            return False
        return all(entry.run_id == burst.run_id and _are_results(entry) for entry in entries)

    def added(self, run_id: str, tip: str) -> None:
        """We have just put the run to `tip`."""
        with self.guard:
            self._newest[run_id] = (tip, self._patience.monotonic())
            self._newest.move_to_end(run_id)
            if len(self._newest) > _REMEMBERED:
                self._newest.popitem(last=False)

    def record(self, run_id: str, old: str, tip: str, batch: Batch) -> bool:
        """Make a step from `old` to `tip` durable, with the objects it brings. Under the run's lock.

        False, and nothing recorded, when the run went on elsewhere while this process was suspended. Raises OSError.
        """
        with self.guard:
            burst = self._bursts.get(run_id) or self._begin(run_id, old)
            if burst is None or not self._write(burst, old, tip, batch):
                return False
            burst.tip = tip
            burst.batch.objects.update(batch.objects)
            return True

    def land(self, run_ids: Iterable[str] | None = None) -> None:
        """Put our bursts into git, of these runs or all. Raises StoreFailure, TemporarilyLocked, OSError."""
        if not self._bursts:
            return
        trouble: list[Exception] = []
        with self.guard:
            for burst in [self._bursts[run_id] for run_id in run_ids or list(self._bursts) if run_id in self._bursts]:
                try:
                    self._put(burst)
                except (HermesError, OSError) as error:
                    # What keeps one run is no reason to keep the others from git.
                    trouble.append(error)
        if trouble:
            raise trouble[0]

    def close(self) -> None:
        """The last chance of this process; what cannot be put into git now is durable, and waits for the next one."""
        with contextlib.suppress(HermesError, OSError):
            self.land()
        with self.guard:
            for burst in self._bursts.values():
                self._objects.hide(burst.batch)
                burst.file.close()
            self._bursts.clear()

    def forked(self) -> None:
        """In a child that was forked: the bursts, and the locks on their files, are its parent's."""
        # The guard may be held by a thread that the child does not have.
        self.guard, self._thread, self._bursts = threading.RLock(), None, {}

    def _begin(self, run_id: str, old: str) -> _Burst | None:
        # A burst that somebody took from us may have landed since `old` was asked for: git stands further on.
        if peek.read_ref(self._repository, peek.RUNS + run_component(run_id)) != old:
            return None
        self._have_folder()
        if self._thread is None:
            # It waits for our guard. Without it nothing may begin, since nothing would ever land.
            self._thread = threading.Thread(target=self._watch, name="hermes-ahead", daemon=True)
            self._thread.start()
        file = AheadFile.make(self._repository, run_id)
        burst = _Burst(run_id, old, old, file, Batch(), self._patience.monotonic() + LANDS_WITHIN)
        self._objects.show(burst.batch)
        self._bursts[run_id] = burst
        return burst

    def _have_folder(self) -> None:
        if self._durable and os.path.isdir(self._folder):
            return
        # Others may make it at the same time, and be killed before it is durable.
        os.makedirs(self._folder, exist_ok=True)
        for folder in (os.path.dirname(self._folder), self._repository):
            self._disk.sync_folder(folder)
        self._durable = True

    def _write(self, burst: _Burst, old: str, tip: str, batch: Batch) -> bool:
        """Whether the record counts."""
        size = burst.file.size
        try:
            burst.file.append(bytes.fromhex(old), bytes.fromhex(tip), batch.objects)
            self._disk.sync_content(burst.file.descriptor)
            if burst.tip == burst.old:
                self._disk.sync_folder(self._folder)
        except OSError:
            burst.file.take_back(size)
            if burst.tip == burst.old:
                self._done(burst)
            raise
        if burst.file.is_ours():
            return True
        # We were suspended for so long that somebody else has taken the burst. It may have died before git had it, so
        # what was acknowledged is put there once more.
        burst.file.take_back(size)
        self._put(burst)
        return False

    def _put(self, burst: _Burst) -> None:
        if burst.tip == burst.old:
            self._done(burst)
            return
        move = Move(peek.RUNS + run_component(burst.run_id), burst.old, burst.tip)
        with contextlib.closing(self._disk.barrier()) as barrier, self._objects.putting(burst.batch, barrier):
            moved = self._refs.move([move], barrier)[0]
            # What was acknowledged comes before what somebody has put there meanwhile, past our locks.
            if not moved:
                self._hold_to(burst.run_id, burst.tip)
        self._done(burst)

    def _hold_to(self, run_id: str, tip: str) -> None:
        if not self._restore(run_id, tip):
            raise TemporarilyLocked(f"{run_id} cannot be moved to {tip[:12]}", hint="hermes-workflows doctor")

    def _done(self, burst: _Burst) -> None:
        del self._bursts[burst.run_id]
        self._objects.hide(burst.batch)
        # Also where the folder refuses: with the lock gone, whoever meets the file finds its end in git.
        with contextlib.closing(burst.file):
            burst.file.remove()

    def _watch(self) -> None:
        """Put bursts into git when they are due or wanted, until there is none; a disk that refuses is asked again."""
        while True:
            time.sleep(_LOOKS_EVERY)
            if not self.look():
                return

    def look(self) -> bool:
        """Put into git what is due or wanted; whether there is more to come."""
        with self.guard:
            now = self._patience.monotonic()
            for burst in [burst for burst in self._bursts.values() if burst.due <= now or _is_wanted(burst)]:
                burst.due = now + LANDS_WITHIN
                # Whatever it was: without this thread nothing would land any more, and whoever appends is told.
                with contextlib.suppress(Exception):
                    self._put(burst)
            if not self._bursts:
                self._thread = None
            return bool(self._bursts)

    # -- bursts of others ------------------------------------------------------------------------------------

    def settle(self, run_id: str, *, writing: bool = False) -> None:
        """Wait until git has what others have recorded of the run, and put in what a dead one left.

        A reader waits for a moment only, and then sees what git has. Whoever is `writing`, under the run's lock, does
        not go on before: after `Patience.ours` a writer that lives and does nothing, since it is suspended, loses its
        burst. Raises StoreFailure, OSError.
        """
        path = path_of(self._repository, run_id)
        if os.path.exists(path) and run_id not in self._bursts:
            wait = self._patience.ours if writing else _READERS_WAIT
            self._wait(path, self._patience.monotonic() + wait, writing=writing)

    def settle_all(self, *, waiting: bool = True) -> None:
        """The same of every run, for a reader; without `waiting` only of those whose writers have died."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        own = {burst.file.path for burst in list(self._bursts.values())}
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
            run_id, records = file.records()
            if records and path_of(self._repository, run_id) == path:
                self._put_left(run_id, records[0].old.hex(), records[-1].new.hex(), _batch(records))
            file.remove()

    def _put_left(self, run_id: str, old: str, tip: str, batch: Batch) -> None:
        ref = peek.RUNS + run_component(run_id)
        found = peek.read_ref(self._repository, ref)
        with contextlib.closing(self._disk.barrier()) as barrier, self._objects.putting(batch, barrier):
            if found == old and self._refs.move([Move(ref, old, tip)], barrier)[0]:
                return
            barrier.settle()
            # It has gone on from there since, or it was moved past our locks.
            self._hold_to(run_id, tip)


_OPEN: weakref.WeakSet[Ahead] = weakref.WeakSet()


def _forked() -> None:
    for each in list(_OPEN):
        each.forked()


os.register_at_fork(after_in_child=_forked)


def _are_results(entry: Entry) -> bool:
    """What calls came to. A decision, a question, an end: of these git has each before it counts as recorded."""
    places = [layout.place(draft.path) for draft in entry.drafts]
    return entry.decided_at is None and all(place and place.family in _FAMILIES for place in places)


def fits(batch: Batch) -> bool:
    """Whether a burst takes so much: what a record may not be is not read again."""
    return sum(len(body) for _, body in batch.objects.values()) < _LARGEST


def _batch(records: Sequence[Record]) -> Batch:
    batch = Batch()
    for record in records:
        for kind, body in record.objects:
            batch.write(kind, body)
    return batch


def _is_wanted(burst: _Burst) -> bool:
    return os.path.exists(burst.file.path + WANTED)


def _state(path: str) -> tuple[int, int] | None:
    """What changes when a burst goes on, or is another one."""
    try:
        return os.stat(path).st_ino, peek.extent(path)
    except OSError:
        return None


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
