"""Whether a process still exists: dead, a zombie, another one with its pid, or on another machine."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.contract.queues import dead_process

from hermes_workflows.store.database import DatabaseGone
from hermes_workflows.store.liveness import Process, process_started, this_host


def test_this_process_is_not_gone() -> None:
    assert not Process.current().gone()
    assert Process.from_text(Process.current().to_text()) == Process.current()


@pytest.mark.parametrize(
    "text",
    ["", "[", "{}", '["host", 1]', '["host", "1", ""]', '["host", 0, ""]', '[1, 1, ""]', '["host", 1, 1]', "[" * 9999],
)
def test_a_holder_that_is_no_process_is_damage(text: str) -> None:
    with pytest.raises(ValueError, match="no process"):
        Process.from_text(text)
    with pytest.raises(DatabaseGone, match="its holder is no process"):
        Process.of_holder(text)


def test_a_process_that_ended_is_gone() -> None:
    assert dead_process().gone()
    assert process_started(dead_process().pid) is None


def test_a_process_whose_parent_has_not_looked_yet_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = Process(this_host(), child.pid, process_started(child.pid) or "")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.gone()
    child.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only /proc says when a process started")
def test_another_process_with_its_pid_is_not_it() -> None:
    assert Process.current()._replace(pid_started="1").gone()


def test_a_start_that_could_not_be_known_is_no_proof() -> None:
    assert not Process.current()._replace(pid_started="").gone()


def test_nothing_is_known_of_other_machines() -> None:
    assert not dead_process()._replace(host="elsewhere").gone()


def test_where_nothing_tells_of_processes_a_signal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    over = dead_process().pid
    monkeypatch.setattr("builtins.open", refused)
    assert process_started(os.getpid()) == ""
    assert process_started(over) is None
    # Somebody else's process may not be signalled, and answers by that.
    monkeypatch.setattr(os, "kill", refused)
    assert process_started(1) == ""


def test_a_process_that_is_hidden_from_other_users_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As /proc is where it is mounted with `hidepid=2`."""
    monkeypatch.setattr("builtins.open", failing(errno.ENOENT))
    monkeypatch.setattr(os, "kill", refused)
    assert not Process(this_host(), 1, "17").gone()


def test_whoever_has_no_file_left_to_look_takes_nobody_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    here, over = Process.current(), dead_process()
    monkeypatch.setattr("builtins.open", failing(errno.EMFILE))
    assert not here.gone()
    assert over.gone()


def test_a_machine_without_namespaces_goes_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "readlink", refused)
    this_host.cache_clear()
    try:
        assert this_host() == os.uname().nodename
    finally:
        this_host.cache_clear()


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def refused(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")
