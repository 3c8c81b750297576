"""What an execution is given and what it says: a job, its surroundings, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.calls import Call
from ..core.clock import Clock
from ..core.encoding import Plain
from ..core.receipts import Failure, Usage
from ..core.redaction import Redactor
from ..errors import HermesError
from .agents import AgentAttempt, AgentCommand
from .stopping import StopSignal


@dataclass(frozen=True)
class Surroundings:
    """What executors know of the world: handed down from the command line, never asked for here.

    `left_behind` are the threads of steps that ran over their deadline.
    """

    root: Path
    environment: Mapping[str, str]
    redactor: Redactor
    clock: Clock
    agent: AgentCommand | None = None
    left_behind: list[threading.Thread] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """One execution of one call, which the code version `code` asked for.

    `stop` is set when nobody wants the result any more, or the runner ends.
    """

    run_id: str
    call: Call[Any]
    attempt: int
    code: str
    surroundings: Surroundings
    stop: StopSignal = field(default_factory=StopSignal)

    @property
    def operation_id(self) -> str:
        """The same for every execution of this call, so that a service can recognise a repeat."""
        return f"{self.run_id}/{self.call.key}"


@dataclass(frozen=True)
class Executed:
    """How a call ended. `status` is completed, failed or cancelled; `retryable` says whether trying again may help."""

    status: str
    output: Plain = None
    error: Failure | None = None
    usage: Usage | None = None
    redactions: Mapping[str, int] = field(default_factory=dict)
    transcript: Mapping[str, Any] | None = None
    mock: bool = False
    retryable: bool = True


class NoAgent(HermesError):
    """This runner has no command for agents; another one may."""

    code = "no_agent"


Report = Callable[[AgentAttempt], None]
"""Takes an attempt that failed and is followed by another."""
