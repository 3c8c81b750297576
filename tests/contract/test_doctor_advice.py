"""What the doctor finds in a receipts repository and of runners comes with what to do, and doing that helps."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.ledgers import git, with_one_step
from tests.contract.queues import beat
from tests.contract.workspaces import Desk, desk

from hermes_workflows.clock import SystemClock
from hermes_workflows.doctor import Finding, examine_machine, examine_registry, examine_runners, split_of
from hermes_workflows.doctor.finding import looked, mend
from hermes_workflows.doctor.repository import examine_repository
from hermes_workflows.registry import DatabasePaths, parse
from hermes_workflows.store import peek
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.mending import Mender
from hermes_workflows.store.queue_port import Change, Stuck

RUN = "refs/runs/wf_a"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    with closing(with_one_step(tmp_path)) as made:
        yield made


def found(ledger: GitLedger) -> list[Finding]:
    mender = Mender(ledger.path)
    try:
        paths = DatabasePaths("default", ledger.path.parent / "none.sqlite", ledger.path)
        every = looked("repository", lambda: examine_repository(paths, mender, SystemClock()))
        mend(every)
        return [each for each in every if each.level != "ok"]
    finally:
        mender.close()


def follow(hint: str | None) -> None:
    """Do what a hint says to type."""
    typed = re.search("git .*", hint or "")
    assert typed
    subprocess.run(shlex.split(typed[0]), check=True)


def test_a_sound_repository_has_no_finding(ledger: GitLedger) -> None:
    assert found(ledger) == []


def test_a_repository_that_git_does_not_know_any_more_is_one_again(ledger: GitLedger) -> None:
    (ledger.path / "HEAD").write_bytes(b"")
    (problem,) = found(ledger)
    assert problem.what.startswith(f"{ledger.path / 'HEAD'} is empty or missing")
    assert git(ledger, "rev-parse", RUN)
    assert found(ledger) == []


def test_a_setting_that_a_mirror_lost_comes_back_by_the_command_that_is_told(ledger: GitLedger) -> None:
    git(ledger, "config", "--unset-all", "receive.hideRefs")
    lacking = found(ledger)
    assert lacking
    assert all("lacks receive.hideRefs = " in each.what for each in lacking)
    for each in lacking:
        follow(each.hint)
    assert found(ledger) == []


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        (RUN, "names the run's last commit"),
        (peek.LEDGER, "names the last seal as a dangling commit"),
        ("refs/heads/topic", "update-ref refs/heads/topic COMMIT"),
    ],
)
def test_an_emptied_ref_comes_with_the_way_to_set_it_by_hand(ledger: GitLedger, ref: str, says: str) -> None:
    (ledger.path / ref).write_bytes(b"")
    (problem,) = found(ledger)
    assert (problem.level, problem.what) == (
        "problem",
        f"{ledger.path / ref} holds no commit id, as a power cut may leave it",
    )
    assert says in str(problem.hint)


def test_a_pack_that_was_cut_off_is_no_repair_of_ours(ledger: GitLedger) -> None:
    git(ledger, "repack", "-adq")
    (pack,) = (ledger.path / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    pack.write_bytes(b"")
    problem = found(ledger)[0]
    assert (problem.what, problem.repair) == (f"{pack} is empty or cut off", None)
    assert "fsck --full" in str(problem.hint)


def test_an_object_that_receipts_need_is_left_for_a_copy_of_it(ledger: GitLedger) -> None:
    tip = git(ledger, "rev-parse", RUN).strip()
    path = ledger.path / "objects" / tip[:2] / tip[2:]
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(b"")
    (problem,) = found(ledger)
    assert (problem.what, problem.repair) == (f"{path} is empty, and no pack has it", None)
    path.write_bytes(whole)
    assert found(ledger) == []


def test_receipts_that_wait_for_git_for_long_are_told(ledger: GitLedger) -> None:
    (kept := ledger.path / peek.AHEAD / "wf_a").parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"")
    kept.with_name("of_a_moment_ago").write_bytes(b"")
    os.utime(kept, (time.time() - 7200,) * 2)
    (warning,) = found(ledger)
    assert warning.what == f"{kept} has held receipts that git does not have yet for 2 h"


def test_a_folder_that_cannot_be_read_is_named_and_hides_nothing() -> None:
    def look() -> Iterator[Finding]:
        yield Finding("ok", "seen")
        raise PermissionError(13, "Permission denied", "/ws/objects")

    seen, wrong = looked("files", look)
    assert (seen.what, wrong.what) == ("seen", "/ws/objects cannot be looked at: Permission denied")


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return desk(tmp_path)


def levels(made: Desk) -> dict[str, str]:
    return {finding.what: finding.level for finding in examine_runners(made.workspace)}


def test_a_runner_on_another_database_is_told_before_an_answer_is_missed(made: Desk) -> None:
    made.workspace.queue.heartbeat(replace(beat("ada", made.clock), database=str(made.workspace.paths.sqlite)))
    assert split_of(made.workspace) is None
    made.workspace.queue.heartbeat(replace(beat("bob", made.clock), database="/other/workflows.sqlite"))
    split = split_of(made.workspace)
    assert split
    assert split.what == f"runner bob works on /other/workflows.sqlite, not on {made.workspace.paths.sqlite}"


def test_a_runner_that_gives_no_sign_any_more_is_a_warning(made: Desk) -> None:
    row = beat("ada", made.clock)
    made.workspace.queue.heartbeat(row)
    made.clock.advance(3600)
    (warning,) = [what for what, level in levels(made).items() if level == "warning"]
    assert warning.startswith(f"ada (pid {row.pid} on {row.host})")


def test_a_run_that_is_stuck_is_told_with_its_reason(made: Desk) -> None:
    made.start("wf")
    made.workspace.queue.heartbeat(beat("ada", made.clock))
    made.workspace.queue.apply(Change(stuck=[Stuck("wf", "code", "its code cannot be loaded", "mend flow.py")]), "ada")
    assert levels(made)["wf is stuck: its code cannot be loaded"] == "warning"


GIT = "#!/bin/sh\necho git version {}\n"


@pytest.mark.parametrize(
    ("version", "says"),
    [(None, "there is no git on PATH"), ("2.30.1", "git 2.30.1 is older than 2.32"), ("2.32.0", None)],
)
def test_a_git_that_is_missing_or_too_old_is_told(tmp_path: Path, version: str | None, says: str | None) -> None:
    if version:
        (tmp_path / "git").write_text(GIT.format(version))
        (tmp_path / "git").chmod(0o755)
    registry = parse("{}", tmp_path / ".hermes" / "workflows.registry.json")
    every = examine_machine(registry, {"PATH": str(tmp_path)}, (), SystemClock())
    assert [each.what for each in every if each.level != "ok"] == ([says] if says else [])


def test_a_variable_that_is_named_and_not_set_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    registry = parse('{"redact": ["DEPLOY_TOKEN"]}', tmp_path / ".hermes" / "workflows.registry.json")
    environment = {"PATH": os.environ["PATH"], "DEPLOY_TOKENS": "x"}
    (warning,) = [each for each in examine_machine(registry, environment, (), SystemClock()) if each.level != "ok"]
    assert warning.what == "redact names the variable DEPLOY_TOKEN, which is not set here"
    assert warning.hint == "did you mean DEPLOY_TOKENS?"


CLOCKED = """
import time
from hermes_workflows import workflow

@workflow
async def told() -> float:
    return time.time()
"""


def test_a_body_that_asks_the_clock_is_told_with_its_line_once_for_two_aliases(tmp_path: Path) -> None:
    (tmp_path / "clocked.py").write_text(CLOCKED)
    aliases = '{"workflows": {"one": {"workflow_ref": "clocked.py:told"}, "two": {"workflow_ref": "clocked.py:told"}}}'
    every = examine_registry(parse(aliases, tmp_path / ".hermes" / "workflows.registry.json"))
    (warning,) = [each for each in every if each.level != "ok"]
    assert warning.what.startswith("clocked.py:7: ")
