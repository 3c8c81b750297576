"""`/artifacts/<run>/<sha256>`: a file that a run has kept, found by its hash and never by a path.

Only pictures of a few kinds are shown, and only when their first bytes say so too; all else is a download.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import NotFound
from ..rendering import opened

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# No type that a browser could run something from, as SVG.
_SIGNS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def show(request: Request) -> Response:
    run, sha256 = request.path_params["run"], request.path_params["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound(f"{sha256!r} is no sha256", hint="`hermes-workflows artifact list` shows what a run has kept")
    kept, data = opened(request).of_run(run).artifact(run, sha256)
    shown = any(map(data.startswith, _SIGNS.get(kept.media_type, ())))
    headers = {
        "Content-Disposition": "inline" if shown else f'attachment; filename="{kept.sha256[:12]}{_suffix(kept.name)}"',
        "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }
    return Response(data, media_type=kept.media_type if shown else "application/octet-stream", headers=headers)


def _suffix(name: str) -> str:
    """The end of a foreign name, when it can stand in a header and in a folder of downloads."""
    found = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return found[0] if found else ""


ROUTES: Final = (Route("/artifacts/{run}/{sha256}", show, name="artifact"),)
