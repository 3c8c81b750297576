"""The index deleted, cut or overwritten, a disk that is full, a folder that takes no writing: nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.acceptance.nursery import Child, until
from tests.acceptance.workspaces import FLOWS, Site, observed

MANY = (
    FLOWS
    + """

@workflow
async def patient() -> list[str]:
    async def one(n: int) -> str:
        return (await bash(f"while [ ! -e go ]; do sleep 0.01; done; echo {n}")).stdout.strip()
    return await parallel([one(n) for n in range(6)])


@workflow
async def wordy() -> int:
    for n in range(20):
        await bash(f"while [ {n} = 3 -a -e hold ]; do sleep 0.01; done; head -c 60000 /dev/urandom | base64")
    return 20
"""
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "ws", flows=MANY)


def _some_of_everything(site: Site) -> None:
    for flow, given in (("steps", {"n": 3}), ("asking", {"n": 1}), ("stopped", None), ("family", {"n": 1})):
        site.start(flow, given=given)
    site.work()
    key = site.status("asking")["waiting_on"]["key"]
    site.respond("asking", key, {"action": "revise", "feedback": "shorter"}, "first")
    site.work()


def _delete(site: Site) -> None:
    for file in site.sqlite.parent.glob("workflows.sqlite*"):
        file.unlink()


def _cut(site: Site) -> None:
    os.truncate(site.sqlite, 5000)


def _overwrite(site: Site) -> None:
    site.sqlite.write_bytes(b"garbage" * 2000)


def _empty(site: Site) -> None:
    site.sqlite.write_bytes(b"")


@pytest.mark.parametrize("lose", [_delete, _cut, _overwrite, _empty])
def test_an_index_that_is_lost_comes_back_the_same(site: Site, lose: Callable[[Site], None]) -> None:
    _some_of_everything(site)
    before, inbox = observed(site.statuses()), site.run("review", "list").json
    assert before["asking"]["usage"]["input_tokens"] > 0
    assert before["asking"]["waiting_on"]
    lose(site)
    assert observed({"asking": site.status("asking")}) == {"asking": before["asking"]}
    assert observed(site.statuses()) == before
    assert site.run("review", "list").json == inbox
    key = site.status("asking")["waiting_on"]["key"]
    site.respond("asking", key, {"action": "approve", "feedback": ""}, "second")
    site.work()
    assert site.status("asking")["status"] == "completed"


@pytest.mark.parametrize("lose", [_delete, _overwrite])
def test_an_index_that_is_lost_under_a_live_runner_costs_nothing(site: Site, lose: Callable[[Site], None]) -> None:
    _some_of_everything(site)
    site.start("patient")
    runner = site.runner("--concurrency", "2")
    until(lambda: [row["status"] for row in site.run("runner", "status").json["work"]].count("leased") == 2)
    before = observed(site.statuses())
    lose(site)
    assert observed(site.statuses()) == before
    (site.root / "go").touch()
    until(lambda: site.status("patient")["status"] == "completed")
    runner.send(signal.SIGTERM)
    assert runner.wait() == 0
    assert site.status("patient")["result"] == list("012345")
    assert site.run("runner", "status").json["work"] == []
    site.assert_sound()


# -- disks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 megabytes; only where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_stops_the_run_and_space_lets_it_go_on(small_disk: Path) -> None:
    site = Site(small_disk / "ws", flows=MANY)
    ballast = small_disk / "ballast"
    (site.root / "hold").touch()
    site.start("wordy")
    runner = site.runner("--worker-id", "hungry")
    until(lambda: site.status("wordy")["receipts"] == 4)
    _fill(ballast)
    (site.root / "hold").unlink()
    until(lambda: "No space left" in runner.stderr or "full" in runner.stderr)
    seen = int(site.git("rev-list", "--count", "main..runs/wordy"))
    assert seen < 22
    site.git("fsck", "--full", "--strict")
    ballast.unlink()
    until(lambda: site.status("wordy")["status"] == "completed")
    runner.send(signal.SIGTERM)
    assert runner.wait() == 0
    assert (site.status("wordy")["result"], site.status("wordy")["receipts"]) == (20, 22)
    site.assert_sound()


def test_a_workspace_that_takes_no_writing_can_be_read_and_says_so_in_one_line(small_disk: Path) -> None:
    site = Site(small_disk / "ws", flows=MANY)
    _some_of_everything(site)
    before = observed(site.statuses())
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        assert observed(site.statuses()) == before
        assert observed({"asking": site.status("asking")}) == {"asking": before["asking"]}
        assert [row["workflow_id"] for row in site.run("review", "list").json] == ["stopped", "asking"]
        assert site.run("verify").code == 0
        for refused in (
            site.start("steps", "more", {"n": 1}),
            site.run("cancel", "stopped"),
            site.run("runner", "run"),
        ):
            assert refused.code == 74, refused.stderr
            assert len(refused.stderr.splitlines()) == 1
            assert "Traceback" not in refused.stderr
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    site.assert_sound()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512):
            with suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass


def test_a_limit_on_file_sizes_is_a_disk_that_says_no(site: Site) -> None:
    """RLIMIT_FSIZE: a write that fails in the middle, on any machine."""
    (site.root / "hold").touch()
    site.start("wordy")
    runner: Child = site.runner("--worker-id", "limited")
    until(lambda: site.status("wordy")["receipts"] == 4)
    _limit(runner.pid, 20_000)
    (site.root / "hold").unlink()
    until(lambda: "cannot" in runner.stderr)
    seen = site.status("wordy")["receipts"]
    site.git("fsck", "--full", "--strict")
    runner.kill()
    site.work()
    assert site.status("wordy")["result"] == 20
    assert seen < 22
    site.assert_sound()


def _limit(pid: int, size: int) -> None:
    import resource

    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))
