"""Who may move our refs: a run goes on from the commit we last saw, or somebody else has moved it (FORMAT §2).

A ref is accepted where it stands when it leads back to that commit by commits that only add what a run's folder may
hold. Anything else is kept under `refs/rejected/<run>/<commit>` and the ref put back, by comparison, under our lock.
A commit that is not in the repository is no claim: a backup that was restored is older than an index beside it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core import layout
from ..core.checks import CommitFacts, is_receipt
from ..core.names import run_component
from ..core.receipts import load
from ..errors import HermesError, IntegrityError, StoreFailure
from . import peek
from .durability import Disk
from .ports import Problem, Rejected
from .refs import Move, Refs
from .sealing import Sealed
from .snapshots import Snapshot, Snapshots
from .trees import Item
from .verify import HashedObjects, step_facts, verify_run
from .verify_seals import verify_seals

REJECTED = "refs/rejected/"
_REPLACE = "refs/replace/"

# Runs whose newest commit is remembered, so that an append need not ask the index.
_REMEMBERED = 4096


class Trust:
    """What is ours in a repository. Thread-safe."""

    def __init__(self, repository: Path, refs: Refs, snapshots: Snapshots, sealed: Sealed, disk: Disk) -> None:
        self._repository = repository
        self._refs = refs
        self._snapshots = snapshots
        self._sealed = sealed
        self._disk = disk
        self._hashed = HashedObjects(repository, disk)
        self._seen: OrderedDict[str, str] = OrderedDict()
        self._guard = threading.Lock()

    def close(self) -> None:
        self._hashed.close()

    # -- looking ---------------------------------------------------------------------------------------------

    def verify(self, tip: bytes, *, newest: bool = False) -> list[Problem]:
        """The problems of the run whose commit `tip` is, the `newest` or another; nothing read before is believed."""
        snapshots = Snapshots(self._hashed)
        run = snapshots.at(tip)
        problems = verify_run(snapshots, run)
        sealed = self._as_sealed(run) if newest else None
        if sealed and sealed.oid != run.run_folder().oid and self._is_still_at(run):
            message = f"holds {run.folder} as it is not at {run.tip.hex()[:12]}"
            problems.append(Problem(run.run_id, "", peek.LEDGER, message))
        return problems

    def _is_still_at(self, run: Snapshot) -> bool:
        """Whether it has not gone on, and been sealed, while it was looked at."""
        component = run_component(run.run_id)
        try:
            found = peek.read_ref(self._repository, peek.RUNS + component) or self._sealed.tip(component, by_seal=True)
        except IntegrityError:
            return True
        return found == run.tip.hex()

    def _as_sealed(self, run: Snapshot) -> Item | None:
        try:
            return self._snapshots.trees.find(self._sealed.root(), run.folder)
        except IntegrityError:
            # What is wrong with the ledger is no fault of the run; `verify_seals` tells of it.
            return None

    def verify_seals(self) -> list[Problem]:
        """The problems of the ledger branch, and what makes git show something else than what is recorded."""
        problems = list(self._replacements())
        try:
            newest = peek.read_ref(self._repository, peek.LEDGER)
        except IntegrityError as error:
            return [*problems, Problem("", "", peek.LEDGER, error.message, error.hint or "")]
        return [*problems, *(verify_seals(Snapshots(self._hashed), newest) if newest else ())]

    def _replacements(self) -> Iterator[Problem]:
        """We read objects by their own names; plain git, which people read with, lets others stand in for them."""
        for ref in sorted(peek.all_refs(self._repository, _REPLACE)):
            oid = ref.removeprefix(_REPLACE)
            yield Problem("", oid, ref, "makes git show something else in its place", f"git replace -d {oid[:12]}")
        if (self._repository / "info" / "grafts").exists():
            yield Problem("", "", "info/grafts", "makes git show other parents than commits have", "remove the file")

    def rejected(self) -> Iterator[Rejected]:
        """What was moved and put back, until somebody deletes the ref that keeps it."""
        for ref, commit in sorted(peek.all_refs(self._repository, REJECTED).items()):
            yield Rejected(self._run_id(ref, commit), commit, ref)

    def goes_on_from(self, run_id: str, tip: str) -> bool:
        """Whether the run still leads back to its commit `tip`, or `tip` is no commit of it that is here.

        Raises StoreFailure when that cannot be read now: what is somebody's must not be taken for nobody's.
        """
        known = self._ours(run_id, tip)
        if known is None:
            return True
        component = run_component(run_id)
        try:
            found = peek.read_ref(self._repository, peek.RUNS + component) or self._sealed.tip(component, by_seal=True)
        except IntegrityError:
            return False
        return found == tip or (bool(found) and self._accepts(known, bytes.fromhex(found)))

    # -- putting back ----------------------------------------------------------------------------------------

    def moved(self, run_id: str, tip: str) -> None:
        """This process has moved the run to `tip`."""
        with self._guard:
            self._seen[run_id] = tip
            self._seen.move_to_end(run_id)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    def current(self, run_id: str, tip: str | None) -> str | None:
        """The tip to append to, given what the ref says: ours again if somebody has moved it. Under our lock."""
        with self._guard:
            seen = self._seen.get(run_id)
        if seen is None or seen == tip or self.goes_on_from(run_id, seen):
            return tip
        return seen if self._restore(run_id, seen) else tip

    def put_back(self, run_id: str, tip: str, settle: Callable[[str], None]) -> bool:
        """Make the run go on from `tip`; whether its ref had to be moved for that.

        `settle`, called under the run's lock, waits for what others are putting into git.
        """
        if self.goes_on_from(run_id, tip):
            return False
        with self._refs.locked([run_id]):
            settle(run_id)
            return not self.goes_on_from(run_id, tip) and self._restore(run_id, tip)

    def hold_to(self, run_id: str, tip: str) -> bool:
        """The same for a tip that was acknowledged before its ref moved: whether the run leads back to it now."""
        known = self._ours(run_id, tip)
        if known is None or not self._leads_back(known):
            # Of a copy, perhaps, that lacks what it goes on from: git could read nothing of such a run any more.
            return False
        return self.goes_on_from(run_id, tip) or self._restore(run_id, tip)

    def _leads_back(self, known: Snapshot) -> bool:
        try:
            return all(commit.parents for _, commit in self._snapshots.first_parents(known.tip))
        except IntegrityError:
            return False

    def _restore(self, run_id: str, tip: str) -> bool:
        ref = peek.RUNS + run_component(run_id)
        try:
            found = peek.read_ref(self._repository, ref)
        except IntegrityError:
            # A file that holds no commit id cannot be compared; `doctor` says what to do with it.
            return False
        with contextlib.closing(self._disk.barrier()) as barrier:
            moves = [Move(ref, found, tip)]
            if found and self._snapshots.objects.has(bytes.fromhex(found)):
                kept = f"{REJECTED}{run_component(run_id)}/{found}"
                moves.insert(0, Move(kept, peek.read_ref(self._repository, kept), found))
            return self._refs.move(moves, barrier)[-1]

    def _ours(self, run_id: str, tip: str) -> Snapshot | None:
        try:
            known = self._snapshots.at(bytes.fromhex(tip))
        except StoreFailure:
            raise  # what cannot be read now says nothing about whose it is
        except (HermesError, ValueError):
            return None
        return known if known.run_id == run_id else None

    def _accepts(self, known: Snapshot, found: bytes) -> bool:
        try:
            new = []
            for oid, commit in self._snapshots.first_parents(found):
                if oid == known.tip:
                    break
                new.append((oid, commit))
            else:
                return False
            seq: int | None = known.last_seq
            for oid, commit in reversed(new):
                facts = step_facts(self._snapshots, oid, commit, known.folder)
                seq = self._after(facts, seq, found)
        except StoreFailure:
            raise
        except HermesError:
            return False
        return seq is not None

    def _after(self, facts: CommitFacts, seq: int | None, found: bytes) -> int | None:
        """The newest seq after a commit that only adds what may be added, else None. Raises HermesError."""
        touched = {*facts.changed, *facts.removed} - {layout.README}
        if seq is None or facts.parents != 1 or touched or facts.outside or facts.odd or facts.unreadable:
            return None
        if any(layout.place(path) is None for path in facts.added):
            return None
        run = self._snapshots.at(found)
        receipts = [
            load(path, data, lambda sha256: run.content(layout.artifact(sha256)) or b"")
            for path, data in facts.added.items()
            if is_receipt(path)
        ]
        seqs = sorted(receipt.seq for receipt in receipts)
        if seqs and seqs[0] <= seq:
            return None
        return seqs[-1] if seqs else seq

    def _run_id(self, ref: str, commit: str) -> str:
        """The run whose ref it was. The commit may be of another run, or of none: the ref's folder decides."""
        component = ref.removeprefix(REJECTED).partition("/")[0]
        try:
            run_id = self._snapshots.at(bytes.fromhex(commit)).run_id
        except (HermesError, ValueError):
            return component
        return run_id if run_component(run_id) == component else component
