"""`doctor`: it finds what is wrong, mends with --fix what loses nothing, and says what can stand in a bug report."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import REGISTRY, Place, Said, place
from tests.acceptance.workspaces import Site

NOBODY = 65534


@pytest.fixture
def here(tmp_path: Path) -> Place:
    made = place(tmp_path / "ws")
    made.start("wf")
    return made


def told(said: Said, level: str = "problem") -> list[str]:
    return [finding["what"] for finding in said.json["findings"] if finding["level"] == level]


def one(said: Said, *words: str) -> dict[str, Any]:
    """The one finding that has all of these words."""
    (found,) = [
        each for each in said.json["findings"] if all(word in f"{each['what']} {each['hint']}" for word in words)
    ]
    return dict(found)


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_sound_workspace_is_told_part_by_part(here: Place) -> None:
    said = here.run("doctor")
    assert (said.code, said.json["ok"], said.json["repaired"]) == (0, True, [])
    parts = {finding["part"] for finding in said.json["findings"]}
    assert parts == {"machine", "registry", "files", "repository", "index", "receipts", "runners"}
    assert "sqlite 3." in one(said, "python 3.", "git 2.")["what"]


def test_what_a_power_cut_left_is_mended_and_told(here: Place) -> None:
    tip = here.git("rev-parse", "runs/wf").strip()
    (here.receipts / "refs/runs/wf").write_bytes(b"")
    (here.receipts / "objects/00").mkdir(exist_ok=True)
    (here.receipts / "objects/00" / ("0" * 38)).write_bytes(b"")
    (lock := here.receipts / "packed-refs.lock").touch()
    os.utime(lock, (time.time() - 3600,) * 2)
    assert len(told(here.run("doctor"))) >= 3
    fixed = here.run("doctor", "--fix")
    assert (fixed.code, told(fixed)) == (0, [])
    assert fixed.json["repaired"] == [
        "took packed-refs.lock away",
        f"set refs/runs/wf to {tip}",
        f"moved object {'0' * 40} to hermes/damaged",
    ]
    here.work()
    assert here.run("status", "wf").json["status"] == "waiting"
    assert here.run("verify").code == 0


@pytest.mark.parametrize("content", [b"\0" * 8192, b"garbage, and no database", None], ids=["zeros", "text", "page"])
def test_a_damaged_index_is_moved_away_and_made_again(here: Place, content: bytes | None) -> None:
    before = here.run("runner", "status").json["runnable"], here.run("status", "wf").json["receipts"]
    if content is None:  # damage that a header does not show
        content = here.sqlite.read_bytes()
        content = content[:4096] + b"\xff" * (len(content) - 4096)
    for left in here.sqlite.parent.glob("*.sqlite-*"):
        left.unlink()
    here.sqlite.write_bytes(content)
    assert any("is damaged" in what for what in told(here.run("doctor")))
    fixed = here.run("doctor", "--fix")
    assert (fixed.code, told(fixed)) == (0, []), fixed.stdout
    assert (here.run("runner", "status").json["runnable"], here.run("status", "wf").json["receipts"]) == before


def test_a_row_that_says_something_else_than_the_receipts_is_read_again(here: Place) -> None:
    with closing(sqlite3.connect(here.sqlite)) as database, database:
        database.execute("""UPDATE runs SET summary = replace(summary, '"receipts":1', '"receipts":7')""")
    assert "says something else than the receipts of wf" in told(here.run("doctor"))[0]
    fixed = here.run("doctor", "--fix")
    assert (fixed.code, fixed.json["repaired"]) == (0, [f"made the rows of {here.sqlite} again from the receipts"])


def test_a_run_that_nobody_would_ever_move_is_queued(here: Place) -> None:
    with closing(sqlite3.connect(here.sqlite)) as database, database:
        database.execute("DELETE FROM work")
    assert "wf is unfinished, and nothing is queued for it" in told(here.run("doctor"))
    fixed = here.run("doctor", "--fix")
    assert (fixed.code, fixed.json["repaired"]) == (0, ["queued wf"])
    assert here.run("runner", "status").json["runnable"] == 1


def test_a_typo_in_the_registry_is_named_with_the_nearest_right_word(tmp_path: Path) -> None:
    made = place(tmp_path / "ws", {"dbs": {"default": "workflows.sqlite"}, "worklfows": {}})
    said = made.run("doctor")
    assert said.code == 6
    assert one(said, "worklfows is not a known key", "did you mean 'workflows'?")["part"] == "registry"
    said = made.run("registry", "doctor")
    assert (said.code, one(said, "worklfows is not a known key", "did you mean")["part"]) == (6, "registry")


def test_a_misspelt_variable_is_named_with_the_nearest_right_word(tmp_path: Path) -> None:
    registry = REGISTRY | {"redact": ["DEPLOY_TOKN"]}
    made = place(tmp_path / "ws", registry, HERMES_WORKFLOWS_AGENT_COMAND="x", DEPLOY_TOKEN="Zx81abcDEF0123456")
    said = made.run("doctor")
    assert one(said, "HERMES_WORKFLOWS_AGENT_COMAND", "did you mean HERMES_WORKFLOWS_AGENT_COMMAND?")
    assert one(said, "DEPLOY_TOKN", "did you mean DEPLOY_TOKEN?")["level"] == "warning"


def test_nothing_is_mended_in_a_repository_that_is_somebody_elses(tmp_path: Path) -> None:
    made = place(tmp_path / "ws")
    subprocess.run(["git", "init", "--quiet", "--bare", made.receipts], check=True)
    (lock := made.receipts / "packed-refs.lock").touch()
    os.utime(lock, (time.time() - 86400,) * 2)
    (made.receipts / "refs/heads/main").write_bytes(b"")
    said = made.run("doctor", "--fix")
    assert (said.code, said.json["repaired"]) == (6, [])
    assert one(said, "is not a receipts repository of hermes-workflows")
    assert lock.exists()


def test_a_workspace_without_receipts_yet_is_no_problem(tmp_path: Path) -> None:
    said = place(tmp_path / "ws").run("doctor")
    assert (said.code, one(said, "no receipts at")["level"]) == (0, "warning")


def test_agents_are_found_with_their_versions(tmp_path: Path) -> None:
    agents = {"writer": "claude", "critic": "codex", "own": {"command": "./answer.sh"}, "gone": {"command": "no-such"}}
    made = place(tmp_path / "ws", REGISTRY | {"agents": agents, "notify": "nobody-is-told"})
    programs = tmp_path / "bin"
    program(programs, "claude", "echo '2.1.7 (Claude Code)'")
    program(made.root, "answer.sh", "touch started; exit 1")
    made.environment["PATH"] = f"{programs}:/usr/bin:/bin"
    said = made.run("doctor")
    assert said.code == 6
    assert one(said, "agent writer (claude)", "version 2.1.7")["level"] == "ok"
    assert one(said, "agent own (command)")["level"] == "ok"
    assert not (made.root / "started").exists()
    for name in ("codex", "no-such", "nobody-is-told"):
        assert one(said, f"there is no program '{name}'")["level"] == "problem"


def test_a_variable_that_no_runner_can_start_with_is_a_problem(tmp_path: Path) -> None:
    made = place(tmp_path / "ws", HERMES_WORKFLOWS_AGENT_COMMAND="python3 a.py", HERMES_WORKFLOWS_AGENT_ARGS_JSON="[1")
    said = made.run("doctor")
    assert said.code == 6
    assert one(said, "HERMES_WORKFLOWS_AGENT_ARGS_JSON")["part"] == "agents"


def test_what_it_prints_can_stand_in_a_bug_report(tmp_path: Path) -> None:
    home = tmp_path / "home" / "ana"
    made = place(home / "ws", REGISTRY | {"redact": ["SECRET"]}, HOME=str(home), SECRET="Zx81abcDEF0123456")
    (made.root / "flows" / "launch.py").write_text("raise RuntimeError('Zx81abcDEF0123456')\n")
    for said in (made.run("doctor"), made.run("registry", "doctor"), made.run("runner", "doctor")):
        assert said.code == 6
        assert str(home) not in said.stdout
        assert "~/ws/" in said.stdout or "flows/launch.py" in said.stdout
        assert "Zx81abcDEF0123456" not in said.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_workspace_of_another_user_works_and_is_told(here: Place) -> None:
    """git itself would refuse such a repository, as one of dubious ownership."""
    subprocess.run(["chown", "-R", str(NOBODY), here.root], check=True)
    here.root.joinpath(".hermes").chmod(0o777)
    here.work()
    assert here.run("maintenance", "run").json["failed"] == []
    assert here.run("status", "wf").json["status"] == "waiting"
    said = here.run("doctor")
    assert said.code == 0, said.stdout
    assert any(f"{here.receipts} belongs to " in what for what in told(said, "warning"))
    assert any("anybody on this machine may change" in what for what in told(said, "warning"))


def test_nothing_that_living_runners_do_is_taken_for_a_fault(tmp_path: Path) -> None:
    site = Site(tmp_path / "ws")
    for number in range(4):
        site.start("steps", f"run-{number}", {"n": 40})
    runners = [site.runner("--worker-id", f"runner-{number}", idle=0.5) for number in range(2)]
    looks = 0
    while any(runner.lives() for runner in runners):
        found = site.run("doctor", "--fix").json
        looks += 1
        assert (found["repaired"], [one for one in found["findings"] if one["level"] == "problem"]) == ([], [])
    assert looks > 1
    assert {run["result"] for run in site.statuses().values()} == {40}
    site.assert_sound()


def test_a_terminal_shows_what_was_mended_first(here: Place) -> None:
    (lock := here.receipts / "HEAD.lock").touch()
    os.utime(lock, (time.time() - 3600,) * 2)
    code, seen = here.terminal("doctor", "--fix")
    assert (code, seen.splitlines()[0]) == (0, "mended  took HEAD.lock away")
    assert json.loads(here.run("doctor").stdout)["repaired"] == []
