"""What entries come to on top of a run as it stands: their outcomes, and the objects that recording them makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.clock import Clock
from ..core.messages import receipts_message
from ..core.receipts import Author
from . import commits
from .adding import Addition, Note, add
from .admission import Recorded, admit
from .adopting import Taken
from .ports import Appended, Entry, Outcome
from .snapshots import Snapshot
from .trees import Trees, Write


@dataclass(frozen=True)
class Plan:
    """What one run's entries come to: their outcomes, the snapshot after them, and the ref's old value."""

    run_id: str
    old: str | None
    outcomes: list[Outcome]
    after: Snapshot | None


class Planner:
    """For one ledger; `committer` stands in every commit."""

    def __init__(self, trees: Trees, committer: Author, clock: Clock) -> None:
        self._trees = trees
        self._committer = committer
        self._clock = clock

    def plan(
        self,
        start: Snapshot,
        old: str | None,
        entries: Sequence[Entry],
        write: Write,
        taken: Taken | None = None,
        note: Note | None = None,
    ) -> Plan:
        """Ask for each entry in turn, on top of what the ones before it add, and write what is admitted.

        `taken` is what a new run adopts: it stands in the commit of its start. `note` is told of each commit before
        its trees are made.
        """
        current = start
        outcomes: list[Outcome] = []
        for entry in entries:
            answer = admit(entry, current, current.head())
            if isinstance(answer, Recorded):
                if taken:
                    answer = Recorded({**answer.files, **taken.files}, (*answer.receipts, *taken.receipts))
                addition = self._addition(current, entry, answer)
                if note:
                    note(addition)
                base, current = current.tip.hex(), self._commit(current, addition, answer, write)
                outcomes.append(Appended(current.head(), base, answer.receipts))
            else:
                outcomes.append(answer)
        return Plan(start.run_id, old, outcomes, current if current is not start else None)

    def _addition(self, before: Snapshot, entry: Entry, recorded: Recorded) -> Addition:
        words = commits.words(
            (before.tip,),
            receipts_message(before.run_id, recorded.receipts, len(recorded.files)),
            commits.first_author((draft.author for draft in entry.drafts), self._committer),
            self._committer,
            commits.commit_time(self._clock.now()),
        )
        return Addition(words, {f"{before.folder}/{path}": data for path, data in recorded.files.items()})

    def _commit(self, before: Snapshot, addition: Addition, recorded: Recorded, write: Write) -> Snapshot:
        tip, root = add(self._trees, before.root, addition, write)
        seq = max((receipt.seq for receipt in recorded.receipts), default=before.last_seq)
        return Snapshot(before.run_id, tip, root, before.folder, before.store, before.sealed, seq)
