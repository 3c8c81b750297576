"""Bursts: receipts that one process adds to a run faster than git can take them one by one.

The first receipts of a burst go into git as every other does. Once the same process adds to the same run again within
20 ms, its next ones are made durable in a write-ahead file, with one sync each, and put into git together, a quarter
of a second later at most, or as soon as anybody waits for them. Nothing that git shows is ever ahead of its objects;
what it may lack is the end of a burst, and every reader of ours waits for that end, or puts it in when its writer has
died. What people wait for, such as a question or a run's end, is in git before it counts as recorded.
The file has what commits add (`ahead_file`); their trees are made while the disk takes that (`burst`).

    a burst begins     its writer holds a lock on the run's file; others that want to read or add to the run ask for
                       it (a file beside it) and wait for the lock
    it is put into git objects, then the ref, as always; then the file goes, and the lock with it, unless the burst goes
                       on: then git has its beginning, and the file stays
    its writer dies    the lock is free and the file is there: the next process that meets it does the same
    it is suspended    who wants to write revokes the file after half a minute, and puts it into git; a record counts
                       only if the file was not revoked when it was durable
"""

from __future__ import annotations

import contextlib
import errno
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
from ..errors import HermesError
from . import peek
from .ahead_file import AheadFile, path_of
from .awaited import Awaited
from .burst import Burst, Recording
from .durability import Disk
from .objects import Batch, Objects
from .ports import Entry
from .refs import Patience

BEGINS_WITHIN = 0.02
"""Seconds between two receipts of one run that make a burst: an agent's answer never comes so soon."""

LANDS_WITHIN = 0.25
"""Seconds that a receipt may be missing in git; few people see it, and what lands together is one pack."""

_LOOKS_EVERY = 0.005
_REMEMBERED = 256
_FAMILIES = frozenset({"step", "attempt"})


@dataclass(frozen=True)
class _Named:
    """Runs, by the names of their files."""

    repository: str
    names: frozenset[str]

    def __contains__(self, run_id: object) -> bool:
        return bool(self.names) and os.path.basename(path_of(self.repository, str(run_id))) in self.names


class Ahead:
    """The bursts of one ledger, and those of others as far as it must wait for them. Thread-safe."""

    def __init__(self, repository: Path, objects: Objects, awaited: Awaited, disk: Disk, patience: Patience) -> None:
        self._repository = os.fspath(repository)
        self._folder = f"{self._repository}/{peek.AHEAD}"
        self._objects = objects
        self._disk = disk
        self._patience = patience
        self._awaited = awaited
        self._bursts: dict[str, Burst] = {}
        self._newest: OrderedDict[str, tuple[str, float]] = OrderedDict()
        # Whoever puts bursts into git holds `_landing`, and whoever changes one `guard`; who needs both takes the
        # former first.
        self._landing = threading.RLock()
        self.guard = threading.RLock()
        self._thread: threading.Thread | None = None
        self._durable = False
        _OPEN.add(self)

    def burst(self, run_id: str) -> Burst | None:
        """The open burst of a run. For whoever holds our `guard`."""
        return self._bursts.get(run_id)

    def tip(self, run_id: str) -> str | None:
        """Where a run stands that is in a burst of ours."""
        burst = self._bursts.get(run_id)
        return burst.tip if burst else None

    def own(self) -> list[str]:
        """The ids of all runs in a burst of ours."""
        return list(self._bursts)

    def runs(self) -> Container[str]:
        """The ids of all runs in a burst, ours or not, of which git may lack the end."""
        return _Named(self._repository, frozenset(peek.bursts(self._repository)))

    # -- a burst of ours -------------------------------------------------------------------------------------

    def takes(self, entries: Sequence[Entry], tip: Callable[[str], str | None]) -> bool:
        """Whether these entries go on with a burst, or begin one. Under the run's lock."""
        run_id = entries[0].run_id
        if run_id in self._bursts:
            return self.goes_on(entries)
        if not _are_results(entries, run_id):
            return False
        last, when = self._newest.get(run_id, ("", 0.0))
        return bool(last) and self._patience.monotonic() - when < BEGINS_WITHIN and tip(run_id) == last

    def goes_on(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries go on with a burst that is open. It stays so for whoever holds our `guard`."""
        burst = self._bursts.get(entries[0].run_id)
        if burst is None or burst.taken or burst.is_full:
            return False
        return _are_results(entries, burst.run_id)

    def added(self, run_id: str, tip: str) -> None:
        """We have just put the run to `tip`."""
        with self.guard:
            self._newest[run_id] = (tip, self._patience.monotonic())
            self._newest.move_to_end(run_id)
            if len(self._newest) > _REMEMBERED:
                self._newest.popitem(last=False)

    def recording(self, run_id: str, batch: Batch) -> Recording:
        """For one append to the run, which brings the objects of `batch`; `goes_on` or `takes` has let it pass."""
        return Recording(self, self._disk, run_id, batch)

    def land(self, run_ids: Iterable[str] | None = None) -> None:
        """Put our bursts into git, of these runs or all. Raises StoreFailure, TemporarilyLocked, OSError."""
        if not self._bursts:
            return
        trouble: list[Exception] = []
        with self._landing, self.guard:
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
        # The locks may be held by threads that the child does not have.
        self._landing, self.guard, self._thread, self._bursts = threading.RLock(), threading.RLock(), None, {}

    def begin(self, run_id: str, old: str) -> Burst | None:
        """A new one; None when git has another commit than `old`, where the run stood just now. Raises OSError."""
        # Past our locks git itself moves refs, and so does whoever lands a burst that was taken from him.
        if peek.read_ref(self._repository, peek.RUNS + run_component(run_id)) != old:
            return None
        self._have_folder()
        if self._thread is None:
            # It waits for our guard. Without it nothing may begin, since nothing would ever land.
            thread = threading.Thread(target=self._watch, name="hermes-ahead", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise OSError(errno.EAGAIN, str(error)) from error
            self._thread = thread
        file = AheadFile.make(self._repository, run_id)
        burst = Burst(run_id, old, old, file, Batch(), self._patience.monotonic() + LANDS_WITHIN)
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

    def _put(self, burst: Burst) -> None:
        if burst.tip != burst.old:
            self._awaited.put(burst.run_id, burst.old, burst.tip, burst.batch)
        self.done(burst)

    def _put_beginning(self, burst: Burst) -> None:
        """Put what is recorded by now into git, while the burst goes on: its writer hardly waits for that."""
        with self.guard:
            tip, size, part = burst.tip, burst.waiting, Batch(burst.batch.objects)
        if tip == burst.old or not self._is_open(burst):
            return
        self._awaited.put(burst.run_id, burst.old, tip, part)
        with self.guard:
            burst.old = tip
            burst.waiting -= size
            for oid in part.objects:
                burst.batch.objects.pop(oid, None)

    def _is_open(self, burst: Burst) -> bool:
        """Whether it still is the burst of its run: whoever writes may have ended it, and begun another one."""
        return self._bursts.get(burst.run_id) is burst

    def done(self, burst: Burst) -> None:
        """The burst has ended: git has everything, or nothing was recorded."""
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
        now = self._patience.monotonic()
        with self._landing:
            for burst in [burst for burst in list(self._bursts.values()) if burst.is_due(now)]:
                put = False
                # Whatever it was: without this thread nothing would land any more, and whoever appends is told.
                with contextlib.suppress(Exception):
                    self._put_beginning(burst)
                    with self.guard:
                        # One that goes on keeps its file, since to begin another costs more than ten steps.
                        ends = burst.tip == burst.old or burst.taken or burst.is_wanted
                        if ends and self._is_open(burst):
                            self._put(burst)
                    put = True
                burst.tried(now, LANDS_WITHIN, put=put)
            with self.guard:
                if not self._bursts:
                    self._thread = None
                return bool(self._bursts)

    # -- bursts of others ------------------------------------------------------------------------------------

    def settle(self, run_id: str, *, writing: bool = False) -> None:
        """Wait for what others have recorded of the run, if it is in no burst of ours: `Awaited.settle`."""
        if run_id not in self._bursts:
            self._awaited.settle(run_id, writing=writing)

    def is_anothers(self, run_id: str) -> bool:
        """Whether a living process other than this one is in a burst of the run."""
        return run_id not in self._bursts and self._awaited.is_held(run_id)

    def take_over(self, run_id: str) -> None:
        """As `settle` does for whoever is writing, under the run's lock, and without waiting for the burst to end."""
        if run_id not in self._bursts:
            self._awaited.settle(run_id, writing=True, at_once=True)

    def settle_all(self, *, waiting: bool = True) -> None:
        """The same of every run, for a reader; without `waiting` only of those whose writers have died."""
        self._awaited.settle_all({burst.file.path for burst in list(self._bursts.values())}, waiting=waiting)


_OPEN: weakref.WeakSet[Ahead] = weakref.WeakSet()


def _forked() -> None:
    for each in list(_OPEN):
        each.forked()


os.register_at_fork(after_in_child=_forked)


def _are_results(entries: Sequence[Entry], run_id: str) -> bool:
    """What calls of one run came to. A decision, a question, an end: git has each before it counts as recorded."""
    for entry in entries:
        if entry.run_id != run_id or entry.decided_at is not None:
            return False
        for draft in entry.drafts:
            place = layout.place(draft.path)
            if place is None or place.family not in _FAMILIES:
                return False
    return True
