"""What the doctor says of rooms, file systems, clocks and runners that a test cannot have for real."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.queues import FrozenClock, beat
from tests.contract.workspaces import Desk, desk

from hermes_workflows.doctor import Finding, examine_runners, looked
from hermes_workflows.doctor.finding import mend
from hermes_workflows.doctor.machine import ahead, room_finding
from hermes_workflows.errors import StoreFailure
from hermes_workflows.store.health import Room, remote_file_system
from hermes_workflows.store.queue_port import PAUSED, Change, Claim, Stuck

GIB = 1 << 30


@pytest.mark.parametrize(
    ("left", "level"),
    [
        (Room(20 * GIB, None), "ok"),
        (Room(20 * GIB, 1_000_000), "ok"),
        (Room(GIB // 2, None), "warning"),
        (Room(20 * GIB, 500), "warning"),
        (Room(1 << 20, 1_000_000), "problem"),
        (Room(20 * GIB, 0), "problem"),
    ],
)
def test_a_disk_that_fills_is_told_before_it_is_full(left: Room, level: str) -> None:
    assert room_finding(Path("/ws"), left).level == level


@pytest.mark.parametrize(("kind", "remote"), [("ext4", None), ("nfs4", "nfs4"), ("fuse.sshfs", "fuse.sshfs")])
def test_a_file_system_of_another_machine_is_named(tmp_path: Path, kind: str, remote: str | None) -> None:
    device = os.stat(tmp_path).st_dev
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /ws rw - {kind} server:/export rw\n"
    (mounts := tmp_path / "mountinfo").write_text(f"1 1 0:1 / /proc rw - proc proc rw\n{line}")
    assert remote_file_system(tmp_path, mounts) == remote


def test_a_receipt_of_tomorrow_says_that_a_clock_is_wrong() -> None:
    clock = FrozenClock()
    assert ahead(clock.now() + timedelta(minutes=1), clock) is None
    found = ahead(clock.now() + timedelta(days=1), clock)
    assert found
    assert "the clock says 2026-11-29" in found.what


def test_what_cannot_be_looked_at_hides_nothing_else() -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("ok", "seen")
        raise StoreFailure("cannot read it", hint="look at the disk")

    seen, wrong = looked("files", broken)
    assert (seen.what, wrong) == ("seen", Finding("problem", "cannot read it", "look at the disk", "files"))


def test_a_repair_that_fails_is_told_and_the_others_are_done() -> None:
    def failing() -> str:
        raise StoreFailure("the disk is full")

    findings = [Finding("problem", "one", repair=failing), Finding("problem", "two", repair=lambda: "mended two")]
    assert mend(findings) == ["could not be repaired: one: the disk is full", "mended two"]


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return desk(tmp_path)


def levels(made: Desk) -> dict[str, str]:
    return {finding.what: finding.level for finding in examine_runners(made.workspace)}


def test_a_deaf_runner_is_a_problem_although_it_gives_signs_of_life(made: Desk) -> None:
    row = beat("ada", made.clock)
    made.workspace.queue.heartbeat(replace(row, silent=600.0))
    deaf = [what for what, level in levels(made).items() if level == "problem"]
    assert deaf == [f"ada (pid {row.pid} on {row.host}) gives signs of life and has done nothing for 10 min"]


def test_a_runner_whose_process_is_over_is_not_up(made: Desk) -> None:
    made.workspace.queue.heartbeat(replace(beat("ada", made.clock), pid=2**22 + 1))
    told = levels(made)
    assert "no runner is up, and nothing is due" in told
    assert [what for what in told if "died" in what]


def test_work_that_the_healthy_runners_do_not_take_is_told(made: Desk) -> None:
    made.start("wf")
    made.workspace.queue.heartbeat(replace(beat("ada", made.clock), draining=True))
    (told,) = [what for what, level in levels(made).items() if level == "warning"]
    assert told.endswith("no healthy runner takes: ada is draining: it takes nothing new")
    made.workspace.queue.heartbeat(replace(beat("bob", made.clock), only=("agent",)))
    assert "warning" not in levels(made).values()


def test_a_paused_run_is_told_and_no_warning(made: Desk) -> None:
    made.start("wf")
    made.workspace.queue.heartbeat(beat("ada", made.clock))
    made.workspace.queue.apply(Change(stuck=[Stuck("wf", PAUSED, "paused by ana", "resume it")]), "ada")
    assert levels(made)["wf is paused by ana"] == "ok"
    assert "warning" not in levels(made).values()


def test_what_a_runner_had_in_hand_when_the_machine_went_down_is_told(made: Desk) -> None:
    made.start("wf")
    made.workspace.queue.apply(Change(claim=Claim(1)), "ada")
    made.clock.boot_id = "second-boot"
    assert levels(made)["runners that died or no longer answer have left wf the workflow"] == "warning"
    made.workspace.queue.heartbeat(beat("bob", made.clock))
    assert levels(made)["runners that died or no longer answer have left wf the workflow"] == "ok"
