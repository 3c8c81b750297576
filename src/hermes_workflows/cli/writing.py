"""How values are written: as the one JSON document that programs read, as indented JSON, in one line, in columns.

Every command imports this, `--help` too, so next to nothing of the project may come in.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.plain import escaped_json

_LINE = 72


def as_json(document: Any) -> bytes:
    """Compact, keys sorted: equal answers are equal bytes."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_jsonable)
    return escaped_json(text).encode("utf-8", "backslashreplace")


def hanging(text: str) -> str:
    """Text of more than one line is never at the edge, where our own lines begin."""
    return text.replace("\n", "\n    ")


def one_line(text: str, length: int = _LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def pretty(value: Any) -> str:
    """A value as people read it: indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=_shown)


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Names and what stands beside them, aligned."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def _jsonable(value: object) -> Any:
    if isinstance(value, bytes):
        return {"$base64": binascii.b2a_base64(value, newline=False).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def _shown(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
