"""Child runs: started by the parent's row, reported back when they end, checked again in case nobody reported."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

from ..core import layout
from ..core.calls import Call
from ..core.receipts import CallReceipt, Provenance, Receipt, RunEnded, load
from ..core.summary import RunSummary
from ..errors import Conflict
from ..store.queue_port import Lease, Work
from . import drafts
from .bodies import CannotAdvance, Held
from .records import Records

# The parent's row is looked at again this often, in seconds: the report of a child's end is only a shortcut.
RECHECK_SECONDS = 5.0
_MAX_ID = 100


def child_id(parent: str, key: str) -> str:
    """`<parent>.<key>`, with slashes as dots; cut and marked with a hash when it would be too long for an id."""
    wanted = f"{parent}.{key.replace('/', '.')}"
    if len(wanted) <= _MAX_ID:
        return wanted
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    return f"{wanted[: _MAX_ID - 13]}-{digest}"


def serve(records: Records, held: Held, call: Call[Any], lease: Lease) -> None:
    """Start the child if it is not there, take its result if it has ended, otherwise look again later."""
    start = held.live.noted.get(layout.start(call.key))
    if start is None:
        records.pending.finish.append(lease)
        return
    child = str(start.output)
    if records.workspace.ledger.head(child) is None:
        _start(records, held, call, child)
    if not _report(records, held.run_id, start, child):
        again = records.workspace.clock.now().timestamp() + RECHECK_SECONDS
        records.pending.offer.append(Work(held.run_id, "child", call.key, call.fingerprint, visible_at=again))
    records.pending.finish.append(lease)


def _start(records: Records, held: Held, call: Call[Any], child: str) -> None:
    workspace = records.workspace
    loaded = workspace.loader.load(workspace.loader.ref_of(call.spec.options))
    started = workspace.started(loaded, call.request["input"], {"run": held.run_id, "key": call.key})
    try:
        workspace.begin(child, loaded, started)
    except Conflict as error:
        raise CannotAdvance(
            "child-id", f"child call {call.key}: {error.message}", f"another run has the id {child}", key=call.key
        ) from error


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
    assert isinstance(ended, RunEnded) and isinstance(start, CallReceipt)
    held = records.bodies.get(parent)
    # The child's usage is its own; the parent's sum would count it twice in a list of runs.
    draft = drafts.child_ended(start, ended, head.tip, None, records.workspace.clock.now(), records.stamp(held))
    records.append_results({parent: [draft]})
    return True


def cancel_dropped(records: Records, held: Held, key: str) -> None:
    """The body no longer waits for a child: the child is cancelled, and cleans up by itself."""
    start = held.live.noted.get(layout.start(key))
    if start is not None and start.kind == "child" and records.workspace.ledger.head(str(start.output)) is not None:
        by = Provenance(kind="policy", by=held.run_id, channel="runner")
        with suppress(Conflict):  # it has ended by itself meanwhile
            records.workspace.cancel(str(start.output), reason=f"{held.run_id} no longer waits for it", by=by)
