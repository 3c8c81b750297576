"""From an open call to a queue row, and from a claimed row back to something that can be executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..authoring.step import Step
from ..core import layout
from ..core.calls import Call, TimerCall
from ..core.divergence import AnyCall
from ..core.receipts import Draft
from ..store.queue_port import Kind, Lease, Work
from . import children, drafts
from .bodies import CannotAdvance, Held
from .records import Records

# Rows that belong to no call of the body. `$` cannot occur in a key.
EXPIRY = "$expiry/"
CLEANUP = "$cleanup"
END = "$end"
# What a stuck mark says of a step whose effect may have happened.
NEEDS_DECISION = "needs-decision"
_AT_ONCE = 100


def next_notes(records: Records, held: Held) -> tuple[list[Draft], Mapping[str, bytes]] | None:
    """What must stand in git before the work of the last decisions may begin, with the files of its commit.

    A question has a commit of its own, with the README for whoever is asked. All due times and children share one.
    """
    now = records.workspace.clock.now()
    stamp = records.stamp(held)
    made: list[Draft] = []
    for call in held.unoffered.values():
        if isinstance(call, TimerCall):
            if layout.timer_start(call.key) not in held.live.noted:
                made.append(drafts.timer_started(call, now, stamp))
        elif call.kind == "review" and layout.request(call.key) not in held.live.noted:
            question = drafts.review_requested(call, now, stamp)
            return [question], records.readme(held, question)
        elif call.kind == "child" and layout.start(call.key) not in held.live.noted:
            child = children.free_id(records, held, call.key, (draft.receipt for draft in made))
            made.append(drafts.child_started(call, child, now, stamp))
    return (made[:_AT_ONCE], {}) if made else None


def work_of(held: Held, call: AnyCall) -> Work | None:
    """The queue row of an open call; None for a review that never expires, which only a person can end."""
    if isinstance(call, TimerCall):
        due = held.live.noted[layout.timer_start(call.key)].execution.due_at
        assert due is not None
        return Work(held.run_id, "timer", call.key, call.fingerprint, visible_at=due.timestamp())
    if call.kind == "review":
        expires = held.live.noted[layout.request(call.key)].execution.expires_at
        if expires is None:
            return None
        return Work(held.run_id, "timer", EXPIRY + call.key, call.fingerprint, visible_at=expires.timestamp())
    kind: Kind = call.kind  # type: ignore[assignment]  # every other kind of call has a row of its name
    return Work(held.run_id, kind, call.key, call.fingerprint)


def open_call(held: Held, lease: Lease) -> Call[Any] | None:
    """The call a claimed row stands for, if the body still waits for it."""
    call = held.live.outstanding.get(lease.work.key)
    if call is None or isinstance(call, TimerCall) or call.fingerprint != lease.work.fingerprint:
        return None
    return call


def changed_request(held: Held, lease: Lease) -> bool:
    """Whether the row stands for an open call of another version of the code, which nobody has executed."""
    call = held.live.outstanding.get(lease.work.key)
    return call is not None and call.fingerprint != lease.work.fingerprint


def promise(records: Records, held: Held, call: Call[Any]) -> bool:
    """Commit the intent of an at-most-once step before it may run; False when the run has moved on.

    Raises CannotAdvance when there is one already: then nobody but a person can know whether the effect happened.
    """
    definition = call.spec.options
    if not isinstance(definition, Step) or not definition.at_most_once:
        return True
    if layout.start(call.key) not in held.live.noted:
        intent = drafts.intent(call, records.workspace.clock.now(), records.stamp(held))
        return records.decide(held, [intent]) and call.key in held.live.outstanding
    raise CannotAdvance(
        NEEDS_DECISION,
        f"step {call.key} may run at most once and was begun, but left no result",
        f"find out whether its effect happened; `hermes-workflows cancel {held.run_id}` ends the run",
        key=call.key,
        code=held.loaded.code,
    )


def serve_timer(records: Records, lease: Lease) -> None:
    """A row that time made visible."""
    held = records.bodies.current(lease.work.run_id)
    key = lease.work.key
    if key.startswith(EXPIRY):
        _expire(records, held, key.removeprefix(EXPIRY))
    elif (call := held.live.outstanding.get(key)) is not None and isinstance(call, TimerCall):
        started = held.live.noted.get(layout.timer_start(key))
        if started is not None:
            now = records.workspace.clock.now()
            records.append_results({held.run_id: [drafts.timer_fired(call, started, now, records.stamp(held))]})
    else:
        # A deadline of the run itself, which another process may have set; or a timer nobody waits for any more.
        now = records.workspace.clock.now().timestamp()
        if key == CLEANUP:
            held.cleanup_deadline = now
        elif key == END:
            held.end_deadline = now
        records.pending.offer.append(Work(held.run_id, "workflow"))
    records.pending.finish.append(lease)


def _expire(records: Records, held: Held, key: str) -> None:
    request = held.asked(key)
    if request is None:
        return
    now = records.workspace.clock.now()
    records.append_results({held.run_id: [drafts.review_ended(request, "expired", now, records.stamp(held))]})
