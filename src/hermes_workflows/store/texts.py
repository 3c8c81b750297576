"""JSON text of decoded receipt values in SQLite columns: any integer, and bytes, which JSON does not have."""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .database import DatabaseGone

# No JSON document starts with this, so it can say that bytes were escaped without touching the common case.
_ESCAPED = "$"


def dump(value: Any) -> str:
    """Raises TypeError for what no receipt holds."""
    import orjson  # noqa: PLC0415  # the fast `status` only loads

    options = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    # A fifth of json's time. Bytes, large integers and lone surrogates are left to that.
    with suppress(TypeError):
        return orjson.dumps(value, _as_dict, options).decode()
    try:
        return json.dumps(value, separators=(",", ":"), default=_as_dict)
    except _HasBytes:
        return _ESCAPED + json.dumps(_escape(value), separators=(",", ":"))


def load(text: str) -> Any:
    """The inverse of `dump`; raises DatabaseGone for what `dump` did not write: damage that SQLite cannot see."""
    try:
        return _unescape(json.loads(text[1:])) if text.startswith(_ESCAPED) else json.loads(text)
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise DatabaseGone(f"a damaged row: {error}") from None


class _HasBytes(TypeError):
    pass


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        raise _HasBytes
    raise TypeError(f"{type(value).__name__} is no value of a receipt")


def _escape(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_ESCAPED: binascii.b2a_base64(value, newline=False).decode()}
    if isinstance(value, Mapping):
        return {_ESCAPED + name if name.startswith(_ESCAPED) else name: _escape(part) for name, part in value.items()}
    return [_escape(part) for part in value] if isinstance(value, list | tuple) else value


def _unescape(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ESCAPED}:
            return binascii.a2b_base64(value[_ESCAPED])
        return {name[1:] if name.startswith(_ESCAPED) else name: _unescape(part) for name, part in value.items()}
    return [_unescape(part) for part in value] if isinstance(value, list) else value
