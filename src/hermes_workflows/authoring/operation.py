"""`operation_id()`: one name for an effect, however often the step that has it is executed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import NotInAWorkflow

VARIABLE = "HERMES_OPERATION_ID"
"""What a command finds its operation id in."""

_current: ContextVar[str | None] = ContextVar("hermes_operation_id", default=None)


def operation_id() -> str:
    """Inside a `@step`: the same text for every execution of this call, so that a service can recognise a repeat.

    `pay(amount, idempotency_key=operation_id())`. Commands find it in `HERMES_OPERATION_ID`, agents in their request.
    Raises NotInAWorkflow outside of a step.
    """
    current = _current.get()
    if current is None:
        raise NotInAWorkflow(
            "operation_id() was called outside a step",
            hint="call it inside a @step function, while a runner executes it",
        )
    return current


@contextmanager
def executing(operation: str) -> Iterator[None]:
    """What runs in this block, and tasks and contexts made in it, belongs to `operation`."""
    token = _current.set(operation)
    try:
        yield
    finally:
        _current.reset(token)
