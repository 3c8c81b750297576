"""`artifact(...)`: a file that the run keeps, beside its receipts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ..core.calls import Call, CallSpec, current_run
from ..core.encoding import Limits, Plain
from ..core.live import LiveRun
from ..core.values import codec_for
from ..errors import ArtifactFailed, InvalidInput, UnstorableValue
from .requests import relative


@dataclass(frozen=True)
class Artifact:
    """A kept file. `size` in bytes; `sha256` names the content, and where it lies: `artifacts/<aa>/<sha256>`."""

    name: str
    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True)
class ArtifactOptions:
    """Where the executor finds the content: here, or at a path relative to the workspace."""

    content: bytes | None
    path: str | None
    name: str
    media_type: str | None


_CODEC = codec_for(Artifact)


def artifact(
    content: PurePath | bytes | str,
    *,
    name: str | None = None,
    media_type: str | None = None,
    key: str | None = None,
    key_by: object = None,
) -> Call[Artifact]:
    """Keep a file with the run: what lies at a path (relative to the workspace), or bytes, or a text.

    A file is read when a runner executes the call, and its content is no part of the request: a changed file does not
    diverge. Bytes and texts are named by their sha256 there. `name` is the file's own when left out; `media_type` is
    told from the name.
    Raises ArtifactFailed at the await for a file that cannot be read, is larger than 20 MiB or holds a secret;
    InvalidInput for bytes or a text without a name.
    """
    run = current_run("artifact()")
    name = _name(content, name)
    request: dict[str, Plain] = {"name": name, "media_type": media_type, "path": None, "sha256": None}
    data, refused = None, None
    if isinstance(content, PurePath):
        request["path"] = relative("artifact()", content)
    else:
        data, refused = _given(run, content)
        request["sha256"] = hashlib.sha256(data).hexdigest() if refused is None else None
    return Call(
        CallSpec(
            kind="artifact",
            # A component that ends in `.json` is spoken for; `data-json` reads better than what would become of it.
            name=name.replace(".", "-"),
            request=request,
            decode=lambda receipt: _CODEC.from_plain(receipt.output),
            failure=ArtifactFailed,
            options=ArtifactOptions(data, _text(request["path"]), name, media_type),
            key=key,
            key_by=key_by,
            refused=refused,
        )
    )


def refusal(data: bytes, limits: Limits, *, secret: bool) -> str | None:
    """Why no receipt may lie beside this content; None when it may."""
    if len(data) > limits.blob_bytes:
        return f"{len(data):,} bytes are more than an artifact of {limits.blob_bytes:,} holds"
    return "a secret, which an artifact would keep as it is" if secret else None


def _name(content: Any, name: str | None) -> str:
    if not isinstance(content, PurePath | bytes | str):
        raise InvalidInput(f"artifact() takes a path, bytes or a text, not {type(content).__name__}")
    name = name if name is not None or not isinstance(content, PurePath) else content.name
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput("artifact() of bytes or a text needs name=", hint="for a file, pass Path('report.md')")
    return name


def _given(run: LiveRun, content: bytes | str) -> tuple[bytes, UnstorableValue | None]:
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError:
        return b"", UnstorableValue("/content", "a lone surrogate")
    reason = refusal(data, run.limits, secret=run.redactor.finds(data))
    return data, UnstorableValue("/content", reason) if reason else None


def _text(value: Plain) -> str | None:
    return value if isinstance(value, str) else None
