"""`hermes workflows …`: the command line itself in the place of Hermes' process, in the workspace that it serves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, Said
from tests.hermes.place import Inside, inside

__all__ = ["inside"]

# What Hermes does with the arguments that it has read for us, in a process that becomes ours.
_HERMES = """
import sys
from types import SimpleNamespace
from hermes_workflows.hermes_plugin.shell import run
run(SimpleNamespace(arguments=sys.argv[1:]))
print("Hermes goes on")
"""


def _typed(place: Place, *arguments: str) -> Said:
    """`hermes workflows ARGUMENTS…`, typed in that folder."""
    return place.begun(*arguments, program=[sys.executable, "-c", _HERMES])


@pytest.mark.parametrize("arguments", [("registry", "list", "--json"), ("status", "nothing"), ("lunch",)])
def test_it_says_and_ends_as_the_command_line_does(inside: Inside, arguments: tuple[str, ...]) -> None:
    assert _typed(inside.work, *arguments) == inside.work.begun(*arguments)


@pytest.mark.parametrize(
    ("typed", "meant"), [(("help", "run"), ("run", "--help")), (("help",), ("--help",)), ((), ("--help",))]
)
def test_help_is_a_word_where_hermes_keeps_the_option_for_itself(
    inside: Inside, typed: tuple[str, ...], meant: tuple[str, ...]
) -> None:
    said = _typed(inside.work, *typed)
    assert (said.code, said.stdout) == (0, inside.work.begun(*meant).stdout)


def test_outside_of_any_workspace_it_is_the_one_that_hermes_serves(inside: Inside, tmp_path: Path) -> None:
    inside.work.run("hermes", "install", "--home", str(inside.home))
    (tmp_path / "elsewhere").mkdir()
    found = _typed(Place(tmp_path / "elsewhere"), "registry", "list", "--json").json
    assert list(found["workflows"]) == ["launch"]


def test_in_a_workspace_it_is_that_one_whichever_hermes_serves(inside: Inside, tmp_path: Path) -> None:
    inside.work.run("hermes", "install", "--home", str(inside.home))
    (tmp_path / "other" / ".hermes").mkdir(parents=True)
    (tmp_path / "other" / ".hermes" / "workflows.registry.json").write_text("{}")
    assert _typed(Place(tmp_path / "other"), "registry", "list", "--json").json["workflows"] == {}


def test_where_no_workspace_is_the_command_says_so_itself(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    said = _typed(Place(tmp_path / "elsewhere"), "registry", "list")
    assert said.error["code"] == "not_found"
    assert "no .hermes/workflows.registry.json in" in said.error["message"]
