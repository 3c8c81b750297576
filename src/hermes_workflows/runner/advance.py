"""Advancing a run: its body decides, and the outside is brought to what it wants, in the order a crash forgives.

Notes go into git before the work they speak of is queued; rows are withdrawn before the run's end is written.
Each decision is appended at the seq it was made at; after a lost race everything here starts over from the receipts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..core import layout
from ..core.divergence import AnyCall
from ..core.receipts import Draft, ReviewReceipt
from ..errors import TemporarilyLocked
from ..store.row_keys import ASKED, EXPIRY, REMIND
from . import calls, children, drafts, endings, notices, reusing, timing
from .bodies import CannotAdvance, Held, refuse_paused
from .records import Records, log

# Lost races in a row; each is lost to a receipt that somebody did write.
_ROUNDS = 100

Stop = Callable[[str, str], None]
"""Stops what this process executes for a run (its id) and a key."""


def advance(records: Records, run_id: str, stop: Stop) -> None:
    """Bring a run as far as it goes without new results. Raises CannotAdvance and Over."""
    for _ in range(_ROUNDS):
        held = records.bodies.current(run_id)
        refuse_paused(held)
        endings.watch_cleanup(records, held)
        timing.watch_deadline(records, held)
        children.watch_parent(records, held)
        if _settle(records, held, stop):
            return
    raise TemporarilyLocked(f"{run_id} changes faster than it can be advanced", hint="it is tried again")


def _settle(records: Records, held: Held, stop: Stop) -> bool:
    """False when the run has moved on meanwhile."""
    while held.end is None and (batch := calls.next_notes(records, held) or reusing.next_results(records, held)):
        if not records.decide(held, *batch):
            return False
    for line in held.logs:
        log.info("%s", records.workspace.redactor.text(line))
    held.logs.clear()
    while held.unwithdrawn:
        call = next(iter(held.unwithdrawn.values()))
        if not _withdraw(records, held, call, stop):
            return False
        del held.unwithdrawn[call.key]
    if held.end is not None:
        return endings.finish(records, held)
    if held.stuck is not None:
        _deadlocked(held, held.stuck)
    _queue(records, held)
    records.index(held)
    return True


def _queue(records: Records, held: Held) -> None:
    """Offer what the body waits for, and take back what was only there for questions that are closed."""
    for call in held.unoffered.values():
        records.pending.offer.extend(calls.works_of(held, call))
        question = held.live.noted.get(layout.request(call.key)) if call.kind == "review" else None
        if isinstance(question, ReviewReceipt):
            records.pending.offer.extend(notices.rows(records, held.run_id, question))
    held.unoffered.clear()
    for key in held.closed:
        records.pending.withdraw += [(held.run_id, mark + key) for mark in (EXPIRY, ASKED, REMIND)]
    held.closed.clear()


def _withdraw(records: Records, held: Held, call: AnyCall, stop: Stop) -> bool:
    """Take a call back that the body has given up, wherever it stands. Done again after a crash: all of it may be."""
    ended = _given_up(records, held, call)
    if ended is not None and not records.decide(held, [ended]):
        return False
    records.pending.withdraw += [(held.run_id, call.key), (held.run_id, EXPIRY + call.key)]
    stop(held.run_id, call.key)
    if call.kind == "child":
        children.cancel_dropped(records, held, call.key)
    return True


def _given_up(records: Records, held: Held, call: AnyCall) -> Draft | None:
    """What people and those who send signals should find: that nobody waits for them any more."""
    now, stamp = records.workspace.clock.now(), records.stamp(held)
    if call.kind == "review" and (request := held.asked(call.key)) is not None:
        return drafts.review_ended(request, "withdrawn", now, stamp)
    if call.kind == "signal" and (start := held.live.noted.get(layout.start(call.key))) is not None:
        return drafts.wait_given_up(start, now, stamp)
    return None


def _deadlocked(held: Held, why: str) -> NoReturn:
    raise CannotAdvance("deadlock", why, "await a call, or let the body return", code=held.loaded.code)
