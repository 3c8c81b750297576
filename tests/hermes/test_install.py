"""The plugin's folder: written, brought up to date, taken away to the byte; and what is not ours stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Said
from tests.hermes.place import Inside, inside, registry_with

pytest.importorskip("yaml", reason="no PyYAML: Hermes' configuration is not changed here")

__all__ = ["inside"]

CONFIG = "model:\n  default: x  # mine\nplugins:\n  enabled:\n    - web\n"


def _hermes(inside: Inside, *arguments: str) -> Said:
    return inside.work.run("hermes", *arguments, "--home", str(inside.home))


def _folder(inside: Inside) -> Path:
    return inside.home / "plugins" / "hermes-workflows"


def _everything(place: Path) -> dict[str, Any]:
    return {
        path.relative_to(place).as_posix(): path.read_bytes() if path.is_file() else None for path in place.rglob("*")
    }


def _findings(inside: Inside) -> dict[str, str]:
    return {each["what"]: each["level"] for each in _hermes(inside, "doctor").json["findings"]}


def test_installed_the_folder_is_there_the_name_enabled_and_the_workspace_named(inside: Inside) -> None:
    (inside.home / "config.yaml").write_text(CONFIG)
    said = _hermes(inside, "install").json
    assert said["enabled"] is True
    assert {"__init__.py", "plugin.yaml"} <= set(said["files"])
    note = json.loads((_folder(inside) / "installed.json").read_text())
    assert note["registry"] == str(inside.work.root / ".hermes" / "workflows.registry.json")
    assert "    - hermes-workflows\n" in (inside.home / "config.yaml").read_text()


@pytest.mark.parametrize("config", [CONFIG, "", None])
def test_uninstalled_hermes_is_as_it_was_to_the_byte(inside: Inside, config: str | None) -> None:
    if config is not None:
        (inside.home / "config.yaml").write_text(config)
    before = _everything(inside.home)
    assert _hermes(inside, "install").code == 0
    assert _hermes(inside, "uninstall").code == 0
    assert _everything(inside.home) == before


def test_what_python_has_compiled_goes_too(inside: Inside) -> None:
    _hermes(inside, "install")
    made = _folder(inside) / "__pycache__"
    made.mkdir()
    (made / "__init__.cpython-311.pyc").write_bytes(b"")
    assert _hermes(inside, "uninstall").code == 0
    assert not _folder(inside).exists()


def test_installed_twice_it_is_installed_once(inside: Inside) -> None:
    (inside.home / "config.yaml").write_text(CONFIG)
    _hermes(inside, "install")
    first = _everything(inside.home)
    assert _hermes(inside, "install").code == 0
    assert _everything(inside.home) == first
    _hermes(inside, "uninstall")
    assert (inside.home / "config.yaml").read_text() == CONFIG


def test_a_folder_of_somebody_else_is_neither_written_over_nor_removed(inside: Inside) -> None:
    _folder(inside).mkdir(parents=True)
    (_folder(inside) / "plugin.yaml").write_text("name: theirs\n")
    before = _everything(inside.home)
    for command in ("install", "uninstall"):
        assert "not ours" in _hermes(inside, command).error["message"]
    assert _everything(inside.home) == before


def test_a_link_is_not_followed(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    _folder(inside).parent.mkdir()
    _folder(inside).symlink_to(tmp_path / "elsewhere")
    assert "link" in _hermes(inside, "install").error["message"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_file_that_somebody_has_changed_is_kept_and_nothing_is_done(inside: Inside, command: str) -> None:
    _hermes(inside, "install")
    (_folder(inside) / "__init__.py").write_text("mine")
    before = _everything(inside.home)
    assert "__init__.py" in _hermes(inside, command).error["message"]
    assert _everything(inside.home) == before


def test_a_file_that_somebody_has_added_is_kept_and_nothing_is_removed(inside: Inside) -> None:
    _hermes(inside, "install")
    (_folder(inside) / "notes.txt").write_text("mine")
    before = _everything(inside.home)
    assert "notes.txt" in _hermes(inside, "uninstall").error["message"]
    assert _everything(inside.home) == before


def test_what_somebody_else_had_enabled_stays_enabled(inside: Inside) -> None:
    text = "plugins:\n  enabled: [hermes-workflows]\n"
    (inside.home / "config.yaml").write_text(text)
    _hermes(inside, "install")
    assert _hermes(inside, "uninstall").json["enabled"] is True
    assert (inside.home / "config.yaml").read_text() == text


def test_what_somebody_has_disabled_stays_disabled_and_the_way_back_is_said(inside: Inside) -> None:
    text = "plugins:\n  disabled: [hermes-workflows]\n"
    (inside.home / "config.yaml").write_text(text)
    said = _hermes(inside, "install").json
    assert said["enabled"] is False
    assert "hermes plugins enable" in said["hint"]
    assert (inside.home / "config.yaml").read_text() == text


@pytest.mark.parametrize("config", [b"plugins: [", b"\xff\xfe", b"- web\n", b"plugins: web\n", None])
def test_a_configuration_that_is_none_is_left_alone_and_the_folder_comes_and_goes(
    inside: Inside, config: bytes | None
) -> None:
    place = inside.home / "config.yaml"
    place.mkdir() if config is None else place.write_bytes(config)
    before = _everything(inside.home)
    said = _hermes(inside, "install").json
    assert said["enabled"] is None
    assert "hermes plugins enable" in said["hint"]
    assert _hermes(inside, "uninstall").code == 0
    assert _everything(inside.home) == before


def test_a_configuration_that_broke_since_keeps_its_bytes_and_the_rest_goes(inside: Inside) -> None:
    _hermes(inside, "install")
    (inside.home / "config.yaml").write_text("plugins: [hermes-workflows")
    said = _hermes(inside, "uninstall").json
    assert (said["enabled"], "take hermes-workflows out" in said["hint"]) == (None, True)
    assert _everything(inside.home) == {"config.yaml": b"plugins: [hermes-workflows"}


def test_a_file_in_the_place_of_the_folder_is_kept(inside: Inside) -> None:
    _folder(inside).parent.mkdir()
    _folder(inside).write_text("mine")
    for command in ("install", "uninstall"):
        assert "is not ours" in _hermes(inside, command).error["message"]
    assert _folder(inside).read_text() == "mine"


@pytest.mark.parametrize(
    "note",
    [{"files": {"../../keep": "x"}}, {"files": {"/etc/x": "x"}}, {"files": []}, {"registry": 1}, {"config": 2}, []],
)
def test_a_note_that_somebody_has_changed_leads_nowhere(inside: Inside, note: Any) -> None:
    _hermes(inside, "install")
    (inside.home / "keep").write_text("mine")
    (_folder(inside) / "installed.json").write_text(json.dumps(note))
    before = _everything(inside.home)
    for command in ("install", "uninstall"):
        assert "is no note of ours" in _hermes(inside, command).error["message"]
    assert _everything(inside.home) == before


def test_a_configuration_that_is_a_link_stays_one(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "dotfile.yaml").write_text(CONFIG)
    (inside.home / "config.yaml").symlink_to(tmp_path / "dotfile.yaml")
    _hermes(inside, "install")
    assert (inside.home / "config.yaml").is_symlink()
    assert "hermes-workflows" in (tmp_path / "dotfile.yaml").read_text()


def test_an_older_version_of_ours_is_brought_up_to_date(inside: Inside) -> None:
    _hermes(inside, "install")
    note = json.loads((_folder(inside) / "installed.json").read_text())
    (_folder(inside) / "old.py").write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    note["files"]["old.py"] = empty
    (_folder(inside) / "installed.json").write_text(json.dumps(note))
    assert any("another version" in what for what in _findings(inside))
    _hermes(inside, "install")
    assert not (_folder(inside) / "old.py").exists()


def test_without_hermes_folder_nothing_is_made(inside: Inside) -> None:
    inside.home.rmdir()
    assert "no folder" in _hermes(inside, "install").error["message"]
    assert not inside.home.exists()


def test_the_doctor_says_what_is_missing_until_it_is_there(inside: Inside) -> None:
    assert any("there is no" in what and level == "problem" for what, level in _findings(inside).items())
    assert any("does not enable" in what for what in _findings(inside))
    _hermes(inside, "install")
    found = _findings(inside)
    assert any("as it was written" in what and level == "ok" for what, level in found.items())
    assert any("enables" in what and level == "ok" for what, level in found.items())
    assert any(what.endswith("1 workflow") for what in found)


def test_the_doctor_names_a_workspace_that_is_gone(inside: Inside) -> None:
    _hermes(inside, "install")
    (inside.work.root / ".hermes" / "workflows.registry.json").unlink()
    assert any("no registry" in what and level == "problem" for what, level in _findings(inside).items())


def test_any_workspace_is_served_when_that_is_asked_for(inside: Inside) -> None:
    _hermes(inside, "install", "--any-workspace")
    assert json.loads((_folder(inside) / "installed.json").read_text())["registry"] is None


def test_the_doctor_says_when_nobody_could_answer_from_a_chat(inside: Inside) -> None:
    _hermes(inside, "install")
    registry = inside.work.root / ".hermes" / "workflows.registry.json"
    rules = {"hermes": {"senders": ["telegram:7"]}}
    said = "hermes.senders may answer from a chat, and no lines are sent to them"
    registry.write_text(json.dumps(registry_with(**rules)))
    assert _findings(inside)[said] == "warning"
    registry.write_text(json.dumps(registry_with(**rules, notify={"preset": "hermes", "to": "telegram"})))
    assert said not in _findings(inside)
    assert _findings(inside)["1 senders may answer from a chat with the lines of a notice"] == "ok"


def test_the_doctor_finds_a_key_that_others_may_have_read(inside: Inside) -> None:
    _hermes(inside, "install")
    key = inside.work.root / ".hermes" / "hermes" / "workflows.key"
    key.parent.mkdir()
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)
    assert _findings(inside)[f"{key}: others may have read this key"] == "problem"
