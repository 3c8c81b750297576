"""The texts shown beside a question, read when it is asked: who answers later must see what the question was about.

A text that cannot be read does not hold the question up; whoever is asked sees that it is missing, and why.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.redaction import Redactor

# Bytes of a text that are kept, since evidence is read by people, and of one that is looked at at all.
_MOST = 256 * 1024
_LARGEST = 20 << 20


def read_evidence(root: Path, paths: Iterable[str], redactor: Redactor, counts: Counter[str]) -> dict[str, Any] | None:
    """What `execution.evidence` holds, by path relative to the workspace `root`; None without paths."""
    return {path: _read(root.resolve(), path, redactor, counts) for path in paths} or None


def _read(root: Path, path: str, redactor: Redactor, counts: Counter[str]) -> dict[str, Any]:
    file = (root / path).resolve()
    if not file.is_relative_to(root):
        return {"missing": "it lies outside the workspace"}
    if not file.is_file():
        return {"missing": "there is no such file"}
    try:
        if file.stat().st_size > _LARGEST:
            return {"missing": f"it has more than {_LARGEST:,} bytes"}
        data = file.read_bytes()
    except OSError as error:
        return {"missing": str(error.strerror)}
    # Redacted before it is hashed and cut, so that neither tells of a secret.
    data = redactor.data(data, counts)
    read: dict[str, Any] = {
        "text": data[:_MOST].decode("utf-8", "replace"),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return read | ({"truncated": True} if len(data) > _MOST else {})
