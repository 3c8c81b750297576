"""What operators ask of a whole run: that it ends, that it stops for a while, that it goes on.

Each request is a receipt in the run; asking for what is so already adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..core import layout
from ..core.receipts import Author, ControlReceipt, Execution, Provenance, draft
from ..core.summary import RunSummary, summarize
from ..errors import Conflict
from ..store.ports import Ended, Entry, Ledger, PathTaken
from .resolving import next_control

_ATTEMPTS = 20

Verb = Literal["cancel", "pause", "resume"]


@dataclass(frozen=True)
class Control:
    """One request; `reason` and `by` hold no secrets any more.

    `now` skips the cleanup of a run that is cancelled, `superseded_by` is the run that has taken its place.
    """

    run_id: str
    verb: Verb
    reason: str
    by: Provenance
    at: datetime
    now: bool = False
    superseded_by: str | None = None

    @property
    def request(self) -> dict[str, Any]:
        more = {"now": self.now or None, "superseded_by": self.superseded_by}
        return {"reason": self.reason, **{name: value for name, value in more.items() if value is not None}}


def request(ledger: Ledger, given: Control) -> bool:
    """Record what is asked; False when it is so already. Raises NotFound, and Conflict for a run that has ended."""
    for _ in range(_ATTEMPTS):
        _, receipts = ledger.read(given.run_id)
        if _is_so(summarize(given.run_id, receipts), given):
            return False
        note = ControlReceipt(
            path=layout.control(next_control(receipts), given.verb),
            key=given.verb,
            status=given.verb,
            request=given.request,
            execution=Execution(finished_at=given.at, provenance=given.by),
        )
        (outcome,) = ledger.append([Entry(given.run_id, (draft(note, Author(given.by.by)),))])
        # Another control took the number, or the run ended meanwhile: look again.
        if not isinstance(outcome, PathTaken | Ended):
            return True
    raise Conflict(f"{given.run_id} changes faster than a request can be recorded", hint="try again")


def _is_so(summary: RunSummary, given: Control) -> bool:
    verb = given.verb
    if verb == "cancel" and (summary.cancel_requested or summary.status == "cancelled"):
        return _adds_nothing(summary, given)
    if summary.ended:
        raise Conflict(f"{summary.run_id} is {summary.status}", hint=f"only a run that goes on can be {_DONE[verb]}")
    if summary.cancel_requested:
        raise Conflict(f"{summary.run_id} is being cancelled", hint="it goes on with its cleanup, and ends")
    return verb != "cancel" and (summary.paused is not None) == (verb == "pause")


def _adds_nothing(summary: RunSummary, given: Control) -> bool:
    instead = summary.superseded_by or given.superseded_by
    if given.superseded_by not in (None, summary.superseded_by) and (summary.ended or summary.superseded_by):
        known = f"; its receipts name {summary.superseded_by}" if summary.superseded_by else ""
        hint = f"`hermes-workflows show {summary.run_id}` says why it was cancelled"
        raise Conflict(f"{summary.run_id} is cancelled already{known}", hint=hint)
    return summary.ended or (instead == summary.superseded_by and (summary.cancel_now or not given.now))


_DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed"}
