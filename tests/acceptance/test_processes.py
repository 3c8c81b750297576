"""Runner processes beside each other, stopped by signals, and what becomes of what they execute."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.acceptance.nursery import Child, until
from tests.acceptance.workspaces import FLOWS, Site

LONG = (
    FLOWS
    + """

@workflow
async def long_bash() -> str:
    done = await bash("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo done", timeout=600)
    return done.stdout.strip()


@workflow
async def long_agent() -> str:
    return await agent("slow", "Take your time.", returns=str)


@step
def deaf() -> str:
    (HERE / "pid").write_text(str(os.getpid()))
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return "done"


@workflow
async def long_step() -> str:
    return await deaf()


@workflow
async def ordered() -> list[str]:
    names = {"one", "two", "three"}
    return [await add_text(name) for name in names]


@workflow
async def thoughtful() -> str:
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
    return "thought"


@workflow
async def deadly() -> str:
    os._exit(9)


@step
def add_text(text: str) -> str:
    return text
"""
)
SLOW_AGENT = """
import os, sys, time
from pathlib import Path
here = Path(sys.argv[0]).parent
sys.stdin.read()
(here / "pid").write_text(str(os.getpid()))
while not (here / "go").exists():
    time.sleep(0.01)
print('"done"')
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "ws", flows=LONG)
    (made.root / "slow.py").write_text(SLOW_AGENT)
    return made


def pid_of(site: Site) -> int:
    file = site.root / "pid"
    return int(until(lambda: file.exists() and file.read_text().strip()))


def stop_twice(runner: Child, number: int) -> None:
    runner.send(number)
    # Two signals that nobody has looked at yet are one.
    until(lambda: "a second signal" in runner.stderr)
    runner.send(number)
    runner.wait()


def lives(pid: int) -> bool:
    try:
        # A zombie has ended; only its parent has not looked yet.
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def slow_agent(site: Site) -> tuple[str, ...]:
    return ("--agent-command", f"python3 -S -E {site.root / 'slow.py'}")


def test_eight_processes_with_fifty_steps_each_lose_nothing_and_lock_nobody_out(tmp_path: Path) -> None:
    site = Site(tmp_path / "ws")
    for number in range(8):
        assert site.start("steps", f"run-{number}", {"n": 50}).code == 0
    runners = [site.runner("--worker-id", f"runner-{number}", idle=0.5) for number in range(8)]
    assert [runner.wait() for runner in runners] == [0] * 8
    said = "".join(runner.stderr for runner in runners)
    assert "locked" not in said
    assert "ERROR" not in said
    runs = site.statuses()
    assert {(run["status"], run["result"]) for run in runs.values()} == {("completed", 50)}
    site.assert_sound()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("flow", ["long_bash", "long_agent"])
def test_one_signal_lets_what_executes_finish(site: Site, flow: str, number: signal.Signals) -> None:
    site.start(flow)
    runner = site.runner(*slow_agent(site))
    pid_of(site)
    runner.send(number)
    (site.root / "go").touch()
    code = runner.wait()
    assert code == (130 if number == signal.SIGINT else 0)
    assert site.status(flow)["calls"] == {"completed": 1}
    # The lease of the run went back, so that the next runner need not wait for it.
    site.work()
    assert site.status(flow)["result"] == "done"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("flow", ["long_bash", "long_agent"])
def test_two_signals_end_what_executes_and_the_run_goes_on_later(site: Site, flow: str, number: signal.Signals) -> None:
    site.start(flow)
    runner = site.runner(*slow_agent(site))
    child = pid_of(site)
    stop_twice(runner, number)
    assert not lives(child)
    assert site.status(flow)["calls"] == {}
    work = site.run("runner", "status").json["work"]
    assert [row["status"] for row in work] == ["queued"]
    (site.root / "go").touch()
    assert site.runner(*slow_agent(site), idle=0.1).wait() == 0
    assert site.status(flow)["result"] == "done"


def test_a_step_that_does_not_end_does_not_keep_a_runner_that_was_told_twice(site: Site) -> None:
    site.start("long_step")
    runner = site.runner()
    pid_of(site)
    stop_twice(runner, signal.SIGTERM)
    (site.root / "go").touch()
    site.work()
    assert site.status("long_step")["result"] == "done"


def test_cancel_kills_what_executes_in_another_process(site: Site) -> None:
    site.start("long_bash")
    one, other = site.runner("--concurrency", "1"), site.runner()
    child = pid_of(site)
    assert site.run("cancel", "long_bash", "--by", "ana").json["cancel"] in ("requested", "cancelled")
    until(lambda: site.status("long_bash")["status"] == "cancelled")
    until(lambda: not lives(child))
    for runner in (one, other):
        runner.send(signal.SIGTERM)
        runner.wait()
    site.assert_sound()


def test_a_killed_runner_is_seen_at_once_and_its_work_taken_over(site: Site) -> None:
    site.start("long_bash")
    runner = site.runner("--worker-id", "victim")
    pid_of(site)
    runner.kill()
    shown = site.status("long_bash")
    assert shown["state"] == "stuck"
    assert "died" in shown["reason"]
    (site.root / "go").touch()
    # Its lease of thirty seconds is not waited for: the process is gone.
    began = time.monotonic()
    site.work()
    assert time.monotonic() - began < 20
    assert site.status("long_bash")["result"] == "done"


def test_sets_of_text_iterate_in_one_order_in_every_process(site: Site) -> None:
    for name in ("one", "other"):
        site.start("ordered", name)
        while site.status(name)["status"] == "running":
            site.run("runner", "once")
    assert site.status("one")["result"] == site.status("other")["result"]
    assert site.status("one")["calls"] == {"completed": 3}


def test_a_process_that_was_stopped_wakes_up_and_agrees(site: Site) -> None:
    """Ctrl-Z in the middle: the lease runs out, somebody else goes on, and the first one finds the path taken."""
    site.start("long_bash")
    sleeper = site.runner("--lease-seconds", "0.5")
    pid_of(site)
    sleeper.send(signal.SIGSTOP)
    (site.root / "go").touch()
    until(lambda: site.work() and site.status("long_bash")["status"] == "completed")
    sleeper.send(signal.SIGCONT)
    until(lambda: "recorded by somebody else" in sleeper.stderr or not site.run("runner", "status").json["work"])
    sleeper.send(signal.SIGTERM)
    assert sleeper.wait() == 0
    assert site.status("long_bash")["result"] == "done"
    site.assert_sound()


def test_a_body_that_ends_its_process_is_stuck_after_three_and_others_go_on(site: Site) -> None:
    site.start("deadly")
    site.start("ordered")
    # Whoever was claimed together with it is not blamed.
    codes = [site.runner(idle=0.1).wait() for _ in range(3)]
    assert codes == [9, 9, 9]
    site.work()
    assert site.status("ordered")["status"] == "completed"
    shown = site.status("deadly")
    assert (shown["state"], shown["status"]) == ("stuck", "running")
    assert "3 times" in shown["reason"]
    site.work()
    code = (site.root / "flows.py").read_text().replace("os._exit(9)", 'return "mended"')
    (site.root / "flows.py").write_text(code)
    site.work()
    assert site.status("deadly")["result"] == "mended"


def test_a_file_that_ends_the_process_when_it_is_imported_is_no_different(site: Site) -> None:
    site.start("long_step")
    code = (site.root / "flows.py").read_text()
    (site.root / "flows.py").write_text("import os\nos._exit(9)\n" + code)
    assert [site.runner(idle=0.1).wait() for _ in range(3)] == [9, 9, 9]
    site.work()
    site.work()
    assert site.status("long_step")["state"] == "stuck"
    (site.root / "flows.py").write_text(code)
    (site.root / "go").touch()
    site.work()
    assert site.status("long_step")["result"] == "done"


def test_a_run_whose_runners_are_killed_while_they_decide_is_not_blamed(site: Site) -> None:
    site.start("thoughtful")
    for _ in range(4):
        runner = site.runner()
        until(lambda: any(row["status"] == "leased" for row in site.run("runner", "status").json["work"]))
        runner.kill()
    site.work()
    shown = site.status("thoughtful")
    assert (shown["status"], shown["result"]) == ("completed", "thought")
