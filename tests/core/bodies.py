"""Steps that test bodies are made of."""

from __future__ import annotations

from hermes_workflows.authoring import step


@step
def one(value: int = 1) -> int:
    return value


@step
def two(value: int = 2) -> int:
    return value


@step
def tidy(value: int = 0) -> int:
    """What a body does in a `finally`."""
    return value
