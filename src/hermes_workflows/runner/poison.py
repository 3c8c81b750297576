"""Runs and calls that take their runner's process down: after three times nobody takes them, until somebody mends it.

A process dies of many things. A run is suspected by how often its row was claimed and never finished, and then a probe
decides it beside the runner. What a call does cannot be tried like that: the last two tries are made with no other
suspect beside it (`store.room`), and the losses that its row has kept are the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..store.queue_port import Lease
from .bodies import CannotAdvance, Held

if TYPE_CHECKING:
    from ..core.calls import Call
    from .records import Records

# A run whose slice took its process down this often is not tried again (SEMANTICS §1), and a call neither.
MAX_CLAIMS = 3
POISON = "poison"
POISON_CALL = "poison-call"


def is_suspect(lease: Lease) -> bool:
    """Whether this run may have ended the process of its last claimer."""
    return lease.work.kind == "workflow" and lease.claims > 1


def is_poison_call(lease: Lease) -> bool:
    return lease.work.kind != "workflow" and len(lease.lost) >= MAX_CLAIMS


def poisoned_run(records: Records, run_id: str) -> CannotAdvance:
    return CannotAdvance(
        POISON,
        f"advancing this run has ended its runner's process {MAX_CLAIMS} times",
        "the stacks are in the runner's log; mend the body, and a runner goes on",
        # Not imported: that may be what ends the process.
        code=records.bodies.code_of(records.workspace.summary(run_id).workflow),
    )


def poisoned_call(held: Held, call: Call[Any], lease: Lease) -> CannotAdvance:
    return CannotAdvance(
        POISON_CALL,
        f"{len(lease.lost)} runners were lost while they executed {call.kind} {call.key}: " + "; ".join(lease.lost),
        f"look into the logs of those runners; then `hermes-workflows retry {held.run_id}` tries it again, "
        f"or `hermes-workflows cancel {held.run_id}` ends the run",
        key=call.key,
        code=held.loaded.code,
    )
