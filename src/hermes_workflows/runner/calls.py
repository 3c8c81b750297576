"""From an open call to a queue row, and from a claimed row back to something that can be executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core import layout
from ..core.calls import Call
from ..core.divergence import AnyCall
from ..core.receipts import Draft
from ..store.queue_port import Kind, Lease, Work
from ..store.row_keys import EXPIRY
from . import children, drafts
from .bodies import Held
from .evidence import read_evidence
from .records import Records

_AT_ONCE = 100
# The note that stands in git before a call of this kind is offered to anybody.
_NOTES: Mapping[str, Callable[[str], str]] = {
    "child": layout.start,
    "review": layout.request,
    "signal": layout.start,
    "timer": layout.timer_start,
}


def next_notes(records: Records, held: Held) -> tuple[list[Draft], Mapping[str, bytes]] | None:
    """What must stand in git before the work of the last decisions may begin, with the files of its commit.

    A question has a commit of its own, with the README for whoever is asked. All due times and children share one.
    """
    now = records.workspace.clock.now()
    stamp = records.stamp(held)
    made: list[Draft] = []
    for call in held.unoffered.values():
        if call.kind not in _NOTES or _NOTES[call.kind](call.key) in held.live.noted:
            continue
        if call.kind == "timer":
            made.append(drafts.timer_started(call, now, stamp))
            continue
        assert isinstance(call, Call)  # only timers may be the loop's own
        if call.kind == "review":
            question = drafts.review_requested(call, now, stamp, **_read_for(records, call))
            return [question], records.readme(held, question)
        if call.kind == "signal":
            made.append(drafts.wait_started(call, now, stamp))
        else:
            child = children.free_id(records, held, call.key, (draft.receipt for draft in made))
            made.append(drafts.child_started(call, child, now, stamp))
    return (made[:_AT_ONCE], {}) if made else None


def _read_for(records: Records, call: Call[Any]) -> dict[str, Any]:
    """The texts that a question shows, and how many secrets were taken out of them."""
    evidence: Any = call.request["evidence"]
    paths = [each["path"] for each in evidence if each["path"] is not None]
    counts: Counter[str] = Counter()
    read = read_evidence(records.workspace.root, paths, records.workspace.redactor, counts)
    return {"evidence": read, "redactions": dict(counts) or None}


def works_of(held: Held, call: AnyCall) -> Iterator[Work]:
    """The queue rows of an open call: who executes it, and when its time is over."""
    note = held.live.noted.get(_NOTES[call.kind](call.key)) if call.kind in _NOTES else None
    if call.kind == "timer":
        assert note is not None
        assert note.execution.due_at is not None
        yield Work(held.run_id, "timer", call.key, call.fingerprint, note.execution.due_at.timestamp())
        return
    if note is not None and (expires := note.execution.expires_at) is not None:
        yield Work(held.run_id, "timer", EXPIRY + call.key, call.fingerprint, expires.timestamp())
    # People and signals answer without having been offered anything.
    if call.kind not in ("review", "signal"):
        kind: Kind = call.kind  # type: ignore[assignment]  # every other kind of call has a row of its name
        yield Work(held.run_id, kind, call.key, call.fingerprint, name=limited_name(call))


def limited_name(call: AnyCall) -> str:
    """Whom a limit may name: agents are limited one by one, everything else by its kind."""
    return str(call.request["name"]) if call.kind == "agent" else ""


def open_call(held: Held, lease: Lease) -> Call[Any] | None:
    """The call a claimed row stands for, if the body still waits for it."""
    call = held.live.outstanding.get(lease.work.key)
    if not isinstance(call, Call) or call.kind == "timer" or call.fingerprint != lease.work.fingerprint:
        return None
    return call


def changed_request(held: Held, lease: Lease) -> bool:
    """Whether the row stands for an open call of another version of the code, which nobody has executed."""
    call = held.live.outstanding.get(lease.work.key)
    return call is not None and call.fingerprint != lease.work.fingerprint
