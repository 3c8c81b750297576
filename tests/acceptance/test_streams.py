"""What workflows write while they run: never into the document on stdout, and never with a secret in it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.command_line import PROGRAM, Place, place

VALUE = "blue-Elephant-soup"
CHATTY = """
import logging
import os
import subprocess
import sys
import warnings

from hermes_workflows import bash, workflow
from hermes_workflows.authoring import secret, step

WORD = "blue-" + "Elephant-soup"
print("imported")
log = logging.getLogger("chatty")


@step
def talk() -> int:
    print("step says", WORD, end="")
    print(" and more")
    sys.stderr.write("err " + WORD + "\\n")
    sys.stdout.buffer.write(b"bytes " + WORD.encode() + b"\\n")
    warnings.warn("warned of " + WORD, stacklevel=1)
    log.warning("logged %s", WORD)
    try:
        raise ValueError("raised " + WORD)
    except ValueError:
        log.exception("caught")
    subprocess.run(["echo", "from a child"], check=True)
    print("no end", WORD, end="")
    return 1


@workflow
async def chatty() -> int:
    await bash("true", env={"W": secret("HOUSE_WORD")})
    print("body says", WORD)
    return await talk()
"""
HEARD = (
    "body says",
    "step says",
    "and more",
    "err",
    "bytes",
    "warned of",
    "logged",
    "raised",
    "from a child",
    "no end",
)


@pytest.fixture
def made(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws")
    (made.root / "flows" / "chatty.py").write_text(CHATTY)
    made.environment["HOUSE_WORD"] = VALUE
    return made


def test_a_drain_prints_one_document_and_tells_the_rest_without_secrets(made: Place) -> None:
    said = made.run("run", "flows/chatty.py", "--id", "wf", "--drain")
    assert said.json["status"] == "completed"
    assert VALUE not in said.stdout + said.stderr
    assert [text for text in ("imported", *HEARD) if text not in said.stderr] == []
    assert "step says [redacted:HOUSE_WORD] and more\n" in said.stderr


def test_a_start_prints_one_document_whatever_its_module_prints(made: Place) -> None:
    assert made.run("run", "flows/chatty.py", "--id", "wf").json["status"] == "running"


def test_a_runner_prints_one_document_and_tells_the_rest_without_secrets(made: Place) -> None:
    made.run("run", "flows/chatty.py", "--id", "wf")
    said = made.work()
    assert said.json["reason"] == "idle"
    assert VALUE not in said.stdout + said.stderr
    assert [text for text in HEARD if text not in said.stderr] == []


def test_once_prints_one_document_too(made: Place) -> None:
    made.run("run", "flows/chatty.py", "--id", "wf")
    assert made.run("runner", "once").json["commands"] == 1


@pytest.mark.parametrize("arguments", [["status", "wf"], ["list"]])
def test_a_full_disk_under_stdout_is_one_line_and_its_exit_code(made: Place, arguments: list[str]) -> None:
    made.run("run", "flows/chatty.py", "--id", "wf")
    with Path("/dev/full").open("wb") as full:
        said = subprocess.run(
            [*PROGRAM, *arguments], cwd=made.root, env=made.env(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (said.returncode, said.stderr.count(b"\n")) == (74, 1)
    assert b"No space left" in said.stderr


def test_without_a_stdout_nothing_is_written_where_it_would_be(made: Place) -> None:
    command = f"{shlex.join(PROGRAM)} run flows/chatty.py --id wf --drain <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=made.root, env=made.env(), check=False).returncode == 0
    assert made.run("status", "wf").json["state"] == "completed"
    assert made.run("verify").code == 0
