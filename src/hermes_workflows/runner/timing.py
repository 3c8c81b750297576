"""What time brings: timers fire, what others should have answered runs over its time, and so may a whole run.

Each is a row of the queue that becomes visible when it is due. The rows can be lost with the database: whoever
rebuilds the body offers them again, from the notes in git that say when.
"""

from __future__ import annotations

from contextlib import suppress

from ..core import layout
from ..core.receipts import Draft, Provenance
from ..core.summary import RunSummary
from ..core.timestamps import parse_time
from ..errors import Conflict
from ..store.queue_port import Lease, Work
from ..store.row_keys import CLEANUP, DEADLINE, END, EXPIRY
from . import children, drafts, notices
from .bodies import Held
from .records import Records


def serve(records: Records, lease: Lease) -> None:
    """A row that time made visible."""
    run_id, key = lease.work.run_id, lease.work.key
    if key == DEADLINE:
        # Without the body: a run whose code cannot be loaded has a deadline too.
        overrun(records, run_id)
    elif key.startswith(EXPIRY):
        if not _expired(records, run_id, key.removeprefix(EXPIRY)):
            records.pending.release.append(lease)
            return
    else:
        _serve(records, records.bodies.current(run_id), key)
    records.pending.finish.append(lease)


def _expired(records: Records, run_id: str, key: str) -> bool:
    """False when the run has moved on meanwhile and the row must be looked at again."""
    try:
        return _expire(records, records.bodies.current(run_id), key)
    finally:
        # Also when the run is over, or somebody died after he had recorded it: people have not been told yet.
        notices.tell_expiry(records, run_id, key)


def _serve(records: Records, held: Held, key: str) -> None:
    call = held.live.outstanding.get(key)
    if call is not None and call.kind == "timer":
        started = held.live.noted.get(layout.timer_start(key))
        if started is not None:
            now = records.workspace.clock.now()
            records.append_results({held.run_id: [drafts.timer_fired(call, started, now, records.stamp(held))]})
        return
    # A limit of the run's end, which another process may have set; or a timer nobody waits for any more.
    now_seconds = records.workspace.clock.now().timestamp()
    if key == CLEANUP:
        held.cleanup_deadline = now_seconds
    elif key == END:
        held.end_deadline = now_seconds
    records.pending.offer.append(Work(held.run_id, "workflow"))


def _expire(records: Records, held: Held, key: str) -> bool:
    """The end of a call that nobody has answered in time."""
    call = held.live.outstanding.get(key)
    now, stamp = records.workspace.clock.now(), records.stamp(held)
    if (request := held.asked(key)) is not None:
        records.append_results({held.run_id: [drafts.review_ended(request, "expired", now, stamp)]})
    elif call is not None and (start := held.live.noted.get(layout.start(key))) is not None:
        late = drafts.ran_over(start, now, stamp)
        if call.kind == "signal":
            # As a decision: a signal that came at the same instant has another path, and would come to nobody.
            return _decided(records, held, late)
        if children.take_end(records, held.run_id, start):
            return True
        # Its end first: a process that dies in between must not leave a child that nobody waits for.
        children.cancel_dropped(records, held, key)
        records.append_results({held.run_id: [late]})
    return True


def _decided(records: Records, held: Held, late: Draft) -> bool:
    if not records.decide(held, [late]):
        return False
    records.index(held)
    records.pending.offer.append(Work(held.run_id, "workflow"))
    return True


def watch_deadline(records: Records, held: Held) -> None:
    """A run may have a deadline: a row of the queue wakes whoever is a runner then."""
    deadline = held.live.started.execution.deadline_at
    if deadline is None or held.watches_deadline or held.summary.cancel_requested is not None:
        return
    held.watches_deadline = True
    records.pending.offer.append(Work(held.run_id, "timer", DEADLINE, visible_at=deadline.timestamp()))


def is_overdue(records: Records, summary: RunSummary) -> bool:
    """Whether a run has passed its deadline and nobody has said so."""
    if summary.deadline_at is None or summary.cancel_requested is not None or summary.ended:
        return False
    return records.workspace.clock.now() >= parse_time(summary.deadline_at)


def overrun(records: Records, run_id: str) -> None:
    """Ask a run to end because its time is over: it is cancelled like by a person, and cleans up."""
    by = Provenance(kind="policy", by="deadline", channel="runner")
    with suppress(Conflict):  # it has ended by itself meanwhile
        records.workspace.control(run_id, "cancel", reason="deadline", by=by)
