"""What a runner writes, and in which order: git first, then the queue and the index in one transaction.

So a process that dies between any two lines leaves either nothing, or a receipt that the next runner finds
(SEMANTICS §4).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.receipts import Draft, Receipt
from ..core.summary import summarize
from ..store.index import review_rows
from ..store.ports import Appended, Entry, Head, Outcome, PathTaken, Stale
from ..store.queue_port import Change, Claim, Indexed, Lease, Stuck, Work
from .bodies import Bodies, Held
from .drafts import Stamp
from .slices import Decider

if TYPE_CHECKING:
    from ..workspace import Workspace

log = logging.getLogger("hermes_workflows.runner")


@dataclass
class Pending:
    """A change that is being put together: one transaction when it is applied."""

    finish: list[Lease] = field(default_factory=list)
    release: list[Lease] = field(default_factory=list)
    offer: list[Work] = field(default_factory=list)
    withdraw: list[tuple[str, str]] = field(default_factory=list)
    index: dict[str, Indexed] = field(default_factory=dict)
    stuck: list[Stuck] = field(default_factory=list)
    unstuck: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.finish, self.release, self.offer, self.withdraw, self.index, self.stuck, self.unstuck))

    def change(self, claim: Claim | None) -> Change:
        return Change(
            finish=tuple(self.finish),
            release=tuple(self.release),
            offer=tuple(self.offer),
            withdraw=tuple(self.withdraw),
            index=tuple(self.index.values()),
            stuck=tuple(self.stuck),
            unstuck=tuple(self.unstuck),
            claim=claim,
        )


class Records:
    """The ledger, the bodies and the pending change of one database, kept in step."""

    def __init__(self, workspace: Workspace, runner_id: str, decider: Decider) -> None:
        self.workspace = workspace
        self.runner_id = runner_id
        self.bodies = Bodies(workspace, decider, log.warning)
        self.pending = Pending()

    def apply(self, claim: Claim | None) -> list[Lease]:
        """Write the pending change and claim work, in one transaction."""
        change = self.pending.change(claim)
        self.pending = Pending()
        try:
            return self.workspace.queue.apply(change, self.runner_id)
        except Exception:
            # Not written: the next turn writes it; every part of a change may be applied twice.
            self.pending = _joined(change, self.pending)
            raise

    def stamp(self, held: Held | None) -> Stamp:
        return Stamp(self.runner_id, held.loaded.code if held else "")

    def decide(self, held: Held, drafts: Sequence[Draft], files: Mapping[str, bytes] | None = None) -> bool:
        """Append decisions one by one, each at the seq it was made at.

        False when the run has moved on: the body has seen what is new, and must be asked again.
        """
        extra = {**held.new_sources(), **(files or {})}
        for draft in drafts:
            entry = Entry(held.run_id, (draft,), decided_at=held.summary.seq, files=extra)
            (outcome,) = self.workspace.ledger.append([entry])
            if not isinstance(outcome, Appended):
                self.bodies.current(held.run_id)
                return False
            self.bodies.absorb(held, outcome)
            self.bodies.current(held.run_id)
            extra = {}
        return True

    def note(self, held: Held, draft: Draft) -> Outcome:
        """Append something that is no decision: it is rebased when the run has moved on."""
        (outcome,) = self.workspace.ledger.append([Entry(held.run_id, (draft,), files=held.new_sources())])
        if isinstance(outcome, Appended):
            self.bodies.absorb(held, outcome)
        return outcome

    def append_results(self, drafts: Mapping[str, Sequence[Draft]]) -> None:
        """Commit what is ready, all runs with one durability barrier; index them and queue their next decision.

        Where somebody's receipt was first at a path, ours is dropped: the first one wins, whoever held the lease.
        """
        waiting = {run_id: list(each) for run_id, each in drafts.items() if each}
        while waiting:
            entries = [self._entry(run_id, each) for run_id, each in waiting.items()]
            outcomes = self.workspace.ledger.append(entries)
            waiting = {
                entry.run_id: left
                for entry, outcome in zip(entries, outcomes, strict=True)
                if (left := self._after(entry, outcome))
            }

    def _entry(self, run_id: str, drafts: Sequence[Draft]) -> Entry:
        held = self.bodies.get(run_id)
        return Entry(run_id, tuple(drafts), files=held.new_sources() if held else {})

    def _after(self, entry: Entry, outcome: Outcome) -> list[Draft]:
        """What of an entry must be tried again."""
        assert not isinstance(outcome, Stale)  # results carry no `decided_at`
        if isinstance(outcome, PathTaken):
            log.info("%s: %s was recorded by somebody else first", entry.run_id, outcome.winner.path)
            self.pending.offer.append(Work(entry.run_id, "workflow"))
            return [draft for draft in entry.drafts if draft.path != outcome.winner.path]
        if isinstance(outcome, Appended):
            self._indexed_after(entry.run_id, outcome)
            self.pending.offer.append(Work(entry.run_id, "workflow"))
        return []

    def _indexed_after(self, run_id: str, appended: Appended) -> None:
        held = self.bodies.get(run_id)
        if held is None:
            self.index_from_receipts(run_id)
        else:
            self.bodies.absorb(held, appended)
            self.index(held)

    def index(self, held: Held) -> None:
        """Put the run's row into the pending change, unless it stands there or in the index as it is."""
        if held.indexed == held.head.tip:
            return
        held.indexed = held.head.tip
        rows = tuple(review_rows(held.run_id, held.unindexed))
        held.unindexed.clear()
        self._put_index(Indexed(held.summary, held.head.tip, held.head.folder, reviews=rows))

    def index_from_receipts(self, run_id: str) -> tuple[Head, list[Receipt]]:
        """The same for a run whose body nobody here holds."""
        head, receipts = self.workspace.ledger.read(run_id)
        rows = tuple(review_rows(run_id, receipts))
        self._put_index(Indexed(summarize(run_id, receipts), head.tip, head.folder, head.sealed, rows))
        return head, receipts

    def _put_index(self, indexed: Indexed) -> None:
        run_id = indexed.summary.run_id
        earlier = self.pending.index.get(run_id)
        rows = {row.key: row for row in (*(earlier.reviews if earlier else ()), *indexed.reviews)}
        self.pending.index[run_id] = Indexed(
            indexed.summary, indexed.tip, indexed.folder, indexed.sealed, tuple(rows.values())
        )


def _joined(change: Change, newer: Pending) -> Pending:
    return Pending(
        finish=[*change.finish, *newer.finish],
        release=[*change.release, *newer.release],
        offer=[*change.offer, *newer.offer],
        withdraw=[*change.withdraw, *newer.withdraw],
        index={**{each.summary.run_id: each for each in change.index}, **newer.index},
        stuck=[*change.stuck, *newer.stuck],
        unstuck=[*change.unstuck, *newer.unstuck],
    )
