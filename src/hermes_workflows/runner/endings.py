"""How a run ends: what is still executing may leave its receipts, open questions are withdrawn, then `result.json`."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import layout
from ..core.live import End
from ..core.readme import render
from ..core.receipts import Draft, Failure, Receipt, RunStarted
from ..core.summary import RunSummary, summarize
from ..errors import TemporarilyLocked
from ..store.ports import Appended, Ended, Entry
from ..store.queue_port import Stuck, Work
from ..store.row_keys import CLEANUP, END, EXPIRED
from . import children, drafts, intents
from .bodies import Held
from .records import Records, log

# SEMANTICS §5.
GRACE_SECONDS = 10.0
CLEANUP_SECONDS = 60.0
_EXECUTING = frozenset({"leased", "withdrawn"})
_LEAVING = frozenset({"agent", "artifact", "bash", "step"})
_ATTEMPTS = 20


def finish(records: Records, held: Held) -> bool:
    """End the run, now or as soon as its executors are done; called again by whatever moves the run.

    False when the run has moved on meanwhile.
    """
    assert held.end is not None
    if _must_wait(records, held):
        records.index(held)
        return True
    if held.summary.cancel_now:
        # Those that are cleaning up already are told, too.
        for child in held.summary.open_children.values():
            children.cancel(records, held.run_id, child, now=True)
    now = records.workspace.clock.now()
    stamp = records.stamp(held)
    for key in held.summary.open_reviews:
        request = held.asked(key)
        if request is not None and not records.decide(held, [drafts.review_ended(request, "withdrawn", now, stamp)]):
            return False
    for unknown in intents.given_up(records, held):
        if not records.decide(held, [unknown]):
            return False
    end = drafts.run_ended(held.end, held.live.started.execution.started_at, now, stamp)
    if not records.decide(held, [end], records.readme(held, end)):
        return False
    log.debug("the run is %s", held.end.status)
    records.index(held)
    records.bodies.drop(held.run_id)
    clear_up(records, held.summary)
    return True


def clear_up(records: Records, summary: RunSummary) -> None:
    """What an ended run leaves in the queue goes, and whoever waits for it hears of it. May be done twice."""
    for row in records.workspace.queue.work(summary.run_id):
        if row.work.kind != "workflow" and not row.work.key.startswith(EXPIRED):
            records.pending.withdraw.append((summary.run_id, row.work.key))
    children.report_end(records, summary)


def _must_wait(records: Records, held: Held) -> bool:
    rows = records.workspace.queue.work(held.run_id)
    # A row may outlive its receipt by a moment: only calls without one are still at it.
    executing = [row for row in rows if row.work.kind in _LEAVING and row.status in _EXECUTING]
    if not any(row.work.key in held.live.withdrawn for row in executing):
        return False
    now = records.workspace.clock.now().timestamp()
    if held.end_deadline is None:
        held.end_deadline = now + GRACE_SECONDS
        records.pending.offer.append(Work(held.run_id, "timer", END, visible_at=held.end_deadline))
    return now < held.end_deadline


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


def end_stuck(records: Records, mark: Stuck) -> None:
    """End a run that was cancelled while it cannot be advanced: without its body, and saying so."""
    run_id, ledger = mark.run_id, records.workspace.ledger
    records.bodies.drop(run_id)
    for _ in range(_ATTEMPTS):
        _, receipts = ledger.read(run_id)
        summary = summarize(run_id, receipts)
        if summary.ended:
            break
        # Before the end: a process that dies in between must not leave children that nobody waits for.
        for child in summary.open_children.values():
            children.cancel(records, run_id, child, now=summary.cancel_now)
        batch = _last_words(records, summary, receipts, mark)
        new = [each.receipt.at(summary.seq + number) for number, each in enumerate(batch, 1)]
        readme = render(summary.apply(new), [*receipts, *new])
        entry = Entry(run_id, tuple(batch), summary.seq, {layout.README: readme})
        (outcome,) = ledger.append([entry])
        if isinstance(outcome, Appended | Ended):
            break
    else:
        raise TemporarilyLocked(f"{run_id} changes faster than it can be ended", hint="it is tried again")
    clear_up(records, records.index_from_receipts(run_id))


def _last_words(records: Records, summary: RunSummary, receipts: Sequence[Receipt], mark: Stuck) -> list[Draft]:
    now = records.workspace.clock.now()
    stamp = drafts.Stamp(records.runner_id, mark.code)
    open_requests = {layout.request(key) for key in summary.open_reviews}
    withdrawn = [drafts.review_ended(each, "withdrawn", now, stamp) for each in receipts if each.path in open_requests]
    begun = {layout.start(key) for key in summary.open_intents}
    unknown = [drafts.step_unknown(each, now, stamp) for each in receipts if each.path in begun]
    reason = mark.reason.splitlines()[0]
    failure = Failure(type="CleanupSkipped", message=f"its cleanup was skipped: the run was stuck: {reason}")
    started = next((each.execution.started_at for each in receipts if isinstance(each, RunStarted)), None)
    return [*withdrawn, *unknown, drafts.run_ended(End("cancelled", error=failure), started, now, stamp)]
