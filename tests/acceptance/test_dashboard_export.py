"""`hermes-workflows dashboard export` as a process: what it writes, says and refuses, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.command_line import PROGRAM, Place, place
from tests.web.test_export import LIST, files_in, walked


@pytest.fixture
def asked(tmp_path: Path) -> Place:
    """A run that waits at `review_draft`."""
    made = place(tmp_path)
    assert made.start().code == 0
    assert made.work().code == 0
    return made


def test_a_folder_of_pages_is_written_and_the_workspace_stays_as_it_is(asked: Place) -> None:
    before = files_in(asked.root / ".hermes")
    said = asked.run("dashboard", "export", "site").json
    assert files_in(asked.root / ".hermes").keys() == before.keys()
    files = walked(asked.root / "site")
    assert files == files_in(asked.root / "site").keys() - {LIST}
    assert {"runs/wf.html", "reviews/wf/review_draft.html", "source/wf.html"} <= files
    assert (said["files"], said["runs"], said["left_out"]) == (len(files), 1, [])
    assert said["open"].endswith("/site/index.html")


def test_two_processes_write_the_same_bytes(asked: Place) -> None:
    asked.run("dashboard", "export", "one", program=["env", "PYTHONHASHSEED=1", *PROGRAM])
    asked.run("dashboard", "export", "two")
    assert files_in(asked.root / "one") == files_in(asked.root / "two")


def test_what_cannot_be_written_is_said_before_anything_is(asked: Place) -> None:
    (asked.root / "full").mkdir()
    (asked.root / "full" / "mine").write_text("mine")
    for arguments, code in ((["full"], "conflict"), (["new", "--run", "nobody"], "not_found")):
        answer = asked.run("dashboard", "export", *arguments)
        assert answer.code != 0
        assert answer.error["code"] == code
        assert answer.error["hint"]
    assert not (asked.root / "new").exists()


def test_an_option_before_the_name_of_the_command_is_not_passed_over(asked: Place) -> None:
    answer = asked.run("dashboard", "--db", "other", "export", "site")
    assert (answer.code, answer.error["code"]) == (2, "usage")
    assert not (asked.root / "site").exists()
