"""The fingerprint of a call: what tells a recorded request from the one the present code makes.

It covers the kind and the request exactly as they stand in the receipt (redacted, paths relative to the workspace,
schemas reduced to what validates), and nothing that may differ between two equal executions.
"""

from __future__ import annotations

import hashlib

from .encoding import Json, dumps

PREFIX = "fp1:sha256:"
"""The scheme and its version; receipts of an older scheme stay comparable because they say which one they used."""


def fingerprint(kind: str, request: Json) -> str:
    """`fp1:sha256:<hex>` of a call of this kind with this request, given in its stored form.

    Raises `UnstorableValue` when the request is no stored form (see `encoding.encode`).
    """
    return of_bytes(dumps({"kind": kind, "request": request}))


def of_bytes(identifying: bytes) -> str:
    """The fingerprint of what `fingerprint` writes of a call."""
    return PREFIX + hashlib.sha256(identifying).hexdigest()
