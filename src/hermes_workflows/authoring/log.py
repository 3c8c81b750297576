"""`log(...)`: a line for people who watch the runner."""

from __future__ import annotations

from ..core.calls import current_run


def log(message: str) -> None:
    """Write a line once, when the body passes this point beyond its last receipt: replays repeat nothing."""
    current_run("log()").log(str(message))
