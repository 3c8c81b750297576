"""Who answers `agent()` calls, as the command line and the environment say it.

`--agent NAME=PRESET` names one; `--agent-command` and what belongs to it, the flags of the first system of this
name, answer for everybody else. Its variables are the fallback: they come before the registry's `*` and after
everything that is named.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..settings import ANY, DEFAULT_TIMEOUT, AgentSettings, chosen_agent
from .numbers import Seconds

_VARIABLES = "HERMES_WORKFLOWS_AGENT_"
_STDIN = ("json", "prompt")


class ChosenAgents(NamedTuple):
    """What was asked for by flags, by name, and what variables say for those nobody names."""

    named: Mapping[str, AgentSettings]
    fallback: AgentSettings | None


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags; the command gets them as one `agents=`, a `ChosenAgents`."""
    for option in reversed(
        (
            click.option(
                "--agent",
                "named",
                metavar="NAME=PRESET",
                multiple=True,
                help="Who answers as NAME ('*': as anybody): claude, codex, gemini, hermes, llm or opencode, with "
                ":MODEL after it when wanted; or replay:FILE.json, replay:RUN. Repeatable.",
            ),
            click.option("--agent-command", metavar="PROGRAM", help="A program of your own for all other agents."),
            click.option("--agent-arg", "agent_args", metavar="ARG", multiple=True, help="An argument for it."),
            click.option(
                "--agent-model-arg",
                "agent_model_args",
                metavar="ARG",
                multiple=True,
                help="An argument for it where a model is named, with {model} in its place.",
            ),
            click.option(
                "--agent-request-stdin",
                type=click.Choice(_STDIN),
                help="What it reads: JSON (the default) or a prompt.",
            ),
            click.option("--agent-timeout-seconds", type=Seconds(least_open=True)),
        )
    ):
        command = option(command)
    return command


def chosen_agents(options: dict[str, Any], environment: Mapping[str, str], start: Path) -> ChosenAgents:
    """Takes the flags of `agent_options` out of `options`; files are seen from `start`. Raises UsageError."""
    named = dict(_named(options.pop("named"), start))
    flags = {name: options.pop(f"agent_{name}") for name in _PARTS}
    variables = _variables(environment)
    if flags["command"] is not None:
        named.setdefault(ANY, _settings({**variables, **_given(flags)}))
        return ChosenAgents(named, None)
    if _given(flags) and "command" not in variables:
        lonely = next(iter(_given(flags))).replace("_", "-").replace("args", "arg")
        raise click.UsageError(f"--agent-{lonely} needs an --agent-command")
    return ChosenAgents(named, _settings({**variables, **_given(flags)}) if "command" in variables else None)


def fallback_agent(environment: Mapping[str, str]) -> AgentSettings | None:
    """What the variables alone say. Raises UsageError."""
    variables = _variables(environment)
    return _settings(variables) if "command" in variables else None


_PARTS = ("command", "args", "model_args", "request_stdin", "timeout_seconds")


def _named(flags: Sequence[str], start: Path) -> list[tuple[str, AgentSettings]]:
    found = []
    for flag in flags:
        try:
            name, settings = chosen_agent(flag)
        except ValueError as error:
            raise click.UsageError(f"--agent: {error}") from None
        if settings.answers is not None:
            settings = settings._replace(answers=str(start / settings.answers))
        found.append((name, settings))
    return found


def _given(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value not in (None, ())}


def _settings(parts: Mapping[str, Any]) -> AgentSettings:
    return AgentSettings(
        preset="command",
        command=_split("--agent-command", parts["command"]),
        args=tuple(parts.get("args", ())),
        model_args=tuple(parts.get("model_args", ())),
        stdin=parts.get("request_stdin"),
        timeout=parts.get("timeout_seconds", DEFAULT_TIMEOUT),
    )


def _split(where: str, command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise click.UsageError(f"{where}: {error}") from None
    if not words:
        raise click.UsageError(f"{where}: it is empty")
    return words


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    named = {
        name: environment[_VARIABLES + name] for name in _READERS if environment.get(_VARIABLES + name, "").strip()
    }
    read = {}
    for name, text in named.items():
        part, reader = _READERS[name]
        try:
            read[part] = reader(text)
        except ValueError as error:
            raise click.UsageError(f"{_VARIABLES}{name}: {error}") from None
    return read


def _list(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("must be a JSON list of texts") from None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("must be a JSON list of texts")
    return tuple(value)


def _stdin(text: str) -> str:
    if text not in _STDIN:
        raise ValueError(f"must be {' or '.join(_STDIN)}")
    return text


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError("must be a number of seconds above 0")
    return seconds


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "COMMAND": ("command", str),
    "ARGS_JSON": ("args", _list),
    "MODEL_ARGS_JSON": ("model_args", _list),
    "REQUEST_STDIN": ("request_stdin", _stdin),
    "TIMEOUT_SECONDS": ("timeout_seconds", _seconds),
}

# All that are read, by their whole names.
VARIABLES = tuple(_VARIABLES + name for name in _READERS)
