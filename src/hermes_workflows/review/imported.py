"""What answers from elsewhere have in common: where they end, and what is told of each (SEMANTICS §8).

All of them end in `Workspace.answer()`, like every other channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..core import layout
from ..core.encoding import Plain
from ..core.receipts import Provenance, Receipt, ReviewReceipt
from ..errors import Conflict, HermesError, IntegrityError, InvalidInput, NotFound
from .answer import InvalidAnswer

if TYPE_CHECKING:
    from ..workspace import Workspace

Outcome = Literal["recorded", "known", "refused"]


@dataclass(frozen=True)
class Imported:
    """What became of one answer: `source` names the commit or the review, `reasons` say why it was refused.

    `known` means that the same message has been recorded before.
    """

    run_id: str
    key: str
    source: str
    by: str
    outcome: Outcome
    kind: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    request: ReviewReceipt
    answer: Receipt | None

    @property
    def returns(self) -> Mapping[str, Any]:
        assert self.request.request is not None  # a request receipt always holds its question
        return self.request.request.returns

    def has_heard(self, by: Provenance) -> bool:
        first = self.answer.execution.provenance if self.answer else None
        return first is not None and first.is_same_message(by)


def questions(workspace: Workspace, run_id: str) -> dict[str, Question]:
    """Every question of a run, by its key."""
    receipts = workspace.ledger.read(run_id)[1]
    by_path = {receipt.path: receipt for receipt in receipts}
    return {
        receipt.key: Question(receipt, by_path.get(layout.response(receipt.key)))
        for receipt in receipts
        if isinstance(receipt, ReviewReceipt) and receipt.status == "requested"
    }


def answered(workspace: Workspace, run_id: str, source: str, by: Provenance, key: str, payload: Plain) -> Imported:
    question = questions(workspace, run_id).get(key)
    heard = question is not None and question.has_heard(by)
    try:
        workspace.answer(run_id, key, payload, by)
    except (InvalidInput, NotFound, Conflict, IntegrityError) as error:
        return Imported(run_id, key, source, by.by, "refused", by.kind, tuple(reasons_of(error)))
    return Imported(run_id, key, source, by.by, "known" if heard else "recorded", by.kind)


def reasons_of(error: HermesError) -> list[str]:
    if isinstance(error, InvalidAnswer):
        return [f"{path or '/'}: {reason}" for path, reason in error.errors]
    return [f"{error.message}: {error.hint}" if error.hint and isinstance(error, InvalidInput) else error.message]
