"""Values as they stand in receipts.

    Plain --encode--> Json --dumps--> bytes --parse--> Json --decode--> Plain

`Json` is `Plain` in what JSON can say: `{"$lines": […]}` for text with line ends, `{"$blob": …}` for long text,
`{"$base64": […]}` for bytes; any other key that starts with "$" carries one more.
What cannot come back as it went in is refused, with its place.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from ..errors import IntegrityError, UnstorableValue
from .canonical import (
    Json,
    Refused,
    check_depth,
    check_integer,
    check_key,
    check_number,
    check_text,
    copied,
    dumps,
    parse,
    pointer,
)

__all__ = ["MAX_VALUE_DEPTH", "Json", "Limits", "Plain", "decode", "dumps", "encode", "parse", "pointer"]

Plain: TypeAlias = "bool | int | float | str | bytes | list[Plain] | dict[str, Plain] | None"

MAX_VALUE_DEPTH: Final = 128
"""Containers around a value; less than `parse` reads back, since a receipt puts a few more around it."""

_BASE64_LINE = 76
_HEAD = 200
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes: text above `string_bytes` becomes a blob; a receipt or a blob above the others is refused."""

    string_bytes: int = 65536
    receipt_bytes: int = 1 << 20
    blob_bytes: int = 20 << 20


DEFAULT_LIMITS = Limits()


def encode(value: Plain, blobs: dict[str, bytes], *, limits: Limits = DEFAULT_LIMITS) -> Json:
    """The stored form of a value; long texts are added to `blobs` under their sha256.

    Raises `UnstorableValue` naming the place: NaN, infinities, lone surrogates, keys that are not text, integers of
    more than 1,000 digits, nesting beyond `MAX_VALUE_DEPTH`, a blob over its limit, any other type.
    """
    copy = copied(value, max_bytes=limits.string_bytes, max_depth=MAX_VALUE_DEPTH)
    if copy is not None:
        return copy
    try:
        return _Encoder(blobs, limits).value(value, 0)
    except Refused as refused:
        raise UnstorableValue(refused.path, refused.reason, hint=refused.hint) from None


class _Encoder:
    __slots__ = ("blobs", "limits")

    def __init__(self, blobs: dict[str, bytes], limits: Limits) -> None:
        self.blobs = blobs
        self.limits = limits

    def value(self, value: Any, depth: int) -> Json:
        check_depth(depth, MAX_VALUE_DEPTH)
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            return self.mapping(value, depth + 1)
        if kind is list:
            return self.sequence(value, depth + 1)
        if value is None or kind is bool:
            return cast(Json, value)
        return self.other(value, depth)

    def text(self, value: str) -> Json:
        size = len(value) if value.isascii() else len(check_text(value).encode())
        if size > self.limits.string_bytes:
            return self.blob(value.encode(), head=value[:_HEAD])
        return {"$lines": cast("list[Json]", value.split("\n"))} if "\n" in value else value

    def blob(self, data: bytes, head: str) -> Json:
        if len(data) > self.limits.blob_bytes:
            raise Refused(
                f"text of {len(data):,} bytes is more than the {self.limits.blob_bytes:,} that are kept",
                "write it to a file and return the path",
            )
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"$blob": digest, "bytes": len(data), "head": head}

    def mapping(self, value: dict[Any, Any], depth: int) -> Json:
        out: dict[str, Json] = {}
        for key, item in value.items():
            try:
                out[_stored_key(key)] = self.value(item, depth)
            except Refused as refused:
                refused.parts.append(key if isinstance(key, str) else repr(key))
                raise
        return out

    def sequence(self, value: list[Any], depth: int) -> Json:
        out: list[Json] = []
        for index, item in enumerate(value):
            try:
                out.append(self.value(item, depth))
            except Refused as refused:
                refused.parts.append(index)
                raise
        return out

    def binary(self, value: bytes) -> Json:
        if len(value) * 4 // 3 > self.limits.receipt_bytes:
            raise Refused(
                f"{len(value):,} bytes of data are more than a receipt holds",
                "write them to a file and return the path",
            )
        text = base64.b64encode(value).decode("ascii")
        return {"$base64": [text[i : i + _BASE64_LINE] for i in range(0, len(text), _BASE64_LINE)]}

    def other(self, value: Any, depth: int) -> Json:
        """Numbers, bytes, and subclasses (a Counter, a StrEnum): these are stored, and come back, as their base."""
        if isinstance(value, float):
            return float(check_number(value))
        if isinstance(value, int):
            return int(check_integer(value))
        if isinstance(value, bytes):
            return self.binary(value)
        if isinstance(value, str):
            return self.text(str.__str__(value))
        if isinstance(value, dict):
            return self.mapping(value, depth + 1)
        if isinstance(value, list):
            return self.sequence(value, depth + 1)
        said = f"a value of type {type(value).__name__} cannot be stored"
        raise Refused(said, "use text, numbers, lists, dicts or a typed value")


def _stored_key(key: object) -> str:
    text = check_key(key)
    return "$" + text if text[:1] == "$" else text


def decode(stored: Json, fetch: Callable[[str], bytes]) -> Plain:
    """The value that `encode` stored; `fetch` gives the bytes of a blob by its sha256.

    Raises `IntegrityError` for `$…` objects that `encode` never writes, and for a blob that is not what its name says.
    """
    try:
        return _decoded(stored, fetch)
    except Refused as refused:
        raise IntegrityError(f"{refused.reason} at {refused.path or '/'}", hint=refused.hint) from None


def _decoded(stored: Json, fetch: Callable[[str], bytes]) -> Plain:
    kind = type(stored)
    if kind is dict:
        return _decoded_object(cast("dict[str, Json]", stored), fetch)
    if kind is list:
        return _decoded_list(cast("list[Json]", stored), fetch)
    return cast(Plain, stored)


def _decoded_list(stored: list[Json], fetch: Callable[[str], bytes]) -> Plain:
    out: list[Plain] = []
    for index, item in enumerate(stored):
        try:
            out.append(_decoded(item, fetch))
        except Refused as refused:
            refused.parts.append(index)
            raise
    return out


def _decoded_object(stored: dict[str, Json], fetch: Callable[[str], bytes]) -> Plain:
    out: dict[str, Plain] = {}
    for key, item in stored.items():
        if key[:1] == "$":
            if key[:2] != "$$":
                return _special(stored, fetch)
            key = key[1:]
        try:
            out[key] = _decoded(item, fetch)
        except Refused as refused:
            refused.parts.append(key)
            raise
    return out


def _special(stored: dict[str, Json], fetch: Callable[[str], bytes]) -> Plain:
    match stored:
        case {"$lines": [_, *_] as lines, **rest} if not rest:
            return "\n".join(_texts("$lines", lines))
        case {"$base64": list(lines), **rest} if not rest:
            return _binary("".join(_texts("$base64", lines)))
        case {"$blob": str(digest), "bytes": int(size), "head": str(), **rest} if not rest:
            return _blob_text(digest, size, fetch)
    raise Refused(f"an unknown or malformed {next(key for key in stored if key[:1] == '$')[:80]!r} object")


def _texts(form: str, lines: list[Json]) -> list[str]:
    if all(isinstance(line, str) and "\n" not in line for line in lines):
        return cast("list[str]", lines)
    raise Refused(f"a malformed {form!r} object")


def _binary(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text.encode(), strict_mode=True) if text else b""
    except binascii.Error:
        raise Refused("'$base64' text that is not base64") from None


def _blob_text(digest: str, size: int, fetch: Callable[[str], bytes]) -> str:
    if not _SHA256.fullmatch(digest):
        raise Refused("a '$blob' that names no sha256")
    data = fetch(digest)
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise Refused(f"the blob {digest[:12]} is not what its name says", "restore it from a clone, then `verify`")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"the blob {digest[:12]} is not text") from None
