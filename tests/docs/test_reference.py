"""The reference pages name every command, option and argument, and none that is not there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.docs.pages import PAGES, ROOT, name_of

from hermes_workflows import authoring
from hermes_workflows.cli.commands import commands

_COMMON = ("--config", "--db", "--json", "--debug")
_CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
_AUTHORING = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")


def _leaves(group: Any, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{path}{name}", command
            yield from _leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


_COMMANDS = dict(_leaves(commands))


def _section(name: str) -> str:
    found = re.search(rf"^##+ `{name}`\n(.*?)(?=^##|\Z)", _CLI, re.M | re.S)
    assert found, f"docs/cli.md has no section on {name}"
    return found[1]


def _options(command: click.Command) -> dict[str, str]:
    """Each option as a reader of `--help` sees it: its name, and the word for its value."""
    context = click.Context(command)
    shown = {}
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record:
            shown[option.opts[0]] = record[0]
    return shown


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_option_of_a_command_has_its_line(name: str) -> None:
    options = _options(_COMMANDS[name])
    # What `--json` is for `respond`, the answer itself, is its own.
    own = {shown for option, shown in options.items() if option not in _COMMON or shown == "--json JSON|@FILE|-"}
    lines = re.findall(r"^\| `(--[^`]*)` \|", _section(name), re.M)
    assert {line.replace("\\|", "|") for line in lines} == own


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_says_which_common_options_it_takes(name: str) -> None:
    takes = [option for option in _COMMON if _options(_COMMANDS[name]).get(option) not in (None, "--json JSON|@FILE|-")]
    said = re.search(r"^Common: (.*)\.$", _section(name), re.M)
    assert said
    assert said[1] == (", ".join(f"`{option}`" for option in takes) or "none")


def test_no_command_is_described_that_is_not_there() -> None:
    described = re.findall(r"^##+ `([a-z ]+)`$", _CLI, re.M)
    groups = {name.partition(" ")[0] for name in _COMMANDS if " " in name}
    assert set(described) == _COMMANDS.keys() | groups


_SIGNED = (
    "agent", "approve", "artifact", "ask", "bash", "child", "goal", "map_workflow", "operation_id", "parallel",
    "pipeline", "prompt_file", "select", "sleep", "step", "wait_for", "Retry",
)  # fmt: skip


@pytest.mark.parametrize("name", _SIGNED)
def test_the_signatures_of_the_reference_are_those_of_the_code(name: str) -> None:
    shown = re.search(rf"^{name}\((.*)\)$", _AUTHORING, re.M)
    assert shown
    signature = inspect.signature(getattr(authoring, name)) if name != "step" else _signature_of_step()
    parts = [part for each in signature.parameters.values() for part in _parts(each)]
    assert shown[1] == ", ".join(_with_star(parts, signature))


def _signature_of_step() -> inspect.Signature:
    """`step` takes its options by name; they are those of `Step`."""
    of_class = inspect.signature(authoring.step(_nothing).__class__.__init__).parameters
    first = inspect.Parameter("fn", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    return inspect.Signature([first, *(each for name, each in of_class.items() if name not in ("self", "fn"))])


def _nothing() -> None:
    pass


def _parts(parameter: inspect.Parameter) -> Iterator[str]:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        yield f"*{parameter.name}"
    elif parameter.default is inspect.Parameter.empty:
        yield parameter.name
    else:
        default = parameter.default
        plain = isinstance(default, str | int | float | tuple | None)
        value = default.__name__ if isinstance(default, type) else repr(default) if plain else "…"
        yield f"{parameter.name}={value}".replace("'", '"')


def _with_star(parts: list[str], signature: inspect.Signature) -> list[str]:
    kinds = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.KEYWORD_ONLY not in kinds:
        return parts
    first = kinds.index(inspect.Parameter.KEYWORD_ONLY)
    return [*parts[:first], "*", *parts[first:]]


def test_every_name_of_the_authoring_module_is_described() -> None:
    missing = [name for name in authoring.__all__ if not re.search(f"`@?{name}", _AUTHORING)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_that_stands_in_a_sentence_is_there_with_its_options(page: Path) -> None:
    for line in re.findall(r"`hermes-workflows ([^`]+)`", page.read_text(encoding="utf-8")):
        words = line.split()
        name = " ".join(words[:2]) if " ".join(words[:2]) in _COMMANDS else words[0]
        assert name in _COMMANDS, f"{name_of(page)}: hermes-workflows {line}"
        options = {*_options(_COMMANDS[name]), "--help"}
        unknown = [word for word in words if word.startswith("--") and word not in options]
        assert unknown == [], f"{name_of(page)}: hermes-workflows {line}"
