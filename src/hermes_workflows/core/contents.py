"""What a receipt has to say to lie where it lies: a kind that belongs there, and what its readers take from it.

Anybody may have written a receipt that was fetched or imported, and one that is odd must not stop those who list, show
or execute other runs. So it is checked whenever a receipt is read, and whatever reads receipts may rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import layout
from .names import is_one_line
from .timestamps import parse_time

if TYPE_CHECKING:
    from .receipts import Receipt

_CALLS = frozenset({"agent", "bash", "step", "child", "artifact"})

_KINDS: Mapping[str, frozenset[str]] = {
    "run": frozenset({"run"}),
    "end": frozenset({"result"}),
    "attempt": _CALLS,
    "late": _CALLS,
    "start": _CALLS | {"signal"},
    "step": _CALLS | {"signal"},
    "timer-start": frozenset({"timer"}),
    "timer": frozenset({"timer"}),
    "request": frozenset({"review"}),
    "response": frozenset({"review"}),
    "signal": frozenset({"signal"}),
    "cancel": frozenset({"control"}),
    "control": frozenset({"control"}),
}

# Of these only some receipts of the kind have a request.
_ASKING = frozenset({("request", "review"), ("start", "signal"), ("step", "signal")})


_SEQ = re.compile(r"[0-9]{1,15}")
# What SQLite and every reader of JSON still holds as an integer.
_MOST = 10**15
MOST_USED = 10**15
"""Of tokens, and of dollars: sums of what is below can be written and compared."""


def fault_of(receipt: Receipt) -> str | None:
    """Why a receipt cannot lie at its path; None when it can, or when nothing at all may lie there."""
    place = layout.place(receipt.path)
    if place is None or (kinds := _KINDS.get(place.family)) is None:
        return None
    # Of each receipt that is read: what most of them do not have is asked for first.
    kind, family, execution = receipt.kind, place.family, receipt.execution
    if kind not in kinds or (kind == "control" and receipt.status != (place.stem or "cancel")):
        return f"may not hold a receipt of kind {kind!r}"
    if not is_one_line(receipt.key) or (kind == "signal" and receipt.request and not is_one_line(receipt.request.name)):
        return "has a key or a name that no call and no signal can have"
    if not 0 <= execution.seq < _MOST:
        return "has a seq that no run reaches"
    if receipt.request is None and (family, kind) in _ASKING:
        return "has no request"
    if family in ("request", "response") and (family == "request") != (receipt.status == "requested"):
        return f"has the status {receipt.status!r}, which belongs elsewhere"
    if (used := execution.usage) and any(abs(each) >= MOST_USED for each in vars(used).values()):
        return "has a usage that no call reaches"
    if kind == "control":
        return _does_not_fit("request", receipt.status, receipt.request)
    if kind == "run":
        parent = receipt.execution.parent
        wrong = None if parent is None else _does_not_fit("parent", "parent", parent)
        return wrong or _wrong_source(receipt.execution.source)
    return None


def _does_not_fit(what: str, shape: str, value: Any) -> str | None:
    # Most runs have neither a parent nor an operator, and making the models takes a tenth of what a small command does.
    from .shapes import mistake  # noqa: PLC0415

    if (found := mistake(shape, value)) is None:
        return None
    place, said = found
    return f"has a {'/'.join((what, *place))} that cannot be: {said}"


def _wrong_source(source: Mapping[str, str] | None) -> str | None:
    """What a run says of the one it was started from is used to look that one up, and to tell what was adopted."""
    if source is None:
        return None
    if missing := {"run", "commit"} - source.keys():
        return f"does not say which {min(missing)} it was started from"
    if not _SEQ.fullmatch(source.get("seq", "0")):
        return "has a source/seq that is no number"
    try:
        parse_time(source.get("clock", "2000-01-01T00:00:00Z"))
    except ValueError:
        return "has a source/clock that is no time"
    return None
