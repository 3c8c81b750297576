"""`hermes doctor` about Hermes itself: which version is there, what it lacks, and whether it lets the plugin in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.place import Inside, inside

from hermes_workflows.hermes_plugin.offers import HOOKS, METHODS

pytest.importorskip("yaml", reason="no PyYAML: Hermes' configuration is not read here")

__all__ = ["inside"]

FOUND = dict[str, tuple[str, str | None]]


def _hermes_of(place: Path, version: str, source: str | None) -> str:
    """A folder for Python's path in which that version of Hermes is installed; `source` is its module of plugins."""
    about = place / f"hermes_agent-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hermes-agent\nVersion: {version}\n")
    (place / "hermes_cli").mkdir()
    (place / "hermes_cli" / "__init__.py").write_text("raise SystemExit('Hermes was started')\n")
    if source is not None:
        (place / "hermes_cli" / "plugins.py").write_text(source)
    return str(place)


def _plugins(*without: str) -> str:
    methods = [f"    def {name}(self): ...\n" for name in METHODS if name not in without]
    hooks = [f'    "{name}",\n' for name in HOOKS if name not in without]
    return "class Context:\n" + "".join(methods) + "HOOKS = (\n" + "".join(hooks) + ")\n"


def _found(inside: Inside, path: str = "") -> FOUND:
    if path:
        inside.work.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))
    said = inside.work.run("hermes", "doctor", "--home", str(inside.home)).json
    return {each["what"]: (each["level"], each["hint"]) for each in said["findings"]}


@pytest.mark.parametrize(
    ("version", "level"), [("0.19.0", "ok"), ("0.21.3", "ok"), ("0.18.9", "warning"), ("1.0", "warning")]
)
def test_the_version_is_held_against_those_that_were_tried_without_starting_it(
    inside: Inside, tmp_path: Path, version: str, level: str
) -> None:
    found = _found(inside, _hermes_of(tmp_path / "path", version, _plugins()))
    (said,) = [what for what in found if what.startswith(f"Hermes Agent {version}")]
    assert found[said][0] == level
    assert ("tried with 0.19 to 0.21" in said) == (level == "warning")


@pytest.mark.parametrize("missing", [METHODS[0], *HOOKS])
def test_what_this_hermes_does_not_offer_to_plugins_is_named(inside: Inside, tmp_path: Path, missing: str) -> None:
    found = _found(inside, _hermes_of(tmp_path / "path", "0.20.0", _plugins(missing)))
    assert found[f"Hermes Agent 0.20.0 has no {missing}"] == ("warning", "what needs it is left out; the rest works")


def test_a_hermes_that_takes_no_plugins_is_a_problem(inside: Inside, tmp_path: Path) -> None:
    found = _found(inside, _hermes_of(tmp_path / "path", "0.20.0", None))
    assert found["Hermes Agent 0.20.0 has no plugins"] == ("problem", "install one of 0.19 to 0.21")


@pytest.mark.parametrize(
    ("config", "level", "says"),
    [
        ("plugins:\n  enabled: [hermes-workflows]\n", "ok", "enables hermes-workflows"),
        ("plugins:\n  disabled: [hermes-workflows]\n", "problem", "disables hermes-workflows"),
        ("model: x\n", "problem", "does not enable hermes-workflows"),
        ("plugins: [", "problem", "cannot be read: ParserError"),
    ],
)
def test_whether_hermes_lets_the_plugin_in_is_said(inside: Inside, config: str, level: str, says: str) -> None:
    (inside.home / "config.yaml").write_text(config)
    assert _found(inside)[f"{inside.home / 'config.yaml'} {says}"][0] == level


def _folder(inside: Inside) -> Path:
    return inside.home / "plugins" / "hermes-workflows"


def test_without_a_folder_of_hermes_nothing_else_is_looked_at(inside: Inside) -> None:
    inside.home.rmdir()
    assert list(_found(inside))[-1] == f"Hermes has no folder {inside.home}"


def test_a_folder_of_somebody_else_is_a_problem_and_so_is_a_note_that_is_damaged(inside: Inside) -> None:
    _folder(inside).mkdir(parents=True)
    assert _found(inside)[f"{_folder(inside)} is not ours"] == ("problem", "move it elsewhere, and install")
    (_folder(inside) / "installed.json").write_text("[]")
    (problem,) = [what for what in _found(inside) if "is no note of ours" in what]
    assert problem.startswith(str(_folder(inside)))


def test_files_that_were_changed_are_named_and_files_that_are_gone_are_written_again(inside: Inside) -> None:
    inside.work.run("hermes", "install", "--home", str(inside.home))
    manifest = _folder(inside) / "plugin.yaml"
    whole = manifest.read_text()
    manifest.write_text("name: theirs\n")
    assert _found(inside)[f"changed since: {manifest}"][0] == "problem"
    manifest.unlink()
    assert _found(inside)[f"{_folder(inside)} is of another version, or not complete"][0] == "warning"
    inside.work.run("hermes", "install", "--home", str(inside.home))
    assert manifest.read_text() == whole


def test_a_model_that_may_answer_is_said(inside: Inside) -> None:
    file = inside.work.root / ".hermes" / "workflows.registry.json"
    rules: dict[str, Any] = json.loads(file.read_text()) | {"hermes": {"answer_tool": True}}
    file.write_text(json.dumps(rules))
    assert _found(inside)["its model may answer questions; such answers are recorded as an agent's"][0] == "ok"
