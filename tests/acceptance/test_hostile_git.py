"""The machine's own git has no say: whatever is exported or configured, commands work, and nothing else is touched."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.command_line import Place, place

_CONFIG = """
[commit]
    gpgsign = true
[core]
    hooksPath = {home}/hooks
    autocrlf = true
    fsmonitor = {home}/hooks/reference-transaction
[user]
    useConfigOnly = true
[init]
    templateDir = {home}/template
    defaultBranch = elsewhere
[safe]
    bareRepository = explicit
[gc]
    pruneExpire = now
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Path]:
    """Somebody's repository, with something staged; at the end it is what it was, byte for byte."""
    made = tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", str(made)], check=True)
    (made / "staged.txt").write_text("staged\n")
    subprocess.run(["git", "-C", str(made), "add", "staged.txt"], check=True)
    before = _state(made)
    yield made
    assert _state(made) == before


def _state(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def exported(other: Path) -> dict[str, str]:
    """What a hook has, or a command of `git rebase --exec`."""
    inside = {"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index", "GIT_OBJECT_DIRECTORY": ".git/objects"}
    return {name: str(other / path) for name, path in inside.items()} | {"GIT_WORK_TREE": str(other)}


def configured(other: Path) -> dict[str, str]:
    """A home whose git signs, calls hooks that fail and changes line ends."""
    home = other.parent / "home"
    for folder in ("hooks", "template/hooks"):
        hook = home / folder / "reference-transaction"
        hook.parent.mkdir(parents=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    (home / ".gitconfig").write_text(_CONFIG.format(home=home))
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}


def nobody(_: Path) -> dict[str, str]:
    return {"HOME": "", "USER": "", "LOGNAME": "", "XDG_CONFIG_HOME": "", "EMAIL": ""}


@pytest.mark.parametrize("surroundings", [exported, configured, nobody])
def test_every_command_works_whatever_git_is_told_elsewhere(surroundings: object, tmp_path: Path, other: Path) -> None:
    assert callable(surroundings)
    made = place(tmp_path / "ws", None, **surroundings(other))
    assert made.start("wf").code == 0
    assert made.work().code == 0
    answered = made.run("review", "respond", "wf", "review_draft", "--json", '{"action": "approve"}', "--kind", "test")
    assert answered.code == 0, answered.stderr
    assert made.work().code == 0
    assert made.run("status", "wf").json["status"] == "completed"
    tidied = made.run("maintenance", "run", "--full")
    assert (tidied.code, tidied.json["failed"]) == (0, []), tidied.stderr
    assert made.run("verify", "--all").code == 0
    assert made.run("doctor").code == 0
    _is_sound(made)


def _is_sound(made: Place) -> None:
    """As plain git in an untouched environment sees it."""
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(made.root), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(made.receipts), "-c", "safe.directory=*", "fsck", "--full", "--strict", "--no-dangling"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
