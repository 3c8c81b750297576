"""What an execution is given and what it says: a job, its surroundings, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..authoring.step import Step
from ..core.calls import Call
from ..core.clock import Clock
from ..core.encoding import Plain
from ..core.receipts import Failure, Receipt, Usage
from ..core.redaction import Redactor
from ..errors import HermesError
from ..settings import Agents, EnvironmentRules
from .agents import AgentAttempt
from .presets import PRESETS
from .presets.base import Preset
from .stopping import StopSignal


@dataclass(frozen=True)
class Surroundings:
    """What executors know of the world: handed down from the command line, never asked for here.

    `rules` say which variables commands and agents get; `recorded` gives the receipts of a run, by its id;
    `presets` are the kinds of agents there are;
    `left_behind` are the threads of steps that ran over their deadline.
    """

    root: Path
    environment: Mapping[str, str]
    redactor: Redactor
    clock: Clock
    agents: Agents = field(default_factory=lambda: Agents({}, {}))
    recorded: Callable[[str], Sequence[Receipt]] = lambda _: ()
    presets: Mapping[str, Preset] = field(default_factory=lambda: PRESETS)
    rules: EnvironmentRules = field(default_factory=EnvironmentRules)
    left_behind: list[threading.Thread] = field(default_factory=list)


# Characters of a line that are told: it stands in one row of a screen.
_LINE = 160


class LastLine:
    """The last line that an execution has printed; written by its thread, read by the one that tells of it."""

    def __init__(self) -> None:
        self.text = ""

    def heard(self, _stream: str, line: str) -> None:
        if said := " ".join(line.split()):
            self.text = said[:_LINE]


@dataclass(frozen=True)
class Job:
    """One execution of one call, which the version `code` of the code of `workflow` asked for.

    `earlier` are the receipts of its failed attempts; `stop` is set when nobody wants the result any more, or the
    runner ends. `last` is what the execution has printed last.
    """

    run_id: str
    call: Call[Any]
    attempt: int
    workflow: str
    code: str
    surroundings: Surroundings
    earlier: tuple[Receipt, ...] = ()
    stop: StopSignal = field(default_factory=StopSignal)
    last: LastLine = field(default_factory=LastLine)

    @property
    def operation_id(self) -> str:
        """The same for every execution of this call, so that a service can recognise a repeat."""
        return f"{self.run_id}/{self.call.key}"

    @property
    def can_be_stopped(self) -> bool:
        """Everything but a function in a thread, which Python cannot stop."""
        options = self.call.spec.options
        return not isinstance(options, Step) or options.is_async or options.process


@dataclass(frozen=True)
class Executed:
    """How a call ended. `status` is completed, failed or cancelled; `retryable` says whether trying again may help.

    `attempt` is the number of the last attempt, where one execution makes several, and `attempts` tells the failed
    ones among them; `noted` are further facts for the receipt's `execution`; `blobs` are files to lie beside
    it, by sha256.
    """

    status: str
    output: Plain = None
    error: Failure | None = None
    usage: Usage | None = None
    redactions: Mapping[str, int] = field(default_factory=dict)
    transcript: Mapping[str, Any] | None = None
    mock: bool = False
    retryable: bool = True
    attempt: int | None = None
    attempts: tuple[Mapping[str, Any], ...] = ()
    noted: Mapping[str, Any] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)


class NoAgent(HermesError):
    """This runner has no command for agents; another one may."""

    code = "no_agent"


Report = Callable[[AgentAttempt], None]
"""Takes an attempt that failed and is followed by another."""
