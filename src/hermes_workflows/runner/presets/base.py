"""What a preset is: how one kind of agent program is asked, and how what it says is read.

    Ask --prepare--> Invocation --(the runner runs it)--> Said --read--> AgentResponse

A preset starts nothing, writes nothing and judges nothing: whether an answer fits its type, and whether an attempt
counts, is decided in one place for all of them (`runner/verdicts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ...errors import HermesError
from ...settings import AgentSettings
from ..candidates import Printed
from ..protocol import AgentRequest, AgentResponse

TOOLS, MODEL = "tools", "model"


class CannotEnforce(HermesError):
    """A call wants something of an agent that the configured one cannot be held to."""

    code = "cannot_enforce"


@dataclass(frozen=True)
class Ask:
    """One attempt, as a preset sees it.

    `request` is what a program reads that speaks our JSON; `prompt` the same as text for all others.
    `folder` is private to this attempt and is removed after it; `cwd` is where the program starts.
    `budget` is what is left, in USD. `recorded` holds the entries that a replay chooses from.
    """

    request: AgentRequest
    prompt: str
    settings: AgentSettings
    folder: Path
    cwd: Path
    budget: float | None = None
    recorded: tuple[Mapping[str, Any], ...] = ()

    @property
    def model(self) -> str | None:
        """The author's wish wins over the operator's."""
        return self.request.model or self.settings.model

    def program(self, usual: str) -> tuple[str, ...]:
        """The command to begin with: the configured one, or the usual name."""
        return self.settings.command or (usual,)

    def model_words(self, flag: str) -> tuple[str, ...]:
        return (flag, self.model) if self.model else ()

    def file(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True)
class Invocation:
    """What to run. `files` are written into the attempt's folder before; `results` are read from it afterwards."""

    argv: tuple[str, ...]
    stdin: bytes | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """What the program said: redacted text without terminal control, and the files it left, by name."""

    stdout: str
    stderr: str
    files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def printed(self) -> Printed:
        """The JSON on standard output; looked for once, since it may be long."""
        return Printed.of(self.stdout)


class Preset(Protocol):
    """One kind of agent program."""

    @property
    def install(self) -> str:
        """What to do when the program is not there."""

    def enforces(self, ask: Ask) -> frozenset[str]:
        """Which of `tools` and `model` the program can be held to."""

    def prepare(self, ask: Ask) -> Invocation | AgentResponse:
        """The command of an attempt, or at once its answer. Raises CannotEnforce, InvalidInput."""

    def read(self, ask: Ask, said: Said) -> AgentResponse | None:
        """What it answered; None when it said nothing in its own form, and its standard output is the answer.

        Raises NoAnswer for an answer that cannot be read.
        """


def check_enforced(preset: Preset, ask: Ask) -> None:
    """Raises CannotEnforce: an argument that would be passed over is worse than a call that fails."""
    able = preset.enforces(ask)
    if ask.request.tools is not None and TOOLS not in able:
        raise CannotEnforce(
            f"the preset {ask.settings.preset} cannot limit an agent to tools={list(ask.request.tools)}",
            hint="leave tools= out, or choose a preset that limits them (docs/agents.md)",
        )
    if ask.request.model and MODEL not in able:
        raise CannotEnforce(
            f"this agent's command has no place for model={ask.request.model!r}",
            hint='add "model_args": ["--model", "{model}"] to its entry, or leave model= out',
        )


def through_file(ask: Ask, longest: int, reader: str | None = None) -> tuple[str, dict[str, bytes]]:
    """The prompt, or a short one that sends the agent to a file where the whole one stands; and the files to write.

    For programs that take no more than `longest` bytes; `reader` is the tool that they read files with.
    """
    whole = ask.prompt.encode("utf-8", "replace")
    if len(whole) <= longest:
        return ask.prompt, {}
    tools = ask.request.tools
    if reader is not None and tools is not None and reader not in tools:
        raise CannotEnforce(
            f"a prompt of {len(whole):,} bytes has to be read from a file, and tools={list(tools)} has no {reader!r}",
            hint=f"add {reader!r}, or give what is long as files=",
        )
    name = "prompt.md"
    short = f"""Your task is in the file {ask.file(name)}, which has {len(whole):,} bytes.
Read it to its end, in parts if need be, and do what it says. Your answer is what it asks for."""
    return short, {name: whole}
