"""What a supervisor hears, and what it does not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_workflows.runner.environment import clean_environment
from hermes_workflows.runner.supervisor import Supervisor


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(0.0)
        yield made


def heard(listening: socket.socket) -> list[str]:
    words = []
    while True:
        try:
            words.append(listening.recv(4096).decode())
        except BlockingIOError:
            return words


def of(listening: socket.socket, **environment: str) -> Supervisor:
    return Supervisor.from_environment({"NOTIFY_SOCKET": listening.getsockname(), **environment}, pid=7)


def test_a_runner_says_that_it_is_ready_and_that_it_stops(listening: socket.socket) -> None:
    made = of(listening)
    made.ready()
    made.alive(0.0)
    made.stopping()
    assert [said.splitlines()[0] for said in heard(listening)] == ["READY=1", "STOPPING=1"]


def test_only_a_loop_that_turns_keeps_the_watchdog_quiet(listening: socket.socket) -> None:
    made = of(listening, WATCHDOG_USEC="120000000", WATCHDOG_PID="7")
    made.alive(silent=59.0)
    assert heard(listening) == ["WATCHDOG=1"]
    made.alive(silent=60.0)
    assert heard(listening) == []


def test_a_watchdog_of_another_process_is_none_of_ours(listening: socket.socket) -> None:
    of(listening, WATCHDOG_USEC="120000000", WATCHDOG_PID="8").alive(0.0)
    assert heard(listening) == []


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_without_a_supervisor_nothing_is_said(environment: dict[str, str]) -> None:
    Supervisor.from_environment(environment, pid=7).ready()


def test_a_supervisor_that_is_gone_is_no_reason_to_stop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = Supervisor(str(tmp_path / "nobody"), watchdog=120.0)
    made.ready()
    made.alive(0.0)
    assert [record.getMessage().startswith("the supervisor does not listen") for record in caplog.records] == [True]


def test_commands_and_agents_do_not_speak_for_the_runner() -> None:
    told = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "7", "PATH": "/bin"}
    assert {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}.isdisjoint(clean_environment(told))
