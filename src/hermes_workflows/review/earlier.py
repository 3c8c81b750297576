"""What was asked before: the same question in an earlier iteration, or in the previous run of the same workflow.

A reviewer who has seen a draft once wants to see what became of it, not to read all of it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.changes import Change, changes
from ..core.receipts import Receipt, ReviewReceipt
from ..errors import HermesError
from ..store.wanted import Wanted
from .evidence import evidence_of

if TYPE_CHECKING:
    from ..workspace import Workspace

# A loop's scope, and what tells the same name of later calls apart.
_LOOP = re.compile(r"(?:^|(?<=/))goal(?:-\d+)?/\d+(?=/)")
_AGAIN = re.compile(r"-\d+(?=/|$)")
# How many of the runs before it are read.
_TRIES = 5


@dataclass(frozen=True)
class Earlier:
    """An earlier time of asking, and what is shown otherwise since then."""

    run_id: str
    question: ReviewReceipt
    changes: tuple[Change, ...]


def earlier_of(
    workspace: Workspace, run_id: str, question: ReviewReceipt, receipts: Sequence[Receipt]
) -> list[Earlier]:
    """The previous iteration in this run, and the newest older run of the workflow that has asked the same."""
    found = []
    if (before := previous_iteration(question, receipts)) is not None:
        found.append(Earlier(run_id, before, _changes(before, question)))
    if (run := _previous_run(workspace, run_id, question)) is not None:
        found.append(Earlier(run[0], run[1], _changes(run[1], question)))
    return found


def previous_iteration(question: ReviewReceipt, receipts: Sequence[Receipt]) -> ReviewReceipt | None:
    """The newest older request whose key is the same but for the number of its iteration."""
    wanted = _name(question.key)
    older = (each for each in receipts if _is_request(each) and each.seq < question.seq and _name(each.key) == wanted)
    return max(older, key=lambda each: each.seq, default=None)  # type: ignore[return-value]  # requests alone


def shown_of(question: ReviewReceipt) -> dict[str, Any]:
    """All that a reviewer is shown, as one value."""
    assert question.request is not None  # a request receipt always holds its question
    pieces = {each.title: each.value for each in evidence_of(question)}
    return {"prompt": question.request.prompt, "input": question.request.input, "evidence": pieces}


def _changes(before: ReviewReceipt, after: ReviewReceipt) -> tuple[Change, ...]:
    return tuple(changes(shown_of(before), shown_of(after)))


def _name(key: str) -> str:
    return _AGAIN.sub("", _LOOP.sub("goal", key))


def _is_request(receipt: Receipt) -> bool:
    return isinstance(receipt, ReviewReceipt) and receipt.status == "requested"


def _previous_run(workspace: Workspace, run_id: str, question: ReviewReceipt) -> tuple[str, ReviewReceipt] | None:
    this = workspace.summary(run_id)
    older = Wanted(workflow=this.workflow, older=(this.started_at or "", run_id))
    for other in workspace.runs(older, limit=_TRIES):
        try:
            return other.run_id, workspace.review(other.run_id, question.key).request
        except HermesError:
            continue  # it never asked that, or cannot be read
    return None
