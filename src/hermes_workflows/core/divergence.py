"""When the present code decides otherwise than the receipts, and what to say then (SEMANTICS §3)."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Divergence
from .acceptance import Accepted, changed
from .calls import AnyCall
from .encoding import dumps, encode
from .plain import command_line
from .receipts import Receipt
from .sites import Site

__all__ = ["GIVEN_UP", "AnyCall", "Present", "answers", "explain", "not_requested", "unreadable", "was_given_up"]

# `unknown` is how an at-most-once step is given up: its effect may have happened.
GIVEN_UP = frozenset({"cancelled", "withdrawn", "unknown"})
_MAX_SHOWN = 3

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""This Python, as runs record theirs: another one may go through a body in another order."""


@dataclass(frozen=True)
class Present:
    """Where in which run a decision was compared; `before` is the key of the last receipt that still fits.

    `requested` is what the present code asks for instead, `waiting` the lines at which its tasks stand.
    """

    run_id: str
    python: str | None
    before: str | None
    requested: Mapping[str, AnyCall]
    waiting: Sequence[Site]
    root: str | None

    def place(self, call: AnyCall) -> str:
        return call.site.within(self.root)


def answers(receipt: Receipt, call: AnyCall, accepted: Accepted, *, cleaning: bool) -> bool:
    """Whether a result is that of an outstanding call, requested by the same decision.

    One that was given up answers nothing, except where a runner may end a call by itself: in a cleanup.
    """
    return (
        call.kind == receipt.kind
        and accepted.same(receipt, call)
        and receipt.execution.requested_after in (None, call.requested_after)
        and (cleaning or receipt.status not in GIVEN_UP)
    )


def was_given_up(receipt: Receipt, withdrawn: AnyCall | None, accepted: Accepted) -> bool:
    """Whether a result, of whatever status, came for a call that the body no longer waits for."""
    return withdrawn is not None and withdrawn.kind == receipt.kind and accepted.same(receipt, withdrawn)


def not_requested(receipt: Receipt, call: AnyCall | None, now: Present) -> Divergence:
    """A receipt whose call the present body does not have outstanding, or has with another request."""
    recorded = f"{receipt.kind} {receipt.key!r}"
    if call is None:
        what = f"the present code does not request {recorded}, which was recorded; {_instead(now)}"
    elif call.kind != receipt.kind:
        what = f"{recorded} was recorded; the present code makes it {call.kind}, {now.place(call)}"
    elif call.fingerprint != receipt.fingerprint:
        what = f"{recorded} was recorded with another request than {now.place(call)} makes"
    elif receipt.status in GIVEN_UP:
        what = f"{recorded} was given up when it was recorded; the present code waits for it, {now.place(call)}"
    else:
        what = f"{recorded} was recorded at another point of the run than {now.place(call)} makes it"
    return _divergence(what, receipt, call, now)


def unreadable(receipt: Receipt, call: AnyCall, error: Exception, now: Present) -> Divergence:
    """A recorded output that no longer fits the type the present code declares for it."""
    said = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
    what = f"the recorded output of {receipt.kind} {receipt.key!r} {said}, {now.place(call)}"
    return _divergence(what, receipt, call, now)


def _instead(now: Present) -> str:
    if now.requested:
        calls = [f"{call.kind} {call.key!r}, {now.place(call)}" for call in list(now.requested.values())[:_MAX_SHOWN]]
        return f"it requests {'; '.join(calls)}"
    if now.waiting:
        return f"it waits at {', '.join(site.within(now.root) for site in now.waiting[:_MAX_SHOWN])}"
    return "it has ended"


def _divergence(what: str, receipt: Receipt, call: AnyCall | None, now: Present) -> Divergence:
    error = Divergence(f"divergence in {now.run_id}: {what}", hint=_ways_out(now, receipt.key))
    error.details = _details(receipt, call, now)
    return error


def _details(receipt: Receipt, call: AnyCall | None, now: Present) -> dict[str, Any]:
    made = call or _counterpart(receipt, now)
    sites = [made.site] if made else list(now.waiting)
    return {
        "key": receipt.key,
        "site": sites[0].within(now.root) if sites else None,
        "accept": changed(receipt, call),
        "fits_until": now.before,
        "request_diff": request_diff(receipt, made) if made else "",
        "python": {"recorded": now.python, "present": PYTHON} if now.python not in (None, PYTHON) else None,
        "permutation": any(
            each.fingerprint == receipt.fingerprint and key != receipt.key for key, each in now.requested.items()
        ),
    }


def _counterpart(receipt: Receipt, now: Present) -> AnyCall | None:
    """What the present code asks for in the place of a call that is gone: the only new one of its kind."""
    calls = [call for call in now.requested.values() if call.kind == receipt.kind]
    return calls[0] if len(calls) == 1 else None


def request_diff(receipt: Receipt, call: AnyCall) -> str:
    """The recorded request against the new one, as a unified diff of their JSON."""
    recorded = _lines(_request_of(receipt))
    present = _lines(call.request)
    return "\n".join(difflib.unified_diff(recorded, present, "recorded", "present code", lineterm=""))


def _request_of(receipt: Receipt) -> Any:
    request = receipt.request
    return request.model_dump() if hasattr(request, "model_dump") else request


def _lines(request: Any) -> list[str]:
    return dumps(encode(dict(request or {}), {})).decode().splitlines()


def _ways_out(now: Present, key: str) -> str:
    moment = f"{now.run_id}@{now.before}" if now.before else now.run_id
    return (
        "1. restore the code that was recorded; "
        f"or 2. `{command_line('fork', moment, '--id', 'NEW')}` goes on in a new run with what still fits; "
        f"or 3. `{command_line('accept', now.run_id, key, '--why')} …` keeps the recorded answer"
    )


def explain(error: Divergence) -> Iterator[str]:
    """The message for a person, line by line: the difference, then what may have caused it."""
    details = error.details or {}
    yield error.message
    if details.get("request_diff"):
        yield from details["request_diff"].splitlines()
    if python := details.get("python"):
        yield f"recorded under Python {python['recorded']}, replayed under {python['present']}"
    if details.get("permutation"):
        yield "the same requests appear under other keys: does the body iterate over a set?"
    if error.hint:
        yield error.hint
