"""The executor of `artifact`: reads a file, and refuses what must not lie in the repository."""

from __future__ import annotations

import hashlib
import mimetypes
import stat
from pathlib import Path

from ..authoring.artifact import ArtifactOptions, refusal
from ..core.encoding import Limits, Plain
from ..errors import InvalidInput
from .jobs import Executed, Job, Report

# Python's own table: that of the machine would tell other types elsewhere.
_TYPES = mimetypes.MimeTypes()
_TYPES.add_type("text/markdown", ".md")
_UNKNOWN = "application/octet-stream"
_UNKNOWN_TEXT = "text/plain"


def execute_artifact(job: Job, _report: Report) -> Executed:
    """Raises InvalidInput for content that is refused, and for a file that cannot be read."""
    options: ArtifactOptions = job.call.spec.options
    around, limits = job.surroundings, Limits()
    data = options.content
    if data is None:
        assert options.path is not None  # an artifact has a content or a path
        data = _read(around.root, options.path, limits.blob_bytes)
    reason = refusal(data, limits, secret=around.redactor.finds(data))
    if reason is not None:
        raise InvalidInput(f"{options.name}: {reason}")
    digest = hashlib.sha256(data).hexdigest()
    output: dict[str, Plain] = {
        "name": around.redactor.text(options.name),
        "sha256": digest,
        "size": len(data),
        "media_type": options.media_type or _media_type(options.name, data),
    }
    return Executed("completed", output, blobs={digest: data})


def _read(root: Path, path: str, limit: int) -> bytes:
    # Messages name the path as the request does: where the workspace lies is no part of a receipt.
    try:
        # A pipe would wait for ever, and a file may grow while it is read.
        if not stat.S_ISREG((root / path).stat().st_mode):
            raise InvalidInput(f"{path} is no file")
        with (root / path).open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None


def _media_type(name: str, data: bytes) -> str:
    told, _ = _TYPES.guess_type(name)
    if told is not None:
        return told
    try:
        data.decode()
    except UnicodeDecodeError:
        return _UNKNOWN
    return _UNKNOWN_TEXT
