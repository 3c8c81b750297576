"""The registry file: what is read, what is refused and how, and which registry a command sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_workflows.errors import InvalidInput, NotFound
from hermes_workflows.registry import Registry, choose, find, load, parse

PLACE = Path("/ws/.hermes/workflows.registry.json")


def parsed(**data: Any) -> Registry:
    return parse(json.dumps(data), PLACE)


def refused(**data: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parsed(**data)
    return caught.value


def test_the_quickstart_registry_is_read() -> None:
    workflow = {"workflow_ref": "pkg.mod:draft", "db": "default"}
    registry = parsed(dbs={"default": "workflows.sqlite"}, workflows={"draft": workflow})
    assert registry.root == Path("/ws")
    assert registry.dbs["default"].sqlite == Path("/ws/.hermes/workflows.sqlite")
    assert registry.dbs["default"].receipts == Path("/ws/.hermes/workflows.git")
    assert registry.workflows["draft"].ref == "pkg.mod:draft"


def test_a_database_may_name_both_its_files() -> None:
    registry = parsed(dbs={"default": {"path": "a.sqlite", "receipts": "../b.git"}})
    assert registry.dbs["default"].receipts == Path("/ws/b.git")


def test_an_entry_without_db_uses_the_default_database_of_everybody() -> None:
    registry = parsed(
        dbs={"other": "o.sqlite", "default": "d.sqlite"}, workflows={"draft": {"workflow_ref": "pkg:draft"}}
    )
    assert registry.workflows["draft"].db == "default"
    assert registry.database(None, Path("/elsewhere")).alias == "default"


def test_the_only_database_is_the_default_one_whatever_its_name() -> None:
    assert parsed(dbs={"main": "m.sqlite"}).default_db == "main"


def test_several_databases_without_a_default_are_a_question_not_a_guess() -> None:
    registry = parsed(dbs={"a": "a.sqlite", "b": "b.sqlite"})
    with pytest.raises(InvalidInput, match="none of the databases a, b is called 'default'"):
        registry.database(None, Path("/"))


def test_a_registry_without_dbs_has_the_default_one() -> None:
    assert parsed().dbs["default"].sqlite == Path("/ws/.hermes/workflows.sqlite")


@pytest.mark.parametrize(
    ("data", "place", "word"),
    [
        ({"workflow": {}}, "workflow", "workflows"),
        ({"workflows": {"draft": {"workflow_ref": "a:b", "dbb": "x"}}}, "workflows.draft.dbb", "db"),
        ({"workflows": {"draft": {"workflowref": "a:b"}}}, "workflows.draft.workflowref", "workflow_ref"),
        ({"dbs": {"default": {"pth": "x.sqlite"}}}, "dbs.default.pth", "path"),
    ],
)
def test_a_misspelt_key_is_an_error_that_names_the_right_word(data: dict[str, Any], place: str, word: str) -> None:
    error = refused(**data)
    assert f"{place} is not a known key" in error.message
    assert error.hint == f"did you mean '{word}'?"


def test_a_key_of_another_version_is_reported_and_does_not_stop_anybody() -> None:
    registry = parsed(notifications={"mail": "x"})
    assert len(registry.warnings) == 1
    assert "notifications is not a known key" in registry.warnings[0]


def test_an_entry_that_names_no_database_is_told_the_nearest_one() -> None:
    error = refused(dbs={"default": "w.sqlite"}, workflows={"draft": {"workflow_ref": "a:b", "db": "defualt"}})
    assert "workflows.draft.db names no database: 'defualt'" in error.message
    assert error.hint == "did you mean 'default'?"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"workflows": {"draft": {}}}, "workflows.draft.workflow_ref is missing"),
        ({"workflows": {"draft": "a:b"}}, "workflows.draft must be a JSON object"),
        ({"dbs": {"default": 3}}, "dbs.default must be a JSON object"),
        ({"dbs": []}, "dbs must be a JSON object"),
        ({"dbs": {"default": "workflows.git"}}, "dbs.default is the SQLite file"),
        ({"operator": ""}, "operator must be a text"),
        ({"redact": "TOKEN"}, "redact must be a list"),
        ({"keep_runs": True}, "keep_runs must be a whole number"),
        ({"bursts": 1}, "bursts must be true or false"),
    ],
)
def test_a_wrong_shape_is_named_by_its_place(data: dict[str, Any], message: str) -> None:
    assert message in refused(**data).message


def test_two_databases_never_share_a_file() -> None:
    error = refused(dbs={"a": "a.sqlite", "b": {"path": "b.sqlite", "receipts": "a.git"}})
    assert "dbs.a and dbs.b share /ws/.hermes/a.git" in error.message


def test_broken_json_is_named_with_line_and_column() -> None:
    with pytest.raises(InvalidInput, match=r"registry\.json:2:3: not valid JSON"):
        parse('{"dbs": {},\n  nonsense}', PLACE)


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'dbs' stands twice"):
        parse('{"dbs": {}, "dbs": {}}', PLACE)


def test_db_takes_an_alias_or_any_path_of_that_database() -> None:
    registry = parsed(dbs={"default": "workflows.sqlite"})
    for name in ("default", ".hermes/workflows.sqlite", "/ws/.hermes/workflows.git"):
        assert registry.database(name, Path("/ws")).alias == "default"
    with pytest.raises(NotFound) as caught:
        registry.database("defualt", Path("/ws"))
    assert caught.value.hint == "did you mean 'default'?"


def a_workspace(folder: Path) -> Path:
    (folder / ".hermes").mkdir(parents=True)
    (path := folder / ".hermes" / "workflows.registry.json").write_text("{}")
    return path


def test_the_registry_is_found_upwards(tmp_path: Path) -> None:
    path = a_workspace(tmp_path)
    (deep := tmp_path / "src" / "deep").mkdir(parents=True)
    assert find(deep) == path
    assert choose(None, None, deep).root == tmp_path.resolve()


def test_a_database_path_brings_the_registry_beside_it(tmp_path: Path) -> None:
    a_workspace(tmp_path / "theirs")
    a_workspace(tmp_path / "ours")
    registry = choose(None, "../theirs/.hermes/workflows.sqlite", tmp_path / "ours")
    assert registry.root == (tmp_path / "theirs").resolve()


def test_a_database_without_a_registry_still_opens(tmp_path: Path) -> None:
    registry = choose(None, "state/runs.sqlite", tmp_path)
    assert registry.path is None
    assert registry.database("state/runs.sqlite", tmp_path).receipts == (tmp_path / "state" / "runs.git").resolve()


def test_a_folder_without_a_registry_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        choose(None, None, tmp_path)
    assert "init" in (caught.value.hint or "")
    with pytest.raises(NotFound, match="no registry at"):
        load(tmp_path / "missing.json")
