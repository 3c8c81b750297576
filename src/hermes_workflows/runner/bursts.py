"""Bursts in the queue: steps of one run that follow each other at once, of which the queue is told together.

When a run's only call is a step that ends within milliseconds, and the body then asks for one more, that one is
executed at once, under a lease of this runner's own making. The row of the last step that the queue knows, the burst's
anchor, stays leased meanwhile and stands for all of them. So a burst needs no transaction, and a runner that dies in it
leaves a row whose call has its receipt: whoever claims it sees that, and goes on from the receipts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..authoring.step import Step
from ..core.clock import Clock
from ..store.liveness import new_token
from ..store.queue_port import Lease, Work

if TYPE_CHECKING:
    from .records import Pending, Records
    from .results import Finished

TOLD_WITHIN = 0.05
"""Seconds that the queue may lack a call that executes, and the index its newest receipts: as long as a look lasts."""

_NO_CALLS = ("workflow", "notify", "timer")

QUICK = 0.02
"""A step that takes longer, in seconds, begins no burst: a transaction is little beside it."""


class Burst:
    """The open burst of one database, if there is one. For whoever works with its dispatcher; others only read it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._anchor: Lease | None = None
        self._own: Lease | None = None
        self._tell_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._anchor is not None

    @property
    def is_due(self) -> bool:
        """Whether the queue must be told now what executes."""
        return self.is_open and self._clock.elapsed() >= self._tell_at

    def known(self, lease: Lease) -> Lease:
        """The lease that stands in the queue for this one."""
        anchor = self._anchor
        return anchor if anchor is not None and lease is self._own else lease

    def goes_on(self, lease: Lease, key: str, pending: Pending) -> Lease | None:
        """A lease for the step `key`, which follows that of `lease`; None when the queue is to give it.

        What is pending is taken over, if it is only the end of the one and the offer of the other.
        """
        work = _all_that_is_wanted(lease, key, pending)
        if work is None or self.is_due:
            return None
        if self._anchor is None:
            self._anchor, self._tell_at = lease, self._clock.elapsed() + TOLD_WITHIN
        pending.finish.clear()
        pending.offer.clear()
        self._own = Lease(work, new_token(), claims=1)
        return self._own

    def tell(self, pending: Pending) -> None:
        """Have the queue told, with what is pending, of the call that executes, or that none does any more."""
        if self._anchor is None or self._own is None:
            return
        if self._own in pending.finish:
            pending.finish.remove(self._own)
        else:
            pending.enter.append(self._own)
        pending.finish.append(self._anchor)
        self._anchor = self._own = None


def may_follow(options: object) -> bool:
    """Whether a step may be executed before the queue knows of it: one that is begun at most once must be seen."""
    return isinstance(options, Step) and not (options.at_most_once or options.process)


def is_quick(finished: Finished) -> bool:
    """Whether a burst may begin or go on with this result."""
    lease, seconds = finished.lease, (finished.ended - finished.started).total_seconds()
    return may_follow(finished.job.call.spec.options) and lease.claims == 1 and not lease.lost and seconds < QUICK


def is_anothers(records: Records, run_id: str) -> bool:
    """Whether another runner, which lives and holds its leases, may be executing what the queue does not know of.

    It is in a burst of this run when the run's only call in the queue has its receipt. Where git lacks the end of a
    burst, nobody can tell, and what is known of the run is not to be decided from.
    """
    ledger = records.workspace.ledger
    rows = [row for row in records.workspace.queue.work(run_id) if row.work.kind not in _NO_CALLS]
    leased = [row for row in rows if row.status == "leased" and row.runner != records.runner_id]
    if ledger.is_behind(run_id):
        if not leased:
            # It is suspended, and has been for longer than its leases.
            ledger.take_over(run_id)
        return bool(leased)
    return len(rows) == 1 and bool(leased) and records.is_answered(rows[0].work)


def put_off(records: Records, work: Work) -> Work:
    """The same work for a while later: by then the burst is over, or the queue knows what executes."""
    return replace(work, visible_at=records.workspace.clock.now().timestamp() + 2 * TOLD_WITHIN)


def _all_that_is_wanted(lease: Lease, key: str, pending: Pending) -> Work | None:
    """The step that is offered after the call of `lease` has ended; None when anything else is to be written."""
    if pending.finish != [lease] or len(pending.offer) != 1 or pending.has_other_work:
        return None
    (work,) = pending.offer
    follows = (work.run_id, work.key, work.kind) == (lease.work.run_id, key, "step") and not work.visible_at
    return work if follows else None
