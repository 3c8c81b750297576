"""What a runner writes, and in which order: git first, then the queue and the index in one transaction.

So a process that dies between any two lines leaves either nothing, or a receipt that the next runner finds
(SEMANTICS §4).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core import layout
from ..core.receipts import Draft
from ..core.summary import RunSummary, summarize
from ..core.timestamps import render_time
from ..errors import HermesError, NotFound, StoreFailure, TemporarilyLocked
from ..store.index import review_rows
from ..store.liveness import Process
from ..store.ports import Appended, Entry, Outcome, PathTaken, Stale
from ..store.queue_port import PAUSED, Change, Claim, Indexed, Lease, ReviewRow, Stuck, Work
from ..store.row_keys import CLEANUP, END
from ..store.rows import merged
from .about import about
from .bodies import Bodies, CannotAdvance, Held
from .bursts import Burst
from .drafts import Stamp
from .intents import kept_late
from .slices import Decider

if TYPE_CHECKING:
    from ..workspace import Workspace

log = logging.getLogger("hermes_workflows.runner")


@dataclass
class Pending:
    """A change that is being put together: one transaction when it is applied. `moved` are runs without a row in it."""

    enter: list[Lease] = field(default_factory=list)
    finish: list[Lease] = field(default_factory=list)
    release: list[Lease] = field(default_factory=list)
    offer: list[Work] = field(default_factory=list)
    withdraw: list[tuple[str, str]] = field(default_factory=list)
    index: dict[str, Indexed] = field(default_factory=dict)
    moved: dict[str, Held] = field(default_factory=dict)
    stuck: list[Stuck] = field(default_factory=list)
    unstuck: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.index or self.moved) or self.is_urgent

    @property
    def is_urgent(self) -> bool:
        """Whether it does more than bring the index up to date."""
        return bool(self.finish or self.offer or self.has_other_work)

    @property
    def has_other_work(self) -> bool:
        """Whether it does more than end calls, offer some, and bring the index up to date."""
        return any((self.enter, self.release, self.withdraw, self.stuck, self.unstuck))

    def change(self, claim: Claim | None) -> Change:
        return Change(
            enter=tuple(self.enter),
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

    def __init__(self, workspace: Workspace, runner_id: str, decider: Decider, process: Process | None = None) -> None:
        self.workspace = workspace
        self.runner_id = runner_id
        # Whom intents name: the process that may still be at it when nobody hears from it any more.
        self.process = process or Process.current()
        self.bodies = Bodies(workspace, decider, log.warning)
        self.pending = Pending()
        self.burst = Burst(workspace.clock)
        # The runs whose calls somebody else has recorded first, of what was recorded last.
        self.contested: set[str] = set()
        # Whether a run has ended here since somebody last asked, who will seal it.
        self.ended_runs = False
        self._epoch = workspace.queue.epoch()

    def apply(self, claim: Claim | None) -> list[Lease]:
        """Write the pending change and claim work, in one transaction."""
        self.burst.tell(self.pending)
        self._index_moved()
        change = self.pending.change(claim)
        self.pending = Pending()
        try:
            leases = self.workspace.queue.apply(change, self.runner_id)
        except Exception:
            # Not written: the next turn writes it; every part of a change may be applied twice.
            self.pending = _joined(change, self.pending)
            raise
        if (epoch := self.workspace.queue.epoch()) != self._epoch:
            self._epoch = epoch
            self._rows_are_gone()
        return leases

    def _rows_are_gone(self) -> None:
        """The queue was made anew from receipts, which know of no rows of calls: offer those of all live bodies."""
        log.warning("%s was made anew; open calls are queued again", self.workspace.paths.sqlite)
        for held in self.bodies.all():
            self.offer_anew(held)

    def offer_anew(self, held: Held) -> None:
        """Of what this run has in the queue and in the index nothing may be there: have all of it written again."""
        held.unoffered = dict(held.live.outstanding)
        held.indexed = None
        held.unindexed = held.account.reviews
        held.watches_deadline = False
        self.pending.offer.append(Work(held.run_id, "workflow"))
        for key, moment in ((CLEANUP, held.cleanup_deadline), (END, held.end_deadline)):
            if moment is not None:
                self.pending.offer.append(Work(held.run_id, "timer", key, visible_at=moment))

    def stuck(self, run_id: str, why: CannotAdvance, key: str = "") -> None:
        """Say that this runner cannot move the run; nobody claims its rows until somebody lifts the mark."""
        with about(run_id, why.key or key):
            # A pause is somebody's wish, and nothing is wrong.
            how, what = (logging.INFO, "") if why.kind == PAUSED else (logging.WARNING, "stuck: ")
            log.log(how, "%s%s", what, why.reason.splitlines()[0])
        since = render_time(self.workspace.clock.now())
        self.pending.stuck.append(
            Stuck(run_id, why.kind, why.reason, why.hint, why.key or key, why.code, since, self.runner_id)
        )

    def is_answered(self, work: Work) -> bool:
        """Whether the call of this row has its receipt. Raises NotFound for a run that is gone."""
        return self.workspace.ledger.file(work.run_id, layout.step(work.key)) is not None

    def stamp(self, held: Held) -> Stamp:
        return Stamp(self.runner_id, held.loaded.code)

    def decide(self, held: Held, drafts: Sequence[Draft], files: Mapping[str, bytes] | None = None) -> bool:
        """Append decisions that are ready in the same instant, at the seq they were made at.

        False when the run has moved on: what was decided may no longer hold, and the body must be asked again.
        """
        entry = Entry(held.run_id, tuple(drafts), held.summary.seq, {**held.sources, **(files or {})})
        (outcome,) = self.workspace.ledger.append([entry])
        if not isinstance(outcome, Appended):
            return False
        self.bodies.absorb(held, outcome)
        self.bodies.deliver(held)
        return True

    def readme(self, held: Held, *drafts: Draft) -> Mapping[str, bytes]:
        """The run's README as it will be with these drafts, to travel in their commit."""
        seq = held.summary.seq
        new = [draft.receipt.at(seq + number) for number, draft in enumerate(drafts, 1)]
        return {layout.README: held.account.readme(new)}

    def append_results(self, drafts: Mapping[str, Sequence[Draft]]) -> None:
        """Commit what is ready, all runs with one durability barrier; index them and queue their next decision.

        Where somebody's receipt was first at a path, ours is dropped: the first one wins, whoever held the lease.
        Raises StoreFailure and TemporarilyLocked when the disk does not take them now.
        """
        waiting = {run_id: list(each) for run_id, each in drafts.items() if each}
        while waiting:
            entries = [self._entry(run_id, each) for run_id, each in waiting.items()]
            outcomes = self._append(entries)
            waiting = {
                entry.run_id: left
                for entry, outcome in zip(entries, outcomes, strict=True)
                if outcome is not None and (left := self._after(entry, outcome))
            }

    def _append(self, entries: Sequence[Entry]) -> Sequence[Outcome | None]:
        """One outcome an entry; None for a run that can take none, which must not hold up the others."""
        try:
            return self.workspace.ledger.append(entries)
        except (StoreFailure, TemporarilyLocked):
            raise
        except HermesError as error:
            if len(entries) > 1:
                return [outcome for entry in entries for outcome in self._append([entry])]
            (entry,) = entries
            with about(entry.run_id):
                log.error("%d results cannot be recorded: %s", len(entry.drafts), error.message)
            if not isinstance(error, NotFound):
                self.stuck(entry.run_id, CannotAdvance(error.code, error.message, error.hint or ""))
            return [None]

    def _entry(self, run_id: str, drafts: Sequence[Draft]) -> Entry:
        held = self.bodies.get(run_id)
        return Entry(run_id, tuple(drafts), files=held.sources if held else {})

    def _after(self, entry: Entry, outcome: Outcome) -> list[Draft]:
        """What of an entry must be tried again."""
        assert not isinstance(outcome, Stale)  # results carry no `decided_at`
        if isinstance(outcome, PathTaken):
            with about(entry.run_id, outcome.winner.key):
                log.info("%s was recorded by somebody else first", outcome.winner.path)
            self.contested.add(entry.run_id)
            self.pending.offer.append(Work(entry.run_id, "workflow"))
            left = {draft.path: draft for draft in entry.drafts}
            late = kept_late(self.workspace.ledger, entry.run_id, left.pop(outcome.winner.path), outcome.winner)
            return [*left.values(), *([late] if late else [])]
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
        """Have the run's row written with the pending change, unless it stands in the index as it is."""
        if held.indexed != held.head.tip:
            self.pending.moved[held.run_id] = held

    def _index_moved(self) -> None:
        """Put the rows of runs that went on into the pending change: once for all that they did since the last one."""
        for held in self.pending.moved.values():
            held.indexed = held.head.tip
            rows = tuple(review_rows(held.run_id, held.unindexed))
            held.unindexed.clear()
            self._put_index(Indexed(held.summary, held.head.tip, held.head.folder, reviews=rows))
        self.pending.moved.clear()

    def index_from_receipts(self, run_id: str) -> RunSummary:
        """The same for a run whose body nobody here holds."""
        head, receipts = self.workspace.ledger.read(run_id)
        summary = summarize(run_id, receipts)
        rows = tuple(review_rows(run_id, receipts))
        self.pending.moved.pop(run_id, None)
        self._put_index(Indexed(summary, head.tip, head.folder, head.sealed, rows))
        return summary

    def _put_index(self, indexed: Indexed) -> None:
        run_id = indexed.summary.run_id
        self.ended_runs = self.ended_runs or indexed.summary.ended
        earlier = self.pending.index.get(run_id)
        rows: dict[str, ReviewRow] = {}
        for row in (*(earlier.reviews if earlier else ()), *indexed.reviews):
            rows[row.key] = merged(rows.get(row.key), row)
        self.pending.index[run_id] = Indexed(
            indexed.summary, indexed.tip, indexed.folder, indexed.sealed, tuple(rows.values())
        )


def _joined(change: Change, newer: Pending) -> Pending:
    return Pending(
        enter=[*change.enter, *newer.enter],
        finish=[*change.finish, *newer.finish],
        release=[*change.release, *newer.release],
        offer=[*change.offer, *newer.offer],
        withdraw=[*change.withdraw, *newer.withdraw],
        index={**{each.summary.run_id: each for each in change.index}, **newer.index},
        moved=newer.moved,
        stuck=[*change.stuck, *newer.stuck],
        unstuck=[*change.unstuck, *newer.unstuck],
    )
