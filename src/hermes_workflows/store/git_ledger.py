"""The ledger in git: a run is a chain of commits under `refs/runs/<id>`, one receipt each (FORMAT §2, §3).

Appending is a compare-and-swap. Under our lock for the run: read the tip, ask `admission` what the entry adds to it,
write the objects, put them on disk, move the ref. Several entries share one passage to the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path

from ..core.clock import Clock
from ..core.names import check_run_id, run_component
from ..core.receipts import Author, Receipt
from ..errors import Conflict, IntegrityError, NotFound, TemporarilyLocked
from . import commits, peek, repository
from .adding import Note
from .admission import check_entry, check_start
from .adopting import adopt
from .ahead import Ahead
from .answers import Proposals
from .appending import Appending
from .arriving import Arrived, home_of, is_news
from .awaited import Awaited
from .case_folding import could_be_in_another_case
from .durability import Barrier, Disk, Durability, disk_errors, disk_for
from .lookup import Lookup
from .objects import Batch, Objects
from .planning import Plan, Planner
from .ports import Adopted, Appended, Entry, Head, Outcome, Problem, Proposal, Rejected
from .refs import Move, Patience, Refs
from .repository import GENESIS
from .sealing import Recall, Seal, Sealed, Sealer
from .snapshots import Located, Snapshot, Snapshots
from .trees import Write
from .trust import Trust

# Attempts against a writer that does not take our lock (git itself); each loses only to a ref that did move.
_ATTEMPTS = 20

_GENESIS = bytes.fromhex(GENESIS)


class GitLedger:
    """`ports.Ledger` on a bare repository. Thread-safe; any number of processes."""

    def __init__(
        self, path: Path, *, clock: Clock, disk: Disk, committer: str, patience: Patience, bursts: bool = False
    ) -> None:
        """Use `open`; this takes the disk, which decides what a sync is."""
        self.path = path
        self._clock = clock
        self._committer = Author(committer)
        self._home = repository.workspace_id(path)
        self.disk = disk
        self.objects = Objects(path, self.disk)
        self._refs = Refs(path, self.disk, patience)
        self._snapshots = Snapshots(self.objects)
        self._planner = Planner(self._snapshots.trees, self._committer, clock)
        self._start = self._snapshots.start
        self._sealed = Sealed(path, self._snapshots)
        self._snapshots.ask(self._sealed.way)
        self._sealer = Sealer(path, self._refs, self._snapshots, self._sealed, self.disk)
        self._lookup = Lookup(path, self._snapshots)
        self._proposals = Proposals(path, self._snapshots, self._refs, self._sealed, self.disk)
        self._trust = Trust(path, self._refs, self._snapshots, self._sealed, self.disk)
        awaited = Awaited(path, self._snapshots, self._refs, disk, patience, self._trust.hold_to)
        self._ahead = Ahead(path, self.objects, awaited, disk, patience)
        self._bursts = bursts

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool,
        clock: Clock,
        durability: Durability = "power",
        committer: str,
        patience: Patience | None = None,
        bursts: bool = False,
    ) -> GitLedger:
        """Open the repository at `path`, making it first when `create` is set and nothing is there.

        `committer` is the name of the runner in every commit; `durability` "process" is for tests.
        With `bursts`, git may have the end of a burst of results a moment after it is durable (`ahead`); then the
        ledger must be closed.
        Raises NotFound, IntegrityError (something else lies there), StoreFailure.
        """
        if create and not path.exists():
            repository.create(path, durability)
        # Recognised first: of something else, not even the file system is of interest.
        repository.workspace_id(path)
        disk = disk_for(path, durability)
        ledger = cls(path, clock=clock, disk=disk, committer=committer, patience=patience or Patience(), bursts=bursts)
        ledger._ahead.settle_all(waiting=False)
        return ledger

    def ask(self, recall: Recall) -> None:
        """See `Sealed.ask`."""
        self._sealed.ask(recall)

    @property
    def home(self) -> str:
        return self._home

    def create(self, entry: Entry, day: str, adopted: Adopted | None = None) -> Appended:
        check_start(entry, day)
        if adopted:
            # What is adopted is named, not copied: git has it before it has what names it.
            self.land()
        with self._writing([entry.run_id]) as barrier, self.objects.gathering() as batch:
            self._refuse_existing(entry.run_id)
            folder = f"runs/{day}/{run_component(entry.run_id)}"
            start = Snapshot(entry.run_id, _GENESIS, self._start, folder, self._snapshots, seq=-1)
            taken = None
            if adopted:
                start, taken = adopt(start, self._lookup.at(adopted.commit), adopted, batch.write)
            plan = self._planner.plan(start, None, [replace(entry, decided_at=None)], batch.write, taken)
            if not self._move([plan], batch, barrier)[0]:
                raise Conflict(f"run {entry.run_id} exists already")
        outcome = plan.outcomes[0]
        assert isinstance(outcome, Appended)  # the folder was empty, so nothing could refuse the entry
        return outcome

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        for entry in entries:
            check_entry(entry)
        appending = Appending(entries)
        for _ in range(_ATTEMPTS):
            if not appending.waiting:
                return appending.outcomes
            self._append_once(appending)
        raise TemporarilyLocked(f"another program keeps moving refs in {self.path}", hint="try again in a moment")

    def head(self, run_id: str) -> Head | None:
        tip = self._tip(run_id)
        found = tip or self._sealed.tip(run_component(run_id))
        if not found:
            return None
        known = self._snapshots.known(bytes.fromhex(found))
        head = known.head() if known else self._snapshots.locate(bytes.fromhex(found)).head
        if head.run_id != run_id:
            return None
        return head if tip else replace(head, sealed=True)

    def ahead(self) -> Container[str]:
        return self._ahead.runs()

    def is_behind(self, run_id: str) -> bool:
        return self._tip(run_id) is not None and self._ahead.is_anothers(run_id)

    def take_over(self, run_id: str) -> None:
        if self._ahead.is_anothers(run_id):
            with disk_errors(self.path), self._refs.locked([run_id]):
                self._ahead.take_over(run_id)

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        snapshot = self._current(run_id)
        old = self._snapshots.at(bytes.fromhex(since)) if since and since != GENESIS else None
        return snapshot.head(), self._snapshots.receipts(snapshot, old)

    def file(self, run_id: str, path: str) -> bytes | None:
        return self._current(run_id).content(path)

    def at(self, commit: str) -> tuple[Head, list[Receipt]]:
        snapshot = self._lookup.at(commit)
        return snapshot.head(), self._snapshots.receipts(snapshot)

    def content(self, tip: str, path: str) -> bytes | None:
        return self._lookup.at(tip).content(path)

    def paths(self, tip: str) -> list[str]:
        return [path for path, _ in self._snapshots.trees.walk(self._lookup.at(tip).run_folder())]

    def fetched(self) -> Iterator[tuple[str, Head]]:
        return self._lookup.fetched()

    def accept(self, tip: str) -> Arrived:
        """Give a run that was made elsewhere, and whose objects are here, a ref; `arriving` says what is refused.

        Raises Conflict, IntegrityError, StoreFailure.
        """
        coming = self._snapshots.at(bytes.fromhex(tip))
        with self._writing([coming.run_id]) as barrier:
            self._ahead.land([coming.run_id])
            self._ahead.settle(coming.run_id, writing=True)
            if not self.is_news(coming):
                return Arrived(self.head(coming.run_id) or coming.head(), home_of(coming), new=False)
            ref = peek.RUNS + run_component(coming.run_id)
            if not self._refs.move([Move(ref, self._tip(coming.run_id), tip)], barrier)[0]:
                raise TemporarilyLocked(f"{coming.run_id} was moved meanwhile", hint="try again")
        return Arrived(coming.head(), home_of(coming), new=True)

    def is_news(self, coming: Snapshot) -> bool:
        """Whether `accept` would move a ref, if it did not raise."""
        known = self.head(coming.run_id)
        if not is_news(coming, known, self._home):
            return False
        if known is None:
            try:
                self._refuse_existing(coming.run_id)
            except Conflict:
                if self.head(coming.run_id) is None:
                    raise
                return self.is_news(coming)  # another process has just taken it in
        return True

    def head_at(self, commit: str) -> Head:
        """The run that a commit belongs to, without its receipts. Raises NotFound, Conflict, IntegrityError."""
        return self._lookup.at(commit).head()

    def sealed_tip(self, component: str) -> str:
        """The newest commit of a sealed run, by the last part of its ref's name; "" when there is none."""
        return self._sealed.tip(component)

    def write_tar(self, head: Head, target: Path) -> int:
        """A run's files as an archive; see `bundles`."""
        from .bundles import write_tar  # noqa: PLC0415  # with all that archives need

        return write_tar(self._snapshots, head, target)

    def heads(self, known: Mapping[str, str] | None = None) -> Iterator[Head]:
        with disk_errors(self.path):
            self._ahead.settle_all()
        own = self._ahead.own()
        refs = peek.list_refs(self.path, peek.RUNS)
        for run_id in own:
            # In this order: a burst that has ended since is in git, though perhaps not yet where we have just looked.
            name = peek.RUNS + run_component(run_id)
            with contextlib.suppress(IntegrityError):
                refs[name] = self._ahead.tip(run_id) or peek.read_ref(self.path, name) or ""
        there = {(peek.RUNS + run_component(run_id), tip): run_id for run_id, tip in (known or {}).items()}
        living = [Located.unread(there[ref], ref[1]) if ref in there else self._locate(*ref) for ref in refs.items()]
        if not living and not (self.path / "objects").is_dir():
            raise peek.gone(self.path)
        newest_first = sorted(living, key=lambda found: (found.time, found.head.run_id), reverse=True)
        yield from (found.head for found in newest_first)
        seen = {run_component(found.head.run_id) for found in living}
        yield from (head for head in self._sealed.heads() if head.folder.rpartition("/")[2] not in seen)

    def seal(self, keep: int = 1000) -> int:
        with disk_errors(self.path):
            self._ahead.land()
            return self._sealer.seal(Seal(self._committer, commits.commit_time(self._clock.now())), keep)

    def verify(self, run_id: str, tip: str | None = None) -> list[Problem]:
        self.land()
        return self._trust.verify(bytes.fromhex(tip) if tip else self._current(run_id).tip, newest=tip is None)

    def verify_seals(self) -> list[Problem]:
        return self._trust.verify_seals()

    def goes_on_from(self, run_id: str, tip: str) -> bool:
        self.land()
        return self._trust.goes_on_from(run_id, tip)

    def put_back(self, run_id: str, tip: str) -> bool:
        with disk_errors(self.path):
            self._ahead.land()
            return self._trust.put_back(run_id, tip, partial(self._ahead.settle, writing=True))

    def rejected(self) -> Iterator[Rejected]:
        return self._trust.rejected()

    def proposals(self, *, fetched: bool) -> Iterator[Proposal]:
        return self._proposals.waiting(fetched=fetched)

    def settle(self, proposal: Proposal, *, refused: bool) -> None:
        with disk_errors(self.path):
            self._proposals.settle(proposal, refused=refused)

    def land(self) -> None:
        with disk_errors(self.path):
            self._ahead.land()

    def close(self) -> None:
        self._ahead.close()
        self.objects.close()
        self._trust.close()

    @contextlib.contextmanager
    def _writing(self, run_ids: Iterable[str]) -> Iterator[Barrier]:
        """Our locks for these runs, and a barrier for what is written under them."""
        with (
            disk_errors(self.path),
            self._refs.locked(run_ids),
            contextlib.closing(self.disk.barrier()) as barrier,
        ):
            yield barrier

    def _append_once(self, appending: Appending) -> None:
        """One attempt for all runs that wait; those that are settled do not any more."""
        if self._go_on(appending):
            return
        entries, waiting = appending.entries, appending.waiting
        with self._writing(waiting) as barrier:
            if self._bursts and appending.of_one_run and self._ahead.takes(entries, partial(self._tip, writing=True)):
                self._record_ahead(appending)
            if not waiting:
                return
            self._ahead.land(waiting)
            with self.objects.gathering() as batch:
                plans = [self._plan_living(run_id, appending.of(run_id), batch.write) for run_id in waiting]
                moved = self._move(plans, batch, barrier)
        for plan in compress(plans, moved):
            appending.settle(plan)

    def _go_on(self, appending: Appending) -> bool:
        """The same for a run whose burst is open: nobody else adds to it meanwhile, so no other lock is needed."""
        with self._ahead.guard, disk_errors(self.path):
            return self._ahead.goes_on(appending.entries) and self._record_ahead(appending)

    def _record_ahead(self, appending: Appending) -> bool:
        """The same for one run in a burst: durable, and git has it soon. False for what no burst takes."""
        (run_id,) = appending.waiting
        ahead = self._ahead
        with ahead.guard, self.objects.gathering() as batch, ahead.recording(run_id, batch) as recording:
            plan = self._plan_living(run_id, appending.entries, batch.write, recording.note)
            if plan.after:
                if not recording.counts(plan.after.tip.hex()):
                    return False
                self._added(run_id, plan.old, plan.after)
        appending.settle(plan)
        return True

    def _plan_living(self, run_id: str, entries: Sequence[Entry], write: Write, note: Note | None = None) -> Plan:
        tip = self._trust.current(run_id, self._tip(run_id, writing=True))
        # A sealed run has ended, so `admit` records nothing for it and the missing ref stays missing.
        return self._planner.plan(self._snapshot(run_id, tip), tip, entries, write, note=note)

    def _move(self, plans: Sequence[Plan], batch: Batch, barrier: Barrier) -> list[bool]:
        """Move the refs of all plans that add something, behind one barrier; False where the ref had moved."""
        moves = {
            plan.run_id: Move(peek.RUNS + run_component(plan.run_id), plan.old, plan.after.tip.hex())
            for plan in plans
            if plan.after
        }
        with self.objects.putting(batch, barrier):
            done = self._refs.move(list(moves.values()), barrier) if moves else []
        moved = dict(zip(moves, done, strict=True))
        for plan in plans:
            if plan.after and moved[plan.run_id]:
                self._added(plan.run_id, plan.old, plan.after)
        return [moved.get(plan.run_id, True) for plan in plans]

    def _added(self, run_id: str, old: str | None, after: Snapshot) -> None:
        tip = after.tip.hex()
        self._trust.moved(run_id, tip)
        self._ahead.added(run_id, tip)
        self._snapshots.keep(after, instead_of=bytes.fromhex(old or ""))

    def _refuse_existing(self, run_id: str) -> None:
        living = {name.removeprefix(peek.RUNS) for name in peek.ref_names(self.path, peek.RUNS)}
        for component in could_be_in_another_case(run_id, {*living, *self._sealed.folders()}):
            tip = peek.read_ref(self.path, peek.RUNS + component) if component in living else None
            other = self._locate(component, tip or self._sealed.tip(component)).head.run_id
            if other.lower() == run_id.lower():
                told = "" if other == run_id else f" as {other}, which differs only in case"
                raise Conflict(f"run {run_id} exists already{told}", hint="choose another id")

    def _locate(self, name: str, tip: str) -> Located:
        """Something for every ref: one whose commit cannot be read has no folder, and fails when it is read."""
        try:
            found = self._snapshots.locate(bytes.fromhex(tip)) if tip else None
            # One that names another run's commit must not make that run appear twice, and itself not at all.
            if found and run_component(found.head.run_id) == name.removeprefix(peek.RUNS):
                return found
        except IntegrityError:
            pass
        return Located.unread(name.removeprefix(peek.RUNS), tip)

    def _tip(self, run_id: str, *, writing: bool = False) -> str | None:
        if tip := self._ahead.tip(run_id):
            return tip
        check_run_id(run_id)
        with disk_errors(self.path):
            self._ahead.settle(run_id, writing=writing)
        return peek.read_ref(self.path, peek.RUNS + run_component(run_id))

    def _current(self, run_id: str) -> Snapshot:
        return self._snapshot(run_id, self._tip(run_id))

    def _snapshot(self, run_id: str, tip: str | None) -> Snapshot:
        """The run as its ref `tip` or, without one, the ledger has it. Raises NotFound, IntegrityError."""
        found = tip or self._sealed.tip(run_component(run_id))
        snapshot = self._snapshots.at(bytes.fromhex(found)) if found else None
        if snapshot and run_component(snapshot.run_id) != run_component(run_id):
            raise IntegrityError(f"{peek.RUNS}{run_component(run_id)} points at a commit of run {snapshot.run_id}")
        if snapshot is None or snapshot.run_id != run_id:
            raise NotFound(f"there is no run {run_id}", hint="`hermes-workflows list` shows the runs of this workspace")
        return snapshot if tip else replace(snapshot, sealed=True)
