"""Errors as pages: what, and what to do next, with the status that fits. Never a traceback, and never a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..errors import Conflict, HermesError, InvalidInput, NotFound, TemporarilyLocked
from .rendering import opened, page

_STATUS: Final = ((NotFound, 404), (Conflict, 409), (InvalidInput, 400), (TemporarilyLocked, 503))


@dataclass(frozen=True)
class ErrorView:
    title: str
    message: str
    hint: str | None = None


def status_of(error: HermesError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, HermesError)
    title = error.code.replace("_", " ").capitalize()
    view = ErrorView(title, _clean(request, error.message), _clean(request, error.hint) if error.hint else None)
    return page(request, "error.html", view, status=status_of(error))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return page(
        request, "error.html", ErrorView(error.detail, _clean(request, request.scope["path"])), status=error.status_code
    )


def _clean(request: Request, text: str) -> str:
    # An error may repeat what was sent, or what lies somewhere.
    for workspace in opened(request).every:
        text = workspace.redactor.text(text)
    return text


HANDLERS: Final[Mapping[Any, Any]] = {HermesError: _ours, HTTPException: _http}
