"""Runs one command and always comes back.

The rules: a command has a session and process group of its own, so that its children can be ended with it;
its standard input is what it was given, or closed; memory is bounded whatever it prints;
and neither the deadline nor a stop waits for a pipe that some grandchild holds open.
Whatever is left of the group when the command has ended is ended too.

One loop watches everything: both outputs, the input, the end of the process, the stop signal, the clock.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal as signals
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from hermes_workflows.core.redaction import Redactor

from .capture import Capture, Stream
from .stopping import StopSignal

__all__ = ["Command", "Outcome", "StopSignal", "Stream", "run_command"]

Ended = Literal["exited", "timed_out", "stopped", "not_started"]
OnLine = Callable[[str, str], None]

STEPS: tuple[tuple[int, float], ...] = ((signals.SIGINT, 0.5), (signals.SIGTERM, 0.5), (signals.SIGKILL, 5.0))
"""How a group is ended: the signal, and the seconds it then has before the next one."""

PIPE_GRACE = 0.3
"""Seconds for the pipes to close once the process itself has ended: more means that a grandchild holds them."""

_READ = 64 * 1024
_LAST_READS = 16
_POLL = 0.02


@dataclass(frozen=True)
class Command:
    """What to run.

    `env` is the whole environment; `timeout` is in seconds; `keep_bytes` of each end of each stream are kept.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes | None = None
    timeout: float | None = None
    keep_bytes: int = 65536


@dataclass(frozen=True)
class Outcome:
    """How it went. Of `exit_code` and `signal` one is set once the command has ended, by itself or not.

    `reason` says in one line why it did not start, or why it was ended.
    """

    exit_code: int | None
    signal: int | None
    ended: Ended
    stdout: Stream
    stderr: Stream
    started_at: datetime
    duration_seconds: float
    reason: str | None = None


def run_command(
    command: Command,
    *,
    stop: StopSignal,
    redactor: Redactor,
    now: Callable[[], datetime],
    on_line: OnLine | None = None,
) -> Outcome:
    """Runs `command` to its end, its deadline or the stop signal, whichever comes first. Raises nothing of its own.

    `on_line` is called with "stdout" or "stderr" and each redacted line, in the calling thread.
    """
    started_at, begin = now(), _seconds()
    nothing = Stream()
    if stop.is_set():
        return Outcome(None, None, "stopped", nothing, nothing, started_at, 0.0, stop.reason)
    try:
        process = _start(command)
    except (OSError, ValueError) as error:
        reason = redactor.text(_why_not(command, error))
        return Outcome(None, None, "not_started", nothing, nothing, started_at, _seconds() - begin, reason)
    with ExitStack() as cleanup:
        cleanup.callback(_end_group, process)
        run = _Run(process, command, stop, redactor, on_line, begin)
        cleanup.callback(run.close)
        cleanup.enter_context(stop.heard_by(run.wake))
        run.watch()
    stdout, stderr = run.streams()
    code = process.returncode
    return Outcome(
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        ended=run.ended,
        stdout=stdout,
        stderr=stderr,
        started_at=started_at,
        duration_seconds=_seconds() - begin,
        reason=run.reason,
    )


def _seconds() -> float:
    """The machine's time: a deadline is one for real processes, also where a test has frozen `time.monotonic`."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _start(command: Command) -> subprocess.Popen[bytes]:
    if not command.argv:
        raise ValueError("it is empty")
    return subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env=dict(command.env),
        stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )


def _why_not(command: Command, error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return f"the command cannot be run: {error}"
    program = command.argv[0]
    if error.errno == errno.E2BIG:
        longest = max(len(os.fsencode(word)) for word in command.argv)
        return f"{program}: the command line is too long (its longest word has {longest} bytes); use standard input"
    if not command.cwd.is_dir():
        return f"{command.cwd}: there is no such folder to run {program} in"
    if error.errno == errno.ENOENT:
        return f"{program}: there is no such command"
    return f"{program}: {error.strerror or error}"


class _Run:
    """One process being watched."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        command: Command,
        stop: StopSignal,
        redactor: Redactor,
        on_line: OnLine | None,
        begin: float,
    ) -> None:
        self.ended: Ended = "exited"
        self.reason: str | None = None
        self._process = process
        self._timeout = command.timeout
        self._stop = stop
        self._begin = begin
        self._exited_at: float | None = None
        self._steps = list(STEPS)
        self._next_step: float | None = None
        self._input = memoryview(command.stdin or b"")
        self._captures = {
            name: Capture(redactor, command.keep_bytes, on_line and _listener(on_line, name))
            for name in ("stdout", "stderr")
        }
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._exit_fd = _exit_descriptor(process.pid)
        self._register()

    def _register(self) -> None:
        process = self._process
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe.fileno(), selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin.fileno(), selectors.EVENT_WRITE, "stdin")
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        if self._exit_fd is not None:
            self._selector.register(self._exit_fd, selectors.EVENT_READ, "exit")

    def wake(self) -> None:
        with suppress(OSError):
            os.write(self._wake_write, b"!")

    def watch(self) -> None:
        """Until the process has ended and its pipes are closed, or their grace is over, or it cannot be ended."""
        while not self._over():
            for key, _ in self._selector.select(self._patience()):
                self._handle(key.data, key.fd)
            if self._exited_at is None and self._process.poll() is not None:
                self._exited_at = _seconds()
            self._end_if_due()
        self._drain()

    def _drain(self) -> None:
        # What the process itself printed is in the pipes by now; who still prints is not waited for.
        for key in list(self._selector.get_map().values()):
            if key.data in self._captures:
                for _ in range(_LAST_READS):
                    if not self._read(key.data, key.fd):
                        break

    def _over(self) -> bool:
        if self._exited_at is not None:
            return not self._reading() or _seconds() >= self._exited_at + PIPE_GRACE
        return self._next_step is not None and not self._steps and _seconds() >= self._next_step

    def _reading(self) -> bool:
        return any(key.data in self._captures for key in self._selector.get_map().values())

    def _patience(self) -> float | None:
        """Seconds until the clock alone changes something."""
        due = [self._next_step]
        if self._next_step is None and self._timeout is not None:
            due.append(self._begin + self._timeout)
        if self._exited_at is not None:
            due.append(self._exited_at + PIPE_GRACE)
        waits = [max(0.0, moment - _seconds()) for moment in due if moment is not None]
        if self._exit_fd is None and self._exited_at is None:
            waits.append(_POLL)
        return min(waits, default=None)

    def _handle(self, name: str, fd: int) -> None:
        if name in self._captures:
            self._read(name, fd)
        elif name == "stdin":
            self._write(fd)
        else:
            # The stop and the exit are looked at after every round; here they only must not wake us again.
            self._selector.unregister(fd)

    def _read(self, name: str, fd: int) -> bool:
        """Takes one piece; false when there is none at the moment, or no more."""
        try:
            chunk = os.read(fd, _READ)
        except BlockingIOError:
            return False
        if chunk:
            self._captures[name].feed(chunk)
        else:
            self._selector.unregister(fd)
        return bool(chunk)

    def _write(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:_READ]) :] if self._input else self._input
        except BlockingIOError:
            return
        except OSError:
            # It stopped reading: not our affair, many commands do not read all of their input.
            self._input = self._input[:0]
        if not self._input:
            self._selector.unregister(fd)
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _end_if_due(self) -> None:
        moment = _seconds()
        if self._next_step is None and self._exited_at is None:
            if self._stop.is_set():
                self._begin_to_end("stopped", self._stop.reason)
            elif self._timeout is not None and moment >= self._begin + self._timeout:
                self._begin_to_end("timed_out", f"timed out after {self._timeout:g} s")
        if self._next_step is not None and moment >= self._next_step and self._steps:
            number, seconds = self._steps.pop(0)
            _signal_group(self._process.pid, number)
            self._next_step = moment + seconds

    def _begin_to_end(self, ended: Ended, reason: str | None) -> None:
        self.ended, self.reason = ended, reason
        self._next_step = _seconds()

    def streams(self) -> tuple[Stream, Stream]:
        return self._captures["stdout"].close(), self._captures["stderr"].close()

    def close(self) -> None:
        for fd in (self._wake_read, self._wake_write, self._exit_fd):
            if fd is not None:
                os.close(fd)
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _listener(on_line: OnLine, name: str) -> Callable[[str], None]:
    return lambda line: on_line(name, line)


def _exit_descriptor(pid: int) -> int | None:
    """Something to select on that becomes readable at the exit; None where there is none, and we poll."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _signal_group(pid: int, number: int) -> bool:
    """Whether there was anybody to hear it."""
    try:
        os.killpg(pid, number)
    except OSError:
        return False
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what the command left behind; when we are leaving early, the command itself."""
    if process.poll() is None:
        _signal_group(process.pid, signals.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=STEPS[-1][1])
        return
    # A group keeps its number while it has members, so this reaches a stranger only if all numbers
    # of the system were given out since the process ended, a moment ago.
    if _signal_group(process.pid, signals.SIGTERM):
        deadline = _seconds() + PIPE_GRACE
        while _signal_group(process.pid, 0) and _seconds() < deadline:
            time.sleep(_POLL)
        _signal_group(process.pid, signals.SIGKILL)
