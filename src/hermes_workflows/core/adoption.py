"""What is said of receipts that a run took over from another one.

Their bytes are the other run's, so whose answers they are stands in the new run's start: `execution.source` names the
run, its commit, the seq up to which receipts were adopted, and the keys whose results somebody gave instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from . import layout

if TYPE_CHECKING:
    from .receipts import Receipt


def source_of(receipts: Iterable[Receipt]) -> Mapping[str, str] | None:
    """Where a run was started from: a fork, a reproduction, or nothing of the kind."""
    return next((each.execution.source for each in receipts if each.path == layout.RUN), None)


def with_origin(receipts: Sequence[Receipt]) -> list[Receipt]:
    """The same receipts; in adopted ones, whoever gave an answer gave it in the other run (`adopted_from`)."""
    source = source_of(receipts)
    if source is None or "seq" not in source:
        return list(receipts)
    last, instead = int(source["seq"]), source.get("set", "").split()
    return [
        _adopted(each, source["run"]) if 0 < each.seq <= last and each.key not in instead else each for each in receipts
    ]


def _adopted(receipt: Receipt, run_id: str) -> Receipt:
    by = receipt.execution.provenance
    if by is None:
        return receipt
    # What the other run had adopted itself was given in the one before it.
    provenance = by.model_copy(update={"adopted_from": by.adopted_from or run_id})
    return receipt.model_copy(update={"execution": receipt.execution.model_copy(update={"provenance": provenance})})
