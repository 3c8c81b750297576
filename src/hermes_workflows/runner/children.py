"""Child runs: started by the parent's row, reported back when they end, checked again in case nobody reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ..core import layout
from ..core.calls import Call
from ..core.receipts import CallReceipt, Provenance, Receipt, RunEnded, load
from ..core.summary import RunSummary
from ..errors import Conflict
from ..store.queue_port import Lease, Work
from . import drafts
from .bodies import CannotAdvance, Held, Over
from .records import Records
from .reusing import child_of_then

# The parent's row is looked at again this often, in seconds: the report of a child's end is only a shortcut.
RECHECK_SECONDS = 5.0
_MAX_ID = 100


def child_id(parent: str, key: str, *, marked: bool = False) -> str:
    """`<parent>.<key>`, with slashes as dots; marked with a hash when it would be too long for an id, or is taken."""
    wanted = f"{parent}.{key.replace('/', '.')}"
    if len(wanted) <= _MAX_ID and not marked:
        return wanted
    digest = hashlib.sha256(f"{parent}/{key}".encode()).hexdigest()[:12]
    return f"{wanted[: _MAX_ID - 13]}-{digest}"


def free_id(records: Records, held: Held, key: str, others: Iterable[Receipt]) -> str:
    """The id of a child to come: a run of somebody else may have it, and `a/b` and `a.b` would share one.

    `others` are the notes that are about to be written together with this child's.
    """
    wanted = child_id(held.run_id, key)
    if records.workspace.ledger.head(wanted) is not None:
        free = _is_ours(records, wanted, held.run_id, key)
    else:
        free = all(note.execution.child != wanted for note in (*held.live.noted.values(), *others))
    return wanted if free else child_id(held.run_id, key, marked=True)


def _is_ours(records: Records, child: str, parent: str, key: str) -> bool:
    data = records.workspace.ledger.file(child, layout.RUN)
    started = load(layout.RUN, data, lambda sha: _artifact(records, child, sha)) if data else None
    return started is not None and started.execution.parent == {"run": parent, "key": key}


def serve(records: Records, held: Held, call: Call[Any], lease: Lease) -> None:
    """Start the child if it is not there, take its result if it has ended, otherwise look again later."""
    start = held.live.noted.get(layout.start(call.key))
    if start is None:
        # Its note comes with the next decision, and offers the row again.
        records.pending.offer.append(Work(held.run_id, "workflow"))
        records.pending.finish.append(lease)
        return
    child = _id_of(start)
    if records.workspace.ledger.head(child) is None:
        _start(records, held, call, start)
        _check_wanted(records, held, call.key, child)
    elif not _is_ours(records, child, held.run_id, call.key):
        raise _taken(call, child)
    if not _report(records, held.run_id, start, child):
        again = records.workspace.clock.now().timestamp() + RECHECK_SECONDS
        records.pending.offer.append(Work(held.run_id, "child", call.key, call.fingerprint, visible_at=again))
    records.pending.finish.append(lease)


def _id_of(start: Receipt) -> str:
    return start.execution.child or ""


def _start(records: Records, held: Held, call: Call[Any], start: Receipt) -> None:
    """With the input of the note: that of the call may be another one, for which an operator has accepted this."""
    workspace, child = records.workspace, _id_of(start)
    loaded = workspace.loader.load(workspace.loader.ref_of(call.spec.options))
    started = workspace.started(loaded, start.request["input"], {"run": held.run_id, "key": call.key})
    try:
        workspace.begin(child, loaded, child_of_then(records, held, call.key, started))
    except Conflict as error:
        # Another runner that served this row before us has started it, or somebody took the id.
        if workspace.ledger.head(child) is None or not _is_ours(records, child, held.run_id, call.key):
            raise _taken(call, child) from error


def _check_wanted(records: Records, held: Held, key: str, child: str) -> None:
    """The parent may have given the child up while it was being started, when there was nothing yet to cancel."""
    try:
        wanted = key in records.bodies.current(held.run_id).live.outstanding
    except Over:
        cancel(records, held.run_id, child)
        raise
    if not wanted:
        cancel(records, held.run_id, child)


def watch_parent(records: Records, held: Held) -> None:
    """A child whose parent has ended without it is cancelled: whoever started it may have died before it could see."""
    parent = held.live.started.execution.parent
    if parent is None or held.looked_for_parent:
        return
    held.looked_for_parent = True
    ledger = records.workspace.ledger
    if ledger.head(parent["run"]) is not None and ledger.file(parent["run"], layout.RESULT) is not None:
        cancel(records, parent["run"], held.run_id)


def _taken(call: Call[Any], child: str) -> CannotAdvance:
    reason = f"child call {call.key} is to be the run {child}, and another run has that id"
    return CannotAdvance("child-id", reason, f"hermes-workflows status {child}", key=call.key)


def report_end(records: Records, summary: RunSummary) -> None:
    """A run has ended: if it is somebody's child, its parent's receipt follows at once."""
    if not summary.parent:
        return
    parent, key = summary.parent["run"], summary.parent["key"]
    start = _start_note(records, parent, key)
    if start is not None and _report(records, parent, start, summary.run_id):
        records.pending.withdraw.append((parent, key))


def _start_note(records: Records, parent: str, key: str) -> Receipt | None:
    if records.workspace.ledger.head(parent) is None:
        return None
    path = layout.start(key)
    data = records.workspace.ledger.file(parent, path)
    return load(path, data, lambda sha: _artifact(records, parent, sha)) if data is not None else None


def _artifact(records: Records, run_id: str, sha256: str) -> bytes:
    return records.workspace.ledger.file(run_id, layout.artifact(sha256)) or b""


def _report(records: Records, parent: str, start: Receipt, child: str) -> bool:
    """Append the parent's receipt of an ended child; False while it lives."""
    head = records.workspace.ledger.head(child)
    data = records.workspace.ledger.file(child, layout.RESULT) if head else None
    if head is None or data is None:
        return False
    ended = load(layout.RESULT, data, lambda sha: _artifact(records, child, sha))
    assert isinstance(ended, RunEnded)
    assert isinstance(start, CallReceipt)
    stamp = drafts.Stamp(records.runner_id, start.execution.code or "")
    draft = drafts.child_ended(start, ended, head.tip, records.workspace.clock.now(), stamp)
    records.append_results({parent: [draft]})
    return True


def take_end(records: Records, parent: str, start: Receipt) -> bool:
    """Append the parent's receipt of a child that has ended and was not reported yet; False while it lives."""
    return _report(records, parent, start, _id_of(start))


def cancel_dropped(records: Records, held: Held, key: str) -> None:
    """The body no longer waits for a child: the child is cancelled, and cleans up by itself."""
    start = held.live.noted.get(layout.start(key))
    if start is not None and start.kind == "child":
        cancel(records, held.run_id, _id_of(start), now=held.summary.cancel_now)


def cancel(records: Records, parent: str, child: str, *, now: bool = False) -> None:
    """Ask for the end of a child that nobody waits for; `now` without its cleanup, as its parent's was skipped."""
    if records.workspace.ledger.head(child) is None:
        return
    by = Provenance(kind="policy", by=parent, channel="runner")
    with suppress(Conflict):  # it has ended by itself meanwhile
        records.workspace.control(child, "cancel", reason=f"{parent} no longer waits for it", by=by, now=now)
