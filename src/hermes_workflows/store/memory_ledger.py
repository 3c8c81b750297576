"""The ledger in memory: the twin of the git one, held to the same contract suite.

It keeps bytes, not values, and reads receipts back from them, so a workflow tested on it sees exactly what it would
see after a restart.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core import layout
from ..core.checks import CommitFacts, check_run
from ..core.messages import person_name, receipts_message
from ..core.names import check_run_id, run_component
from ..core.receipts import Receipt
from ..errors import Conflict, IntegrityError, NotFound
from .admission import Recorded, admit, check_entry, check_start, read_receipt
from .adopting import Taken, adopted_files, adopted_receipts, replaced
from .ports import Adopted, Appended, Entry, Head, Outcome, Problem, Proposal, Rejected

_START = "0" * 40
_COMMIT_ID = re.compile(r"[0-9a-f]{7,40}")


@dataclass
class _Run:
    """A run's files, and after which commit each receipt came. `seqs` are the receipts' own, in that order."""

    run_id: str
    folder: str
    moved: int = 0
    tip: str = _START
    last_seq: int = -1
    sealed: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)
    commits: dict[str, int] = field(default_factory=lambda: {_START: -1})
    history: list[CommitFacts] = field(default_factory=list)
    readmes: dict[str, bytes] = field(default_factory=dict)

    def content(self, path: str) -> bytes | None:
        return self.files.get(path)

    def has(self, path: str) -> bool:
        # A folder is in the way of a file as well, as in git.
        return path in self.files or any(name.startswith(path + "/") for name in self.files)

    def head(self) -> Head:
        return Head(self.run_id, self.tip, self.folder, self.sealed)

    def receipts(self, after: int, until: float = math.inf) -> list[Receipt]:
        return [read_receipt(self, path) for path, seq in self.seqs.items() if after < seq <= until]

    def content_at(self, commit: str, path: str) -> bytes | None:
        """A file as one commit has it: every one but the README is there from some commit on."""
        found = None
        for facts in self.until(commit):
            found = facts.added.get(path, found)
            if path == layout.README:
                found = self.readmes.get(facts.commit, found)
        return found

    def until(self, commit: str) -> list[CommitFacts]:
        return self.history[: [facts.commit for facts in self.history].index(commit) + 1]


@dataclass(frozen=True)
class _AtCommit:
    """A run's folder as one of its commits has it."""

    run: _Run
    commit: str

    def content(self, path: str) -> bytes | None:
        return self.run.content_at(self.commit, path)


class MemoryLedger:
    """`ports.Ledger` without a disk. Thread-safe; its runs end with it."""

    def __init__(self, home: str = "memory") -> None:
        self._home = home
        self._runs: dict[str, _Run] = {}
        self._in_ledger: set[str] = set()
        self._moves = itertools.count(1)
        self._lock = threading.RLock()

    @property
    def home(self) -> str:
        return self._home

    def create(self, entry: Entry, day: str, adopted: Adopted | None = None) -> Appended:
        check_start(entry, day)
        with self._lock:
            for existing in self._runs:
                if existing.lower() == entry.run_id.lower():
                    told = "" if existing == entry.run_id else f" as {existing}, which differs only in case"
                    raise Conflict(f"run {entry.run_id} exists already{told}", hint="choose another id")
            run = _Run(entry.run_id, f"runs/{day}/{run_component(entry.run_id)}")
            taken = self._adopt(adopted) if adopted else None
            outcome = self._append(run, replace(entry, decided_at=None), taken)
            assert isinstance(outcome, Appended)  # the folder was empty, so nothing could refuse the entry
            self._runs[entry.run_id] = run
            return outcome

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        for entry in entries:
            check_entry(entry)
        with self._lock:
            runs = [self._run(entry.run_id) for entry in entries]
            return [self._append(run, entry) for run, entry in zip(runs, entries, strict=True)]

    def head(self, run_id: str) -> Head | None:
        with self._lock:
            run = self._runs.get(check_run_id(run_id))
            return run.head() if run else None

    def ahead(self) -> Container[str]:
        return ()

    def is_behind(self, run_id: str) -> bool:
        return False

    def take_over(self, run_id: str) -> None:
        pass

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        with self._lock:
            run = self._run(run_id)
            after = -1 if since is None else run.commits.get(since)
            if after is None:
                raise IntegrityError(f"commit {since} is not one of run {run_id}")
            return run.head(), run.receipts(after)

    def file(self, run_id: str, path: str) -> bytes | None:
        with self._lock:
            return self._run(run_id).content(path)

    def at(self, commit: str) -> tuple[Head, list[Receipt]]:
        with self._lock:
            run, whole = self._at(commit)
            return replace(run.head(), tip=whole, sealed=False), run.receipts(-1, run.commits[whole])

    def content(self, tip: str, path: str) -> bytes | None:
        with self._lock:
            run, whole = self._at(tip)
            return run.content_at(whole, path)

    def paths(self, tip: str) -> list[str]:
        with self._lock:
            run, whole = self._at(tip)
            return sorted(path for path in run.files if run.content_at(whole, path) is not None)

    def fetched(self) -> Iterator[tuple[str, Head]]:
        """None: a ledger in memory has no remotes."""
        return iter(())

    def heads(self, known: Mapping[str, str] | None = None) -> Iterator[Head]:
        with self._lock:
            runs = sorted(self._runs.values(), key=lambda run: (run.sealed, -run.moved))
            return iter([run.head() for run in runs])

    def seal(self, keep: int = 1000) -> int:
        """As in git: `sealed` in a head says that only the ledger still knows the run."""
        with self._lock:
            finished = [run for run in self._runs.values() if run.has(layout.RESULT) and not run.sealed]
            finished.sort(key=lambda run: run.moved)
            new = {run.run_id for run in finished} - self._in_ledger
            self._in_ledger |= new
            for run in finished[: max(len(finished) - keep, 0)]:
                run.sealed = True
            return len(new)

    def verify(self, run_id: str, tip: str | None = None) -> list[Problem]:
        with self._lock:
            run = self._run(run_id)
            if tip is not None and tip not in run.commits:
                raise NotFound(f"there is no commit {tip} of run {run_id}")
            return [
                Problem(run_id, finding.commit, finding.path, finding.message)
                for finding in check_run(run_id, run.until(tip or run.tip), run.content)
            ]

    def verify_seals(self) -> list[Problem]:
        """None, and nothing to put back: a memory has no refs that somebody else could move."""
        return []

    def goes_on_from(self, run_id: str, tip: str) -> bool:
        return True

    def put_back(self, run_id: str, tip: str) -> bool:
        return False

    def rejected(self) -> Iterator[Rejected]:
        return iter(())

    def proposals(self, *, fetched: bool) -> Iterator[Proposal]:
        """None: nobody can push into memory."""
        return iter(())

    def settle(self, proposal: Proposal, *, refused: bool) -> None:
        """Nothing: there is no proposal."""

    def land(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _run(self, run_id: str) -> _Run:
        run = self._runs.get(check_run_id(run_id))
        if run is None:
            raise NotFound(f"there is no run {run_id}", hint="`hermes-workflows list` shows the runs of this workspace")
        return run

    def _at(self, commit: str) -> tuple[_Run, str]:
        wanted = commit if _COMMIT_ID.fullmatch(commit) else "none"
        found = [
            (run, each.commit) for run in self._runs.values() for each in run.history if each.commit.startswith(wanted)
        ]
        if len(found) > 1:
            shown = ", ".join(whole[:12] for _, whole in found[:5])
            raise Conflict(f"several commits begin with {commit}: {shown}", hint="write more of the id")
        if not found:
            raise NotFound(
                f"{commit!r} is no commit of a run", hint="`hermes-workflows log` shows the newest commit of each run"
            )
        return found[0]

    def _adopt(self, adopted: Adopted) -> Taken:
        source, whole = self._at(adopted.commit)
        there = _AtCommit(source, whole)
        receipts = adopted_receipts(there, adopted)
        wanted = adopted_files(there, source.files, receipts)
        files = {path: data for path in wanted if (data := there.content(path)) is not None}
        taken = replaced(adopted, receipts)
        return replace(taken, files={**files, **taken.files})

    def _append(self, run: _Run, entry: Entry, taken: Taken | None = None) -> Outcome:
        answer = admit(entry, run, run.head())
        if not isinstance(answer, Recorded):
            return answer
        if taken:
            answer = Recorded({**taken.files, **answer.files}, (*answer.receipts, *taken.receipts))
        base = run.tip
        run.moved = next(self._moves)
        changed = tuple(path for path in answer.files if path in run.files)
        run.files.update(answer.files)
        run.seqs.update((receipt.path, receipt.seq) for receipt in answer.receipts)
        run.last_seq = max((receipt.seq for receipt in answer.receipts), default=run.last_seq)
        run.tip = _commit_id(base, entry.run_id, answer)
        run.commits[run.tip] = run.last_seq
        if layout.README in answer.files:
            run.readmes[run.tip] = answer.files[layout.README]
        added = {path: data for path, data in answer.files.items() if path not in changed}
        message = receipts_message(entry.run_id, answer.receipts, len(answer.files))
        author = next((person_name(draft.author.name) for draft in entry.drafts), "")
        run.history.append(CommitFacts(run.tip, 1, added, changed, message=message, author=author))
        return Appended(run.head(), base, answer.receipts)


def _commit_id(base: str, run_id: str, recorded: Recorded) -> str:
    """As in git, the same content on the same base has the same id, and nothing else has."""
    digest = hashlib.sha1(f"{base} {run_id}".encode(), usedforsecurity=False)
    for path, data in sorted(recorded.files.items()):
        digest.update(path.encode() + hashlib.sha1(data, usedforsecurity=False).digest())
    return digest.hexdigest()
