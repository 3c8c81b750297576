"""What a run's receipts tell of each of its calls, in the order in which the body wrote them: what `diff` compares.

Attempts that were retried, results that came too late, pauses and the README tell nothing of what was decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import layout
from .layout import Role
from .outline import OPEN
from .receipts import Receipt
from .usages import Sum, added

_IGNORED = frozenset({"late", "readme", "artifact", "source"})
# What operators did to the pace of a run, not to what became of it.
_PACE = frozenset({"pause", "resume"})
# In these places a path says more than the key: signals of one name share theirs.
_BY_PATH = frozenset({"signal", "cancel", "control"})
_NO_CALLS = _BY_PATH | {"run", "end"}
# Parts of an `execution` block that are never equal, or told elsewhere.
_NEVER_EQUAL = frozenset({"seq", "operation_id", "usage"})
_NUMBER = re.compile(r"-\d+\Z")


@dataclass(frozen=True)
class ToldCall:
    """One call, and beside the calls the run's start (`run`), its end (`result`) and what operators decided.

    `order` is the seq whose decision asked for it, then its own; `execution` is that of its newest receipt.
    """

    kind: str
    key: str
    order: tuple[float, float]
    status: str = OPEN
    fingerprint: str | None = None
    request: Any = None
    output: Any = None
    error: Any = None
    usage: Sum | None = None
    execution: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """What it is called where its key differs: the author's name, or the key without scope and number."""
        named = self.request.get("name") if isinstance(self.request, Mapping) else None
        return named if isinstance(named, str) else _NUMBER.sub("", self.key.rpartition("/")[2])


def calls_told(receipts: Iterable[Receipt]) -> list[ToldCall]:
    """Every call that these receipts speak of, in the order of their requests."""
    found: dict[str, ToldCall] = {}
    for receipt in sorted(receipts, key=lambda each: each.seq):
        place = layout.place(receipt.path)
        if place is None or place.family in _IGNORED or receipt.status in _PACE:
            continue
        key = receipt.path.removesuffix(".json") if place.family in _BY_PATH else receipt.key
        # No key ends like a path, so what is known by its path cannot be taken for a call.
        slot = receipt.path if place.family in _NO_CALLS else key
        found[slot] = _more(found.get(slot) or _first(receipt, key), receipt)
    return sorted(found.values(), key=lambda call: call.order)


def _first(receipt: Receipt, key: str) -> ToldCall:
    asked = receipt.execution.requested_after
    return ToldCall(receipt.kind, key, _order(receipt, receipt.seq if asked is None else asked))


def _order(receipt: Receipt, asked: int) -> tuple[float, float]:
    if receipt.kind == "run":
        return -1, 0
    return (float("inf"), 0) if receipt.kind == "result" else (asked, receipt.seq)


def _more(call: ToldCall, receipt: Receipt) -> ToldCall:
    """The same call with what one more of its receipts says."""
    told = {**vars(call)}
    told["fingerprint"] = call.fingerprint or receipt.fingerprint
    told["request"] = plain(receipt.request) if call.request is None else call.request
    told["execution"] = _execution(receipt)
    if (used := receipt.execution.usage) is not None:
        told["usage"] = added(call.usage or {}, used.model_dump())
    if _is_final(receipt):
        told |= {"status": receipt.status, "output": receipt.output, "error": _failure(receipt)}
    return ToldCall(**told)


def _is_final(receipt: Receipt) -> bool:
    return receipt.role is Role.RESULT or receipt.kind in ("run", "result", "control")


def _failure(receipt: Receipt) -> Any:
    """An error without what its attempts consumed: that is usage, wherever it stands."""
    error = plain(receipt.error)
    if not isinstance(error, dict) or not isinstance(details := error.get("details"), dict):
        return error
    tries = details.get("attempts")
    if isinstance(tries, list):
        kept = [{name: part for name, part in each.items() if name != "usage"} for each in tries]
        error["details"] = {**details, "attempts": kept}
    return error


def _execution(receipt: Receipt) -> dict[str, Any]:
    told = receipt.execution.model_dump(mode="json", exclude_none=True)
    return {name: part for name, part in told.items() if name not in _NEVER_EQUAL}


def plain(value: Any) -> Any:
    """A part of a receipt as JSON has it."""
    return value.model_dump() if hasattr(value, "model_dump") else value
