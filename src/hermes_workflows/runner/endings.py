"""How a run ends: what is still executing may leave its receipts, open questions are withdrawn, then `result.json`."""

from __future__ import annotations

from ..core import layout
from ..core.readme import render
from ..core.receipts import Draft
from ..store.queue_port import Work
from . import children, drafts
from .bodies import Held
from .calls import CLEANUP, END
from .records import Records

# SEMANTICS §5.
GRACE_SECONDS = 10.0
CLEANUP_SECONDS = 60.0


def finish(records: Records, held: Held) -> None:
    """End the run, now or as soon as its executors are done; called again by whatever moves the run."""
    if _must_wait(records, held):
        return
    while not _append_end(records, held):
        if held.summary.ended:
            return
    records.index(held)
    for row in records.workspace.queue.work(held.run_id):
        if row.work.kind != "workflow":
            records.pending.withdraw.append((held.run_id, row.work.key))
    summary = held.summary
    records.bodies.drop(held.run_id)
    children.report_end(records, summary)


def _must_wait(records: Records, held: Held) -> bool:
    rows = records.workspace.queue.work(held.run_id)
    executing = [row for row in rows if row.work.kind in ("agent", "bash", "step") and row.status in _EXECUTING]
    if not executing:
        return False
    now = records.workspace.clock.now().timestamp()
    if held.end_deadline is None:
        held.end_deadline = now + GRACE_SECONDS
        records.pending.offer.append(Work(held.run_id, "timer", END, visible_at=held.end_deadline))
    return now < held.end_deadline


_EXECUTING = frozenset({"leased", "withdrawn"})


def _append_end(records: Records, held: Held) -> bool:
    assert held.end is not None
    now = records.workspace.clock.now()
    stamp = records.stamp(held)
    withdrawn: list[Draft] = [
        drafts.review_ended(held.live.noted[layout.request(key)], "withdrawn", now, stamp)
        for key in held.summary.open_reviews
        if layout.request(key) in held.live.noted
    ]
    if withdrawn and not records.decide(held, withdrawn):
        return False
    end = drafts.run_ended(held.end, held.live.started.execution.started_at, now, stamp)
    summary = held.summary.apply([end.receipt.at(held.summary.seq + 1)])
    return records.decide(held, [end], {layout.README: render(summary, held.telling)})


def watch_cleanup(records: Records, held: Held) -> None:
    """A cancelled body may clean up for a minute; a row of the queue wakes whoever is a runner then."""
    if not held.live.cancelling:
        return
    now = records.workspace.clock.now().timestamp()
    if held.cleanup_deadline is None:
        held.cleanup_deadline = now + CLEANUP_SECONDS
        records.pending.offer.append(Work(held.run_id, "timer", CLEANUP, visible_at=held.cleanup_deadline))
    elif now >= held.cleanup_deadline:
        records.bodies.cut_off(held, f"cleanup was cut off after {CLEANUP_SECONDS:g} s")
