"""`operation_id()`: one name for an effect, however often the step that has it is executed."""

from __future__ import annotations

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


class executing:  # noqa: N801  # used like a function; as a generator it would cost a small step more than its work
    """What runs in this block, and tasks and contexts made in it, belongs to `operation`."""

    __slots__ = ("_operation", "_token")

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def __enter__(self) -> None:
        self._token = _current.set(self._operation)

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)
