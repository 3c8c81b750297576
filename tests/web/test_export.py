"""The pages as files: each link leads to one, nothing in them runs or asks, the same state is the same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.contract.workspaces import SHIP, Desk, person
from tests.web.browser import TOKEN, waiting_desk
from tests.web.calling import ran
from tests.web.test_artifacts import PNG, SVG, keep
from tests.web.walking import links_in

from hermes_workflows.errors import Conflict, IntegrityError, InvalidInput, NotFound
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.web.export.chosen import Asked
from hermes_workflows.web.export.folder import LIST, Folder
from hermes_workflows.web.export.then import Then
from hermes_workflows.web.export.writing import Written, write
from hermes_workflows.web.opened import Opened
from hermes_workflows.web.settings import WebSettings
from hermes_workflows.workspace import Surroundings, Workspace

_HOSTILE = ("a", "a.html/b", "A", "CON", "nul.txt", "...", "ü <b>/\"'&?#%2F", "x" * 180, "deep/" * 30 + "end", "a~b")


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = waiting_desk(tmp_path)
    ran(made, "draft/write")
    return made


class Damaged(MemoryLedger):
    """`other`, in which one run can be listed and not be read."""

    def __init__(self, other: MemoryLedger) -> None:
        self.__dict__ = other.__dict__

    def read(self, run_id: str, since: str | None = None) -> Any:
        if run_id == "broken":
            raise IntegrityError("broken: steps/a.json is no receipt")
        return super().read(run_id, since)


class Counting(MemoryLedger):
    """`other`, that counts how often a run is read."""

    def __init__(self, other: MemoryLedger) -> None:
        self.__dict__ = other.__dict__
        self.reads = 0

    def read(self, run_id: str, since: str | None = None) -> Any:
        self.reads += 1
        return super().read(run_id, since)


def exported(made: Desk, folder: Path, **asked: Any) -> Written:
    clock, theirs = Then(made.clock), made.workspace
    settings = WebSettings(theirs.registry, (), Surroundings(clock, {}), TOKEN)
    own = Workspace(theirs.registry, theirs.paths, made.ledger, theirs.queue, settings.surroundings)
    return write(settings, Opened(theirs.registry, [own]), clock, folder, Asked(**asked), lambda _: None)


def files_in(folder: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def walked(folder: Path) -> set[str]:
    """The files that links lead to, from the first page on; each is one, and in the folder."""
    root, seen, todo = folder.as_uri() + "/", set[str](), [(folder / "index.html").as_uri()]
    while todo:
        if (address := todo.pop()) in seen:
            continue
        assert address.startswith(root)
        path = Path(unquote(urlsplit(address).path))
        assert path.is_file(), address
        seen.add(address)
        if path.suffix == ".html":
            todo += links_in(address, path.read_text())
    return {unquote(address.removeprefix(root)) for address in seen}


def test_every_link_leads_to_a_file_and_every_file_is_led_to(made: Desk, tmp_path: Path) -> None:
    keep(made, "a.png", PNG, "image/png")
    done = exported(made, tmp_path / "out")
    files = set(files_in(tmp_path / "out")) - {LIST}
    assert walked(tmp_path / "out") == files
    assert {"index.html", "runs.html", "runs/wf.html", "reviews/wf/ok.html", "calls/wf/draft/write.html"} <= files
    assert (done.runs, done.files, done.left_out) == (1, len(files), ())


def test_nothing_in_it_asks_or_runs_or_says_who_may_enter(made: Desk, tmp_path: Path) -> None:
    exported(made, tmp_path / "out")
    for name, data in files_in(tmp_path / "out").items():
        text = data.decode()
        assert not re.search(r"<(script|form|button|input|textarea)|csrf|data-events|http-equiv=.refresh", text), name
        assert TOKEN not in text
        assert "://" not in re.sub(r'xmlns="[^"]+"', "", text), name


def test_no_name_leaves_the_folder_or_hides_another_one(made: Desk, tmp_path: Path) -> None:
    for key in _HOSTILE:
        ran(made, key)
    exported(made, tmp_path / "out")
    files = walked(tmp_path / "out")
    assert len({file.lower() for file in files}) == len(files)
    assert all(re.fullmatch(r"[a-z0-9._~/-]+", file) and len(file) < 200 for file in files)
    calls = [file for file in files if file.startswith("calls/")]
    assert len(calls) == len(_HOSTILE) + 2


def test_the_same_state_is_the_same_bytes_whenever_and_wherever_it_is_written(made: Desk, tmp_path: Path) -> None:
    exported(made, tmp_path / "one")
    made.clock.advance(3600)
    exported(made, tmp_path / "two")
    exported(made, tmp_path / "two")
    assert files_in(tmp_path / "one") == files_in(tmp_path / "two")
    assert "how it was at <time" in (tmp_path / "one" / "index.html").read_text()


def test_what_is_no_longer_there_is_taken_away_and_what_others_have_put_there_stays(made: Desk, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(made, out)
    (out / "CNAME").write_text("docs.example")
    (out / "runs" / "mine.txt").write_text("mine")
    made.workspace.answer("wf", "ok", SHIP, person())
    made.start("other")
    exported(made, out, runs=["other"])
    assert not (out / "calls" / "wf").exists()
    assert {"CNAME", "runs/mine.txt", "runs/other.html"} <= files_in(out).keys()
    assert "reviews" not in {path.name for path in out.iterdir()}


def test_a_folder_of_somebody_else_is_refused_and_left_alone(made: Desk, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Conflict, match="not empty"):
        exported(made, tmp_path / "full")
    with pytest.raises(InvalidInput, match="no folder"):
        exported(made, tmp_path / "file")
    assert files_in(tmp_path / "full") == {"a": b"mine"}


def test_a_file_that_was_not_ours_is_never_written_over(made: Desk, tmp_path: Path) -> None:
    for place in ("runs.html", "runs", "calls"):
        out = tmp_path / place
        Folder.take(out)
        if place == "runs.html":
            (out / place).write_text("mine")
        else:
            (out / place).symlink_to(tmp_path)
        with pytest.raises(Conflict, match="not of an export"):
            exported(made, out)
    assert not (tmp_path / "wf.html").exists()


def test_a_list_that_names_what_lies_elsewhere_moves_nothing_there(made: Desk, tmp_path: Path) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine.html"
    exported(made, out)
    mine.write_text("mine")
    with (out / LIST).open("a") as known:
        known.write(f"../mine.html\n{mine}\n{LIST}\nruns/../../mine.html\n")
    exported(made, out)
    assert mine.read_text() == "mine"


def test_an_export_that_was_interrupted_can_be_written_again(made: Desk, tmp_path: Path) -> None:
    left = Folder.take(tmp_path / "out")
    left.write("runs/old.html", b"old")
    left.write("runs.html", b"half")
    exported(made, tmp_path / "out")
    assert walked(tmp_path / "out") == files_in(tmp_path / "out").keys() - {LIST}


def test_runs_that_are_left_out_are_named_by_no_page(made: Desk, tmp_path: Path) -> None:
    made.clock.advance(60)
    made.start("newer")
    made.end("newer")
    exported(made, tmp_path / "last", last=1)
    exported(made, tmp_path / "named", runs=["newer"])
    assert files_in(tmp_path / "last") == files_in(tmp_path / "named")
    files = files_in(tmp_path / "last")
    assert {"index.html", "runs/newer.html"} <= files.keys()
    assert not any(b"wf" in data for name, data in files.items() if name.endswith(".html") and "source" not in name)
    with pytest.raises(NotFound):
        exported(made, tmp_path / "none", runs=["nobody"])
    assert not (tmp_path / "none").exists()


def test_two_runs_side_by_side_are_written_when_they_are_asked_for(made: Desk, tmp_path: Path) -> None:
    made.start("other")
    exported(made, tmp_path / "without")
    assert not (tmp_path / "without" / "compare").exists()
    exported(made, tmp_path / "with", compare=[("wf", "other")])
    assert "compare/1.html" in walked(tmp_path / "with")
    assert "draft/write" in (tmp_path / "with" / "compare" / "1.html").read_text()


def test_files_that_a_run_has_kept_are_called_so_that_no_browser_runs_them(made: Desk, tmp_path: Path) -> None:
    kept = [
        ("a.png", PNG, "image/png", ".png"),
        ("x.svg", SVG, "image/svg+xml", ".txt"),
        ("x.html", b"<script>alert(1)</script>", "text/html", ".txt"),
        ("b.png", b"\xff\xfe<html>", "image/png", ".bin"),
    ]
    hrefs = [keep(made, name, data, kind).rpartition("/")[2] + suffix for name, data, kind, suffix in kept]
    exported(made, tmp_path / "out")
    files = walked(tmp_path / "out")
    assert {f"artifacts/wf/{href}" for href in hrefs} <= files


def test_a_run_that_cannot_be_shown_is_told_of_and_hides_no_other(made: Desk, tmp_path: Path) -> None:
    made.start("broken")
    made.workspace.runs()
    done = exported(replace(made, ledger=Damaged(made.ledger)), tmp_path / "out")
    assert [each for each in done.left_out if "broken" in each]
    assert {"runs/wf.html", "runs/broken.html"} <= walked(tmp_path / "out")
    assert "is no receipt" in (tmp_path / "out" / "runs" / "broken.html").read_text()


def test_a_question_that_is_open_says_how_to_answer_it(made: Desk, tmp_path: Path) -> None:
    exported(made, tmp_path / "out")
    page = (tmp_path / "out" / "reviews" / "wf" / "ok.html").read_text()
    assert "It waits for an answer." in page
    assert "hermes-workflows review respond wf ok" in page


def test_a_run_is_read_as_often_however_many_calls_it_has(made: Desk, tmp_path: Path) -> None:
    reads = []
    for number in range(2):
        for call in range(20):
            ran(made, f"more/{number}/{call}")
        ledger = Counting(made.ledger)
        exported(replace(made, ledger=ledger), tmp_path / str(number))
        reads.append(ledger.reads)
    assert reads[0] == reads[1]


def test_long_lists_are_several_pages_that_lead_to_each_other(made: Desk, tmp_path: Path) -> None:
    for number in range(220):
        made.start(f"run-{number}")
        made.ask("ok", f"run-{number}")
    exported(made, tmp_path / "out")
    files = walked(tmp_path / "out")
    assert {"index.html", "inbox-2.html", "inbox-3.html", "runs.html", "runs-2.html"} <= files
    assert not {"inbox-1.html", "inbox-4.html", "runs-3.html"} & files
    assert len([file for file in files if file.startswith("reviews/")]) == 221
