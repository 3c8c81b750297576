"""What to say when the present code decides otherwise than the receipts (SEMANTICS §3)."""

from __future__ import annotations

import difflib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Divergence
from .calls import Call, TimerCall
from .encoding import dumps, encode
from .receipts import Receipt

AnyCall = Call[Any] | TimerCall


@dataclass(frozen=True)
class Recorded:
    """Where in which run a decision was compared; `before` is the key of the last receipt that still fits."""

    run_id: str
    python: str | None
    before: str | None


def not_requested(receipt: Receipt, requested: Mapping[str, AnyCall], known: AnyCall | None, run: Recorded) -> Divergence:
    """A receipt whose call the present body does not have outstanding, or has with another request."""
    call = requested.get(receipt.key) or known
    if call is None:
        what = f"the present code does not request {receipt.kind} {receipt.key!r}, which was recorded"
    elif call.kind != receipt.kind:
        what = f"{receipt.key!r} was recorded as {receipt.kind}; the present code makes it {call.kind} ({call.site})"
    elif call.fingerprint != receipt.fingerprint:
        what = f"{receipt.kind} {receipt.key!r} was recorded with another request ({call.site})"
    else:
        what = f"{receipt.kind} {receipt.key!r} was recorded at another point of the run ({call.site})"
    error = Divergence(
        f"divergence in {run.run_id}: {what}", hint=_ways_out(run, receipt.key)
    )
    error.details = _details(receipt, call, requested, run)
    return error


def _details(receipt: Receipt, call: AnyCall | None, requested: Mapping[str, AnyCall], run: Recorded) -> dict[str, Any]:
    here = ".".join(platform.python_version_tuple()[:2])
    return {
        "key": receipt.key,
        "site": str(call.site) if call else None,
        "request_diff": request_diff(receipt, call),
        "python": {"recorded": run.python, "present": here} if run.python not in (None, here) else None,
        "permutation": receipt.fingerprint in {each.fingerprint for each in requested.values()},
    }


def request_diff(receipt: Receipt, call: AnyCall | None) -> str:
    """The recorded request against the new one, as a unified diff of their JSON."""
    recorded = _lines(_request_of(receipt))
    present = _lines(call.request) if call else []
    return "\n".join(difflib.unified_diff(recorded, present, "recorded", "present code", lineterm=""))


def _request_of(receipt: Receipt) -> Any:
    request = receipt.request
    return request.model_dump() if hasattr(request, "model_dump") else request


def _lines(request: Any) -> list[str]:
    return dumps(encode(dict(request or {}), {})).decode().splitlines()


def _ways_out(run: Recorded, key: str) -> str:
    fork = f"hermes-workflows fork {run.run_id}@{run.before}" if run.before else f"hermes-workflows fork {run.run_id}"
    return (
        f"1. restore the code that was recorded; or 2. `{fork}`; "
        f"or 3. `hermes-workflows accept {run.run_id} {key} --why …`"
    )


def explain(error: Divergence) -> Iterable[str]:
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
