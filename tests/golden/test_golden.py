"""What any version has written must load, verify and replay for ever, and so must what a new one writes otherwise."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place
from tests.golden.making import HERE, schema

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import SCHEMA, Author, Receipt, draft, load

FORMATS = sorted(folder for folder in HERE.iterdir() if folder.name.isdigit())
NEWEST = max(FORMATS, key=lambda folder: int(folder.name))
RECEIPTS = [file for folder in FORMATS for file in sorted((folder / "receipts").rglob("*.json"))]
NOTES = HERE.parents[1] / "docs" / "receipts.md"
KINDS = {"agent", "artifact", "bash", "child", "control", "result", "review", "run", "signal", "step", "timer"}
FAMILIES = {
    *("run", "end", "attempt", "start", "step", "timer-start", "timer", "request", "response", "signal"),
    *("cancel", "control"),
}
SAID = f"""The receipts of this program are not those of tests/golden/{NEWEST.name} any more. Take the change back, or
keep what was: make tests/golden/{int(NEWEST.name) + 1} with a flows.py, run `python -m tests.golden.making`, and write
its line into the table of formats in docs/receipts.md, with what readers of older receipts see."""


def _named(file: Path) -> str:
    return str(file.relative_to(HERE))


def _place_of(file: Path) -> tuple[str, Path]:
    """The path inside the run's folder, and that folder."""
    run = next(parent for parent in file.parents if parent.parent.name == "receipts")
    return str(file.relative_to(run)), run


def _loaded(file: Path) -> Receipt:
    path, run = _place_of(file)

    def fetch(sha256: str) -> bytes:
        data = (run / "artifacts" / sha256[:2] / sha256).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sha256
        return data

    return load(path, file.read_bytes(), fetch)


@pytest.mark.parametrize("file", RECEIPTS, ids=_named)
def test_a_receipt_of_any_version_is_read_and_would_be_written_the_same(file: Path) -> None:
    receipt = _loaded(file)
    assert draft(receipt, Author("golden")).render(receipt.seq) == file.read_bytes()


@pytest.mark.parametrize("folder", FORMATS, ids=_named)
def test_the_receipts_of_a_version_show_every_kind_and_every_place(folder: Path) -> None:
    receipts = [_loaded(file) for file in RECEIPTS if folder in file.parents]
    assert {each.kind for each in receipts} >= KINDS
    families = {found.family for each in receipts if (found := layout.place(each.path)) is not None}
    assert families >= FAMILIES
    statuses = {(each.kind, each.status) for each in receipts}
    assert {("review", "expired"), ("review", "withdrawn"), ("bash", "cancelled"), ("signal", "failed")} <= statuses


def test_what_receipts_look_like_has_not_changed_without_a_golden_of_it() -> None:
    assert schema() == json.loads((NEWEST / "schema.json").read_text()), SAID
    assert f"`{SCHEMA}`" in _notes()[NEWEST.name], SAID


def test_every_golden_format_has_its_note_for_whoever_migrates() -> None:
    assert _notes().keys() == {folder.name for folder in FORMATS}
    assert [folder.name for folder in FORMATS if not list((folder / "runs").glob("*.bundle"))] == []


def _notes() -> dict[str, str]:
    return dict(re.findall(r"^\| (\d+) \| (.+) \|$", NOTES.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module", params=FORMATS, ids=_named)
def arrived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[str]]:
    """A workspace of today into which the whole runs of that format came, and their names there."""
    folder: Path = request.param
    made = place(tmp_path_factory.mktemp("golden") / "ws", {"dbs": {"default": "workflows.sqlite"}})
    (made.root / "flows.py").write_bytes((folder / "flows.py").read_bytes())
    names = []
    for bundle in sorted((folder / "runs").glob("*.bundle")):
        said = made.run("import", str(bundle))
        assert said.code == 0, said.stderr
        names.append(bundle.stem)
    return made, names


def test_whole_runs_of_any_version_verify(arrived: tuple[Place, list[str]]) -> None:
    made, names = arrived
    for name in names:
        said = made.run("verify", name)
        assert said.code == 0, said.stdout + said.stderr


def test_whole_runs_of_any_version_are_decided_again_as_they_were(arrived: tuple[Place, list[str]]) -> None:
    made, names = arrived
    said = made.run("replay", *names)
    assert said.code == 0, said.stdout + said.stderr
    assert said.json["checked"] == len(names)


def test_whole_runs_of_any_version_are_shown(arrived: tuple[Place, list[str]]) -> None:
    made, names = arrived
    for name in names:
        shown: Any = made.run("show", name)
        assert shown.code == 0, shown.stderr
