"""Which part of a request tells one call from another (SEMANTICS §3), and its fingerprint; what tells code from code.

A question is the same question whatever its form is titled and however long it may wait for an answer,
so of a review only what the answer means counts, with the schema reduced to what validates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ..errors import UnstorableValue
from .encoding import DEFAULT_LIMITS, Limits, Plain, dumps, encode
from .fingerprints import fingerprint, of_bytes
from .schemas import reduced_schema

# What a receipt says beside its request when the call has failed: the error, times, usage.
_RECEIPT_MARGIN = 16 << 10


def request_fingerprint(kind: str, request: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> str:
    """The fingerprint of a decoded request; raises UnstorableValue when no receipt could hold it."""
    stored = encode(_identifying(kind, request), {}, limits=limits)
    return fingerprint(kind, stored)


def identify(kind: str, request: Mapping[str, Any], limits: Limits) -> str:
    """The fingerprint of a call that is being written.

    Raises UnstorableValue when no receipt could hold its request, not even that of a failure.
    """
    stored = encode(dict(request), {}, limits=limits)
    # It is a little longer than the request by itself, which is hardly ever near the limit.
    written = dumps({"kind": kind, "request": stored}, encoded=True)
    most = limits.receipt_bytes - _RECEIPT_MARGIN
    if len(written) > most and (size := len(dumps(stored))) > most:
        raise UnstorableValue(
            "",
            f"{size:,} bytes are more than a receipt of {limits.receipt_bytes:,} holds",
            hint="write large inputs to a file and pass its path",
        )
    return request_fingerprint(kind, request, limits) if kind == "review" else of_bytes(written)


def _identifying(kind: str, request: Mapping[str, Any]) -> Plain:
    if kind != "review":
        return dict(request)
    shown = {"evidence": list(request["evidence"])} if request.get("evidence") else {}
    return {
        "prompt": request["prompt"],
        "input": request["input"],
        "assignee": request["assignee"],
        "returns": reduced_schema(request["returns"]),
        **shown,
    }


def code_identity(files: Mapping[str, bytes]) -> str:
    """The identity of a version of the code: twelve hex digits over all recorded paths and contents."""
    digest = hashlib.sha256()
    for path, data in sorted(files.items()):
        # Of a foreign repository a path may be no UTF-8.
        line = f"{path}\0{hashlib.sha256(data).hexdigest()}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:12]
