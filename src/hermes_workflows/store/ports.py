"""What the rest of the project may ask of a ledger (git or memory) and of a queue (SQLite or another engine).

Contract suites in `tests/contract` hold every implementation to the same behaviour.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..core.receipts import Draft, Receipt


@dataclass(frozen=True)
class Entry:
    """Receipts of one run that are ready in the same instant.

    `decided_at` is the seq a decision was made at: the entry is refused as `Stale` when the run has moved on.
    None means a result or an outside note, which is rebased onto a moved tip.
    `files` are paths relative to the run's folder: sources and README.md; blobs travel with their drafts.
    """

    run_id: str
    drafts: tuple[Draft, ...]
    decided_at: int | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Adopted:
    """What a new run takes over from another one, as `commit` has it: these receipts, their bytes and seq unchanged.

    What they stand on comes along: artifacts and sources. `instead` are receipts that take the place of others, at
    the seq they name.
    """

    commit: str
    paths: tuple[str, ...]
    instead: tuple[Draft, ...] = ()


@dataclass(frozen=True)
class Head:
    """A run as the ledger knows it: `tip` is the newest commit, `folder` its place in the tree."""

    run_id: str
    tip: str
    folder: str
    sealed: bool = False


@dataclass(frozen=True)
class Appended:
    """Durable. `base` is the tip it was put on: not the one the caller knew when somebody else came first."""

    head: Head
    base: str
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True)
class PathTaken:
    """Somebody's receipt was first at this path; nothing of the entry was recorded."""

    head: Head
    winner: Receipt


@dataclass(frozen=True)
class Stale:
    """A decision met a run that has moved on; deliver what is new and decide again."""

    head: Head


@dataclass(frozen=True)
class Ended:
    """The run has its result.json; nothing may follow it."""

    head: Head


Outcome = Appended | PathTaken | Stale | Ended


@dataclass(frozen=True)
class Problem:
    """Something `verify` found: where (commit, path), what, and what to do about it."""

    run_id: str
    commit: str
    path: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Proposal:
    """What a branch that a person has pushed says about a run of ours (`answers`).

    `answers` are the responses it adds, by their path in the run's folder; `faults` is why none of them may be taken.
    `signature` is what git says of it: good, bad, unknown or none; `signer` is who a good one belongs to.
    """

    run_id: str
    ref: str
    commit: str
    author: str
    email: str
    answers: Mapping[str, bytes] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    signature: str = "none"
    signer: str = ""


@dataclass(frozen=True)
class Rejected:
    """Where somebody had put a run's ref, and the ref that keeps that commit since it was put back."""

    run_id: str
    commit: str
    ref: str


class Ledger(Protocol):
    """The receipts of a workspace. Thread-safe. Everything returned as recorded is durable."""

    @property
    def home(self) -> str:
        """The workspace's random id; a runner advances only runs that name it."""

    def create(self, entry: Entry, day: str, adopted: Adopted | None = None) -> Appended:
        """Start a run: genesis ← run.json, in `runs/<day>/<id>/` (`day` is `yyyy-mm-dd`).

        What it adopts stands in the same commit, so nobody ever sees the one without the other.
        Raises Conflict when the id exists, living or sealed, or equals one except for case; NotFound and
        IntegrityError when the commit is not here, is no run's, or has no such receipt.
        """

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Record what is ready, with one durability barrier for all; one outcome an entry, in order.

        Raises NotFound for an unknown run, TemporarilyLocked or StoreFailure when nothing could be recorded.
        """

    def head(self, run_id: str) -> Head | None:
        """Where a run stands, living or sealed."""

    def ahead(self) -> Container[str]:
        """The runs of which more may be recorded than anybody else can read now; ask *before* reading."""

    def is_behind(self, run_id: str) -> bool:
        """Whether a living process has recorded more of the run than can be read here: it is suspended, or as slow."""

    def take_over(self, run_id: str) -> None:
        """Have all that others have recorded of the run where it can be read, although its writer is suspended.

        What that one records afterwards goes on from there. Raises TemporarilyLocked, StoreFailure.
        """

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        """All receipts in seq order, or those added after the commit `since`. Raises NotFound, IntegrityError."""

    def file(self, run_id: str, path: str) -> bytes | None:
        """A file of the run's folder at its tip."""

    def at(self, commit: str) -> tuple[Head, list[Receipt]]:
        """The run as `commit` has it, whosever it is: its head with that commit as tip, and its receipts until then.

        `commit` has 7 to 40 hex digits; a seal stands for the run it sealed.
        Raises NotFound for what is no commit of a run, Conflict when several begin so, IntegrityError.
        """

    def content(self, tip: str, path: str) -> bytes | None:
        """A file of the run's folder as the commit `tip` has it. Raises NotFound, IntegrityError."""

    def paths(self, tip: str) -> list[str]:
        """Every file of a run's folder as that commit has it. Raises NotFound."""

    def fetched(self) -> Iterator[tuple[str, Head]]:
        """Runs that came from elsewhere, each with the name of its remote; no id of one remote twice."""

    def heads(self, known: Mapping[str, str] | None = None) -> Iterator[Head]:
        """Every run, living ones first, then sealed ones, newest first; no id twice.

        `known` are tips of living runs, by id. Runs that stand there need not be looked at: they come in any order,
        and their heads may lack the folder.
        """

    def seal(self, keep: int = 1000) -> int:
        """Graft finished runs into the ledger branch, drop the refs of all but the newest `keep`; idempotent."""

    def verify(self, run_id: str, tip: str | None = None) -> list[Problem]:
        """Check history, names, schemas, fingerprints, seq, provenance, artifacts and trailers of one run.

        `tip` is a commit of it, which need not be its newest one or ours. Raises NotFound, IntegrityError.
        """

    def verify_seals(self) -> list[Problem]:
        """Check that each commit of the ledger branch grafts exactly the run that it names, and nothing hides any."""

    def goes_on_from(self, run_id: str, tip: str) -> bool:
        """Whether the run leads back to `tip`, its newest commit when it was last seen, by receipts that were added.

        Also when `tip` is no commit of the run that is here: then nothing can be said.
        """

    def put_back(self, run_id: str, tip: str) -> bool:
        """Make the run go on from `tip` again if it does not; what it was moved to is kept. Whether it was needed."""

    def rejected(self) -> Iterator[Rejected]:
        """What runs were moved to before they were put back, until somebody deletes it."""

    def proposals(self, *, fetched: bool) -> Iterator[Proposal]:
        """Answers on branches that were pushed here and, with `fetched`, on those that came from elsewhere."""

    def settle(self, proposal: Proposal, *, refused: bool) -> None:
        """A pushed proposal was read: its branch goes, and what was refused is kept under another name."""

    def land(self) -> None:
        """Have everything that is recorded where plain git shows it. Raises StoreFailure, TemporarilyLocked."""

    def close(self) -> None: ...
