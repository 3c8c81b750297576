"""The net below everything else: runs that nothing would ever move, because what was queued for them is lost."""

from __future__ import annotations

from ..core.summary import OpenReview, OpenWait, RunSummary
from ..store.queue_port import Work
from ..store.row_keys import DEADLINE, EXPIRY
from .about import about
from .records import Records, log

# How often a runner looks, in seconds, and the share of the time that looking may take.
LOOK_SECONDS = 10.0
_SHARE = 0.01
# How many runs it looks at more closely before it goes on with its work: a thousand take a quarter of a second.
_AT_ONCE = 100
# Calls that people and others answer without having been offered anything.
_OTHERS_ANSWER = ("review", "signal")


class Unqueued:
    """Looks now and then. A run that rightly has nothing in the queue is looked at once for each of its receipts."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._clock = records.workspace.clock
        self._look_at = 0.0
        self._rightly: dict[str, str] = {}

    def look(self) -> None:
        """Raises StoreFailure, TemporarilyLocked."""
        begin = self._clock.elapsed()
        if begin < self._look_at:
            return
        found = dict(self._records.workspace.queue.unqueued())
        self._rightly = {run_id: tip for run_id, tip in self._rightly.items() if found.get(run_id) == tip}
        left = [run_id for run_id in found if run_id not in self._rightly]
        for run_id in left[:_AT_ONCE]:
            if self._lacks_something(run_id):
                self._queue(run_id)
            else:
                self._rightly[run_id] = found[run_id]
        pause = (self._clock.elapsed() - begin) / _SHARE
        self._look_at = begin + (pause if left[_AT_ONCE:] else max(LOOK_SECONDS, pause))

    def _lacks_something(self, run_id: str) -> bool:
        workspace = self._records.workspace
        indexed = workspace.queue.indexed(run_id)
        if indexed is None or indexed.summary.ended or indexed.summary.home != workspace.ledger.home:
            return False
        held = self._records.bodies.get(run_id)
        if held is not None and any(call.kind not in _OTHERS_ANSWER for call in held.live.outstanding.values()):
            return True
        asked, limits = _waits_for(indexed.summary)
        return not asked or not limits <= {row.work.key for row in workspace.queue.work(run_id)}

    def _queue(self, run_id: str) -> None:
        with about(run_id):
            log.warning("nothing was queued for it; it is queued again")
        # Of the runners that have its body each finds it: which of them takes the row makes no difference then.
        if held := self._records.bodies.get(run_id):
            self._records.offer_anew(held)
        else:
            self._records.pending.offer.append(Work(run_id, "workflow"))


def _waits_for(summary: RunSummary) -> tuple[bool, set[str]]:
    """Whether it waits for somebody's answer, and the rows that limit how long."""
    asked: list[OpenReview | OpenWait] = [*summary.open_reviews.values(), *summary.open_waits.values()]
    limits = {EXPIRY + each.key for each in asked if each.expires_at is not None}
    if summary.deadline_at is not None and summary.cancel_requested is None:
        limits.add(DEADLINE)
    return bool(asked), limits
