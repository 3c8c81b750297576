"""Names and texts of anybody on a terminal and in a shell: they move no cursor, begin no line of ours, run nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acceptance.command_line import Place, place
from tests.hostile import LINES, STORABLE, TEXTS

from hermes_workflows.cli.commands import run_command
from hermes_workflows.core.plain import command_line

FORGED = "x\nFORGED: a line of ours\r\x1b[2J\x9b31mFORGED\u202e"
FLOW = """
import json
import logging
from pathlib import Path

from hermes_workflows import ask, bash, workflow
from hermes_workflows.authoring import step, wait_for

TEXT = json.loads(Path("text.json").read_text())


@step
def says() -> dict[str, str]:
    return {TEXT: TEXT, "text": TEXT}


@step
def fails() -> None:
    logging.getLogger("mine").warning("told %s", TEXT)
    raise ValueError(TEXT)


@workflow
async def flow() -> str:
    await says()
    try:
        await fails()
    except Exception:
        pass
    await bash(["printf", "%s", TEXT.replace(chr(0), "")], name=TEXT[:40])
    await ask(TEXT, key="asked", input={TEXT: TEXT}, returns=str, assignee=TEXT)
    await wait_for("$(touch ran); `touch ran`")
    raise ValueError(TEXT)
"""


class Screen(io.TextIOWrapper):
    """A terminal that takes UTF-8 and nothing else, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", "strict", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


def terminal(folder: Path, *words: str) -> tuple[int, str]:
    """One command in this process, as if on a terminal, and what is seen there."""
    screen = Screen()
    plain = mock.patch.dict(os.environ, TERM="dumb", COLUMNS="200")
    with plain, contextlib.chdir(folder), contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = run_command(words, own_process=False)
    return code, screen.seen


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run in which every text is hostile, up to its question; `other` has been answered, and waits for a signal."""
    made = place(tmp_path_factory.mktemp("names") / "a $(touch ran) 'b")
    (made.root / "flow.py").write_text(FLOW)
    (made.root / "text.json").write_text(json.dumps(f"{FORGED} {STORABLE}"))
    for run_id in ("wf", "other"):
        assert terminal(made.root, "run", "flow.py:flow", "--id", run_id)[0] == 0
    worked = made.work("--log-file", "runner.log")
    assert worked.code == 0
    (made.root / "stderr.log").write_text(worked.stderr)
    given = ("--json", json.dumps(FORGED), "--by", FORGED)
    assert terminal(made.root, "review", "respond", "other", "asked", *given)[0] == 0
    made.work()
    return made


def obeyed(text: str) -> list[str]:
    return re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


@pytest.mark.parametrize(
    "words",
    [
        "status wf", "status other", "list", "log wf", "log other --graph", "show wf", "show other@asked",
        "review show wf asked", "review show other asked", "review list", "diff wf other", "doctor", "replay wf",
    ],
)  # fmt: skip
def test_no_text_moves_a_cursor_or_begins_a_line(made: Place, words: str) -> None:
    _, seen = terminal(made.root, *words.split())
    assert "Traceback" not in seen
    assert "fault of this program" not in seen
    assert obeyed(seen) == []
    assert not re.search(r"^FORGED", seen, re.MULTILINE)


def test_no_document_of_a_program_holds_what_a_terminal_obeys(made: Place) -> None:
    for words in (["show", "wf"], ["status", "other"], ["review", "show", "wf", "asked"]):
        _, seen = terminal(made.root, "--json", *words)
        assert obeyed(seen) == []
        assert seen.count("\n") == 1
        assert json.loads(seen)


def test_the_log_of_a_runner_has_no_line_of_anybody_else(made: Place) -> None:
    for name in ("stderr.log", "runner.log"):
        text = (made.root / name).read_text()
        assert "told" in text
        assert obeyed(text) == []
        assert not re.search(r"^FORGED", text, re.MULTILINE)


@pytest.mark.parametrize("words", [["status", "wf"], ["status", "other"], ["review", "show", "wf", "asked"]])
def test_what_is_to_be_done_next_runs_nothing_but_us_in_a_shell(made: Place, words: list[str]) -> None:
    said = json.loads(terminal(made.root, "--json", *words)[1])
    told = [value for name, value in said.items() if name in ("next_action", "git") and value]
    for line in told:
        assert argv_of(made.root, str(line).replace("…", "")) != []
    assert not list(made.root.parent.rglob("ran"))


def argv_of(folder: Path, line: str) -> list[list[str]]:
    """The arguments that programs of ours and git get when a real shell reads the line."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("hermes-workflows", "git"):
        (programs / name).write_text(
            '#!/bin/sh\nfor each in "${0##*/}" "$@"; do printf "%s\\0" "$each"; done; printf "\\1"\n'
        )
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env={"PATH": f"{programs}:/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert done.stderr == b"", done.stderr
    return [each.decode().split("\0")[:-1] for each in done.stdout.split(b"\1")[:-1]]


def test_a_shell_takes_a_command_apart_into_the_words_it_was_made_of(tmp_path: Path) -> None:
    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.lists(LINES | TEXTS, max_size=6), min_size=4, max_size=12))
    def check(commands: list[list[str]]) -> None:
        shown = [["".join(c if c.isprintable() else "\ufffd" for c in word) for word in words] for words in commands]
        script = "\n".join(command_line(*words) for words in commands)
        assert argv_of(tmp_path, script) == [["hermes-workflows", *words] for words in shown]

    check()


def test_nothing_is_completed_that_a_shell_would_run_or_take_apart(made: Place) -> None:
    for words in ("signal other ", "show other@", "review respond wf "):
        typed = {"COMP_WORDS": f"hermes-workflows {words}", "COMP_CWORD": str(len(words.split()) + words.endswith(" "))}
        asking = Place(made.root, {**typed, "_HERMES_WORKFLOWS_COMPLETE": "bash_complete"})
        for offered in filter(None, asking.run().stdout.split("\n")):
            assert re.fullmatch(r"plain,[A-Za-z0-9_@%+=:,./-]+", offered), offered


@pytest.mark.parametrize("words", ["status", "show", "cancel", "verify", "signal wf", "pause", "log", "publish"])
def test_an_argument_that_is_no_utf8_is_refused_in_one_line(made: Place, words: str) -> None:
    code, seen = terminal(made.root, "--json", *words.split(), "wf\udcff")
    assert code in (2, 4), seen
    assert json.loads(seen)["error"]["code"] in ("usage", "not_found", "invalid_input")


def test_a_folder_whose_name_is_no_utf8_is_told_on_every_terminal(tmp_path: Path) -> None:
    there = place(tmp_path / "a\udcffb")
    code, seen = terminal(there.root, "doctor")
    assert code == 0, seen
    assert "fault" not in seen
