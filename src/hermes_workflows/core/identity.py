"""Which part of a request tells one call from another (SEMANTICS §3), and its fingerprint.

A question is the same question whatever its form is titled and however long it may wait for an answer,
so of a review only what the answer means counts, with the schema reduced to what validates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .encoding import Limits, Plain, encode
from .fingerprints import fingerprint
from .schemas import reduced_schema


def request_fingerprint(kind: str, request: Mapping[str, Any], limits: Limits | None = None) -> str:
    """The fingerprint of a decoded request; raises UnstorableValue when no receipt could hold it."""
    stored = encode(_identifying(kind, request), {}, limits=limits or Limits())
    return fingerprint(kind, stored)


def _identifying(kind: str, request: Mapping[str, Any]) -> Plain:
    if kind != "review":
        return dict(request)
    return {
        "prompt": request["prompt"],
        "input": request["input"],
        "assignee": request["assignee"],
        "returns": reduced_schema(request["returns"]),
    }
