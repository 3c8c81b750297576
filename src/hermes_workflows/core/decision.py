"""Between a body and those who run it: what is known of its workflow, and what it wants."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from .calls import AnyCall
from .encoding import Plain
from .ending import End
from .redaction import Counts, Redactor


class Definition(Protocol):
    """What the core needs to know of a workflow; `authoring.workflow.Workflow` is one."""

    @property
    def fn(self) -> Callable[..., Coroutine[Any, Any, Any]]: ...
    def arguments(self, value: Plain) -> tuple[Any, ...]:
        """The recorded input as the body's arguments."""

    def encode_result(self, value: Any, redactor: Redactor, counts: Counts) -> Plain:
        """The body's return value without secrets, of which `counts` gains the number.

        Raises UnstorableValue or InvalidInput when no receipt can hold it, or when without them it no longer fits.
        """


class Decision(NamedTuple):
    """What the body wants after the receipt `after`; `stuck` says why no receipt can ever wake it."""

    after: int
    requested: tuple[AnyCall, ...] = ()
    cancelled: tuple[AnyCall, ...] = ()
    end: End | None = None
    stuck: str | None = None
    logs: tuple[str, ...] = ()
