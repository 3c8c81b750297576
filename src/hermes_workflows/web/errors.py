"""Errors as pages: what, and what to do next, with the status that fits. Never a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..errors import Conflict, HermesError, InvalidInput, NotFound, TemporarilyLocked
from .rendering import page

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
    return page(request, "error.html", ErrorView(title, error.message, error.hint), status=status_of(error))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return page(request, "error.html", ErrorView(error.detail, request.url.path), status=error.status_code)


HANDLERS: Final[Mapping[Any, Any]] = {HermesError: _ours, HTTPException: _http}
