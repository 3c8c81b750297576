"""The files of `deploy/`: each can be read by what it is for, and starts a runner that obeys its supervisor."""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.acceptance import porter
from tests.acceptance.command_line import DEADLINE, PROGRAM, Place, place

from hermes_workflows.runner.worker import LEAVE_SECONDS

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "hermes-workflows.service"
PLIST = DEPLOY / "launchd" / "hermes-workflows.plist"
S6 = DEPLOY / "s6" / "hermes-workflows"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
COMPOSE = DEPLOY / "docker" / "compose.yaml"


def unit() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=True)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
    parsed.read(UNIT)
    return parsed


def instructions() -> dict[str, str]:
    lines = DOCKERFILE.read_text().replace("\\\n", "").splitlines()
    words = (line.split(maxsplit=1) for line in lines if line and line[0] not in "# ")
    return dict(words)


def commands() -> dict[str, list[str]]:
    """The command of each file, without its program."""
    (s6,) = re.findall(r"^exec (hermes-workflows .*)$", (S6 / "run").read_text(), re.M)
    docker = json.loads(instructions()["ENTRYPOINT"]) + json.loads(instructions()["CMD"])
    with PLIST.open("rb") as file:
        launchd = plistlib.load(file)["ProgramArguments"]
    found = {"systemd": shlex.split(unit()["Service"]["ExecStart"]), "launchd": launchd, "s6": shlex.split(s6)}
    return {name: words[1:] for name, words in {**found, "docker": docker}.items()}


def grace() -> dict[str, float]:
    """How long each supervisor waits after its first signal, in seconds."""
    with PLIST.open("rb") as file:
        launchd = plistlib.load(file)["ExitTimeOut"]
    (compose,) = re.findall(r"stop_grace_period: (\d+)s", COMPOSE.read_text())
    return {
        "systemd": float(unit()["Service"]["TimeoutStopSec"]),
        "launchd": float(launchd),
        "s6": int((S6 / "timeout-kill").read_text()) / 1000,
        "docker": float(compose),
    }


@contextmanager
def supervisor(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(folder / "notify"))
        listening.settimeout(DEADLINE)
        yield listening


def hear(listening: socket.socket, word: str) -> None:
    while word not in listening.recv(4096).decode().splitlines():
        pass


def started(made: Place, words: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words,
        cwd=made.root,
        env=made.env() | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def made(tmp_path: Path) -> Place:
    here = place(tmp_path / "ws")
    here.start("wf")
    return here


@pytest.mark.parametrize("name", commands())
def test_a_supervisor_waits_longer_than_a_runner_needs_to_stop(name: str) -> None:
    words = commands()[name]
    drain = float(words[words.index("--drain-seconds") + 1])
    assert grace()[name] > drain + LEAVE_SECONDS + 10


@pytest.mark.parametrize("name", commands())
def test_what_a_file_starts_says_that_it_is_ready_alive_and_stopping(name: str, made: Place, tmp_path: Path) -> None:
    words = [word.replace("%H", "host") for word in commands()[name]]
    assert words[:2] == ["runner", "run"]
    with supervisor(tmp_path) as listening:
        program = porter.program(made.env())
        child = started(made, [*program, *words], NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="120000000")
        try:
            hear(listening, "READY=1")
            hear(listening, "WATCHDOG=1")
            child.send_signal(signal.SIGTERM)
            hear(listening, "STOPPING=1")
            assert child.wait(DEADLINE) == 0
        finally:
            child.kill()
            child.wait()
    assert made.run("status", "wf").json["status"] == "waiting"


def test_the_s6_service_is_the_runner_itself(made: Place, tmp_path: Path) -> None:
    """A signal for the service must reach the runner, and no shell around it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "hermes-workflows"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hermes_workflows "$@"\n')
    program.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    with supervisor(tmp_path) as listening:
        at = str(tmp_path / "notify")
        child = started(made, [str(S6 / "run")], PATH=path, WORKSPACE=str(made.root), NOTIFY_SOCKET=at)
        try:
            hear(listening, "READY=1")
            assert [row["pid"] for row in made.run("runner", "status").json["runners"]] == [child.pid]
            child.terminate()
            assert child.wait(DEADLINE) == 0
        finally:
            child.kill()
            child.wait()
    assert subprocess.run([str(S6 / "finish"), "0"], check=False).returncode == 0


def test_the_systemd_unit_restarts_watches_and_signals_the_runner_alone() -> None:
    service = unit()["Service"]
    assert (service["Type"], service["NotifyAccess"], service["KillMode"]) == ("notify", "main", "mixed")
    assert (service["Restart"], float(service["WatchdogSec"])) == ("always", 120.0)


def test_a_runner_that_a_watchdog_ends_says_where_it_was(made: Place, tmp_path: Path) -> None:
    with supervisor(tmp_path) as listening, (tmp_path / "stderr").open("wb") as stderr:
        words = [*PROGRAM, "runner", "run"]
        environment = made.env() | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        child = subprocess.Popen(words, cwd=made.root, env=environment, stdout=subprocess.DEVNULL, stderr=stderr)
        hear(listening, "READY=1")
        child.send_signal(signal.SIGABRT)
        assert child.wait(DEADLINE) == -signal.SIGABRT
    said = (tmp_path / "stderr").read_text()
    assert "Fatal Python error: Aborted" in said
    assert re.search(r'worker.py", line \d+ in (run|_loop)', said)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_itself_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = re.sub(r"%h/project/\S+/hermes-workflows", sys.executable, UNIT.read_text())
    (copy := tmp_path / "hermes-workflows.service").write_text(text.replace("%h/project", str(tmp_path)))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    if "bus" in done.stderr or "Failed to" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()[:200]}")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_is_made_of_files_that_there_are() -> None:
    top = DEPLOY.parent
    copied = re.findall(r"^COPY (.*) \S+$", DOCKERFILE.read_text(), re.M)
    assert [name for line in copied for name in line.split() if not (top / name).exists()] == []
    assert {"FROM", "USER", "WORKDIR", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"} <= instructions().keys()
    assert "dockerfile: deploy/docker/Dockerfile" in COMPOSE.read_text()


def test_the_container_is_healthy_when_its_own_runner_is(made: Place, tmp_path: Path) -> None:
    check = instructions()["HEALTHCHECK"].partition("CMD ")[2].replace("hermes-workflows", shlex.join(PROGRAM), 1)

    def healthy() -> bool:
        return subprocess.run(["sh", "-c", check], cwd=made.root, env=made.env(), check=False).returncode == 0

    assert not healthy()
    with supervisor(tmp_path) as listening:
        child = started(made, [*PROGRAM, *commands()["docker"]], NOTIFY_SOCKET=str(tmp_path / "notify"))
        try:
            hear(listening, "READY=1")
            assert healthy()
        finally:
            child.kill()
            child.wait()
    assert not healthy()


@pytest.mark.skipif(not shutil.which("docker"), reason="there is no docker here")
def test_docker_itself_reads_the_compose_file(tmp_path: Path) -> None:
    command = ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"]
    done = subprocess.run(
        command, env={**os.environ, "WORKSPACE": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    if "unknown" in done.stderr:
        pytest.skip("this docker has no compose")
    assert (done.returncode, done.stderr) == (0, "")
