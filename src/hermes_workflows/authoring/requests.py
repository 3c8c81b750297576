"""From an author's arguments to a request that a receipt can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import TypeVar

from ..core.calls import current_run
from ..core.encoding import Plain
from ..core.loop import MAX_DELAY
from ..errors import InvalidInput, UnstorableValue

T = TypeVar("T")


def request_of(make: Callable[[], Mapping[str, Plain]]) -> tuple[Mapping[str, Plain], UnstorableValue | None]:
    """The request, or why it cannot be stored: then the call fails at its await, naming its key and the place."""
    try:
        return make(), None
    except UnstorableValue as error:
        return {}, error


def part(name: str, write: Callable[[T], Plain], value: T) -> Plain:
    """One part of a request; an error names its place in the whole."""
    try:
        return write(value)
    except UnstorableValue as error:
        raise placed(name, error) from None


def placed(name: str, error: UnstorableValue) -> UnstorableValue:
    """The same error about a part, with its place in the whole."""
    return UnstorableValue(f"/{name}{error.path}", error.reason, hint=error.hint)


def relative(what: str, path: str | PurePath) -> str:
    """Paths in requests are relative to the workspace, so that a run means the same wherever it is checked out.

    `what` is the primitive; raises NotInAWorkflow outside of a body.
    """
    root, pure = current_run(what).root, PurePath(path)
    return pure.relative_to(root).as_posix() if root and pure.is_relative_to(root) else pure.as_posix()


def seconds_of(what: str, span: float | timedelta | None) -> float | None:
    """A span of time as seconds. Raises InvalidInput for what is none."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    check_seconds(what, seconds)
    return seconds


def check_seconds(what: str, seconds: float | None) -> None:
    """Raises InvalidInput for what is no span of time, instead of failing in a runner later."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidInput(f"{what}: {type(seconds).__name__} is no number of seconds")
    if not math.isfinite(seconds) or not 0 < seconds <= MAX_DELAY:
        raise InvalidInput(f"{what}: {seconds:g} is no number of seconds", hint="more than 0, at most a hundred years")


def check_text(what: str, value: object) -> None:
    """Raises InvalidInput for what is no text and not left out either."""
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}", hint="format it: an f-string, or input=")
