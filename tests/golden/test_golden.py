"""What any version has written must load, verify and replay for ever, and so must what a new one writes otherwise."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import Place, place
from tests.golden.making import HERE, schema

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import SCHEMA, Author, Execution, Receipt, draft, load
from hermes_workflows.errors import IntegrityError

FORMATS = sorted(folder for folder in HERE.iterdir() if folder.name.isdigit())
NEWEST = max(FORMATS, key=lambda folder: int(folder.name))
RECEIPTS = [file for folder in FORMATS for file in sorted((folder / "receipts").rglob("*.json"))]
NOTES = HERE.parents[1] / "docs" / "receipts.md"
FAMILIES = {
    *("run", "end", "attempt", "start", "step", "late", "timer-start", "timer", "request", "response", "signal"),
    *("cancel", "control"),
}
# Each kind, and each way in which it ends.
STATUSES = {
    "run": {"started"},
    "result": {"completed", "failed", "cancelled"},
    "agent": {"completed", "failed", "cancelled"},
    "bash": {"completed", "failed", "cancelled"},
    "step": {"completed", "failed", "cancelled", "started", "unknown"},
    "child": {"completed", "failed", "started"},
    "artifact": {"completed", "failed"},
    "timer": {"started", "completed"},
    "review": {"requested", "completed", "expired", "withdrawn"},
    "signal": {"received", "started", "failed", "cancelled"},
    "control": {"cancel", "pause", "resume", "accept", "resolve"},
}
SAID = f"""The receipts of this program are not those of tests/golden/{NEWEST.name} any more. Take the change back, or
keep what was: make tests/golden/{int(NEWEST.name) + 1} with a flows.py and a rare.py, run `python -m
tests.golden.making` and `…making_rare`, and write its line into the table of formats in docs/receipts.md, with what
readers of older receipts see."""


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
    families = {found.family for each in receipts if (found := layout.place(each.path)) is not None}
    assert families >= FAMILIES
    seen: dict[str, set[str]] = {}
    for each in receipts:
        seen.setdefault(each.kind, set()).add(each.status)
    assert seen == STATUSES


def test_every_field_of_a_receipt_stands_in_some_golden() -> None:
    receipts = [_loaded(file) for file in RECEIPTS if NEWEST in file.parents]
    said = {name for each in receipts for name, value in each.execution if value is not None}
    assert said >= set(Execution.model_fields)
    provenances = [each.execution.provenance for each in receipts if each.execution.provenance is not None]
    assert {name for each in provenances for name, value in each if value is not None} >= {"kind", "by", "message_id"}


def test_what_is_reserved_for_purging_is_read_by_no_version_yet() -> None:
    """The place is kept free. What will lie there changes what receipts look like, and gets a golden of its own."""
    place = layout.place("control/1-tombstone.json")
    assert place == layout.Place(layout.Role.NOTE, "control", "tombstone", 1)
    data = (NEWEST / "receipts" / "paused" / "control" / "1-pause.json").read_bytes()
    with pytest.raises(IntegrityError, match="not a valid control receipt: status"):
        load("control/1-tombstone.json", data.replace(b'"status": "pause"', b'"status": "tombstone"'), lambda _: b"")


def test_what_receipts_look_like_has_not_changed_without_a_golden_of_it() -> None:
    assert schema() == json.loads((NEWEST / "schema.json").read_text()), SAID
    assert f"`{SCHEMA}`" in _notes()[NEWEST.name], SAID


def test_every_golden_format_has_its_note_for_whoever_migrates() -> None:
    assert _notes().keys() == {folder.name for folder in FORMATS}
    assert [folder.name for folder in FORMATS if not list((folder / "runs").glob("*.bundle"))] == []


def _notes() -> dict[str, str]:
    return dict(re.findall(r"^\| (\d+) \| (.+) \|$", NOTES.read_text(encoding="utf-8"), re.MULTILINE))


def _with_flows(made: Place, folder: Path) -> None:
    for flows in folder.glob("*.py"):
        (made.root / flows.name).write_bytes(flows.read_bytes())


@pytest.fixture(scope="module", params=FORMATS, ids=_named)
def arrived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[str]]:
    """A workspace of today into which the whole runs of that format came, and their names there."""
    folder: Path = request.param
    made = place(tmp_path_factory.mktemp("golden") / "ws", {"dbs": {"default": "workflows.sqlite"}})
    _with_flows(made, folder)
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


@pytest.mark.parametrize("folder", FORMATS, ids=_named)
def test_a_whole_repository_of_any_version_is_read_also_where_a_run_lies_in_the_ledger_only(
    folder: Path, tmp_path: Path
) -> None:
    made = place(tmp_path / "ws", {"dbs": {"default": "workflows.sqlite"}})
    _with_flows(made, folder)
    bundle = str(folder / "runs" / "whole.mirror")
    subprocess.run(["git", "clone", "-q", "--mirror", bundle, str(made.receipts)], check=True)
    made.git("config", "hermes.workspace", "restored")
    made.git("update-ref", "-d", "refs/runs/parent")
    verified, replayed = made.run("verify", "--all"), made.run("replay", "--all")
    assert verified.code == 0, verified.stdout + verified.stderr
    assert replayed.code == 0, replayed.stdout + replayed.stderr
    runs = made.run("list").json
    assert {"parent", "parent.below", "late", "mended"} <= {run["workflow_id"] for run in runs}
    assert replayed.json["checked"] == len(runs)
