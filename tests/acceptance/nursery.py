"""Starts the command line as processes of their own, two hundred times in a test, without importing it each time.

One server process has everything imported and forks: what it starts is a real process with its own pid, that can be
killed at any instruction, and runs `hermes_workflows.cli.main` from its first line. The server has no threads.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import posix
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests import memory
from tests.acceptance import clocks

DEADLINE = 60.0
_HIDDEN = ("PYTHONHASHSEED", "HERMES_WORKFLOWS_ORIGINAL_HASHSEED")


def until(found: Callable[[], Any]) -> Any:
    """What `found` gives, as soon as it gives something."""
    deadline = time.monotonic() + DEADLINE
    while not (value := found()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
    return value


@dataclass
class Child:
    """A process of the command line. `output` and `errors` are files that it writes to."""

    pid: int
    output: Path
    errors: Path
    server: Nursery = field(repr=False)
    code: int | None = None

    @property
    def stdout(self) -> str:
        return self.output.read_text()

    @property
    def stderr(self) -> str:
        return self.errors.read_text()

    @property
    def json(self) -> Any:
        assert self.stdout, f"nothing on stdout, exit code {self.code}: {self.stderr}"
        return json.loads(self.stdout)

    def lives(self) -> bool:
        self.code = self.code if self.code is not None else self.server.ask(op="poll", pid=self.pid)
        return self.code is None

    def send(self, number: int) -> None:
        if self.lives():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        self.send(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = DEADLINE) -> int:
        """Its exit code, or minus the number of the signal it died of."""
        deadline = time.monotonic() + seconds
        while self.lives():
            assert time.monotonic() < deadline, f"still running: {self.stderr[-2000:]}"
            self._until_it_has_ended(deadline - time.monotonic())
        assert self.code is not None
        return self.code

    def _until_it_has_ended(self, seconds: float) -> None:
        try:
            watched = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except (AttributeError, OSError):  # only Linux has it
            time.sleep(0.002)
            return
        ended = select.poll()
        ended.register(watched, select.POLLIN)
        ended.poll(max(0.0, seconds) * 1000)
        os.close(watched)


class Nursery:
    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self.folder = Path(tempfile.mkdtemp(prefix="nursery-", dir=memory.folder()))
        self._started = 0
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from tests.acceptance import nursery; nursery.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(map(str, (root, *sys.path)))},
            text=True,
        )
        atexit.register(self.close)

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, **question: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(question) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        typed: str = "",
        terminal: str | None = None,
    ) -> Child:
        """A process that has its three streams: files, or that terminal."""
        self._started += 1
        base = self.folder / str(self._started)
        output, errors = base.with_suffix(".out"), base.with_suffix(".err")
        output.touch()
        errors.touch()
        given = base.with_suffix(".in") if typed else Path(os.devnull)
        if typed:
            given.write_text(typed)
        streams = {"given": str(given), "out": str(output), "err": str(errors)}
        if terminal is not None:
            streams = dict.fromkeys(streams, terminal)
        pid = self.ask(op="start", arguments=[*arguments], cwd=str(cwd), env=dict(env), **streams)
        return Child(pid, output, errors, self)


@cache
def nursery() -> Nursery:
    """The one of this test process."""
    return Nursery()


def replaced(env: Mapping[str, str]) -> dict[str, str]:
    """What a process has that was replaced by itself for its hash seed (`cli/hashseed.py`)."""
    seed, original = _HIDDEN
    return {**env, seed: "0", original: env.get(seed, "")}


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _HIDDEN} | {"PYTHONHASHSEED": "0"} | more


# -- the server --------------------------------------------------------------------------------------------------


def serve() -> None:
    """Read questions from stdin until it is closed; then nothing that was started is left."""
    _import_everything()
    _let_the_disk_be()
    # Where coverage is measured, each forked process tells what it did itself, not all of these imports once more.
    os._exit = posix._exit
    ended: dict[int, int] = {}
    living: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        for pid in list(living):
            found, status_word = os.waitpid(pid, os.WNOHANG)
            if found:
                living.discard(pid)
                ended[pid] = os.waitstatus_to_exitcode(status_word)
        if question["op"] == "start":
            told, telling = os.pipe()
            pid = os.fork()
            if not pid:
                os.close(told)
                become(question, telling=telling)
            os.close(telling)
            os.read(told, 1)  # its end says that the streams are open
            os.close(told)
            living.add(pid)
            ended.pop(pid, None)  # the kernel gives a pid again
            answer: Any = pid
        elif question["op"] == "listen":
            answer = _listen(question["address"])
            living.add(answer)
        else:
            answer = ended.get(question["pid"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in living:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _import_everything() -> None:
    import dulwich.repo  # noqa: F401  # loaded late by the package itself
    import jsonschema  # noqa: F401  # the same

    import hermes_workflows

    for found in pkgutil.walk_packages(hermes_workflows.__path__, "hermes_workflows."):
        # Plugins of pytest and programs are nobody's business here.
        if not found.name.endswith("__main__") and ".testing" not in found.name:
            importlib.import_module(found.name)
    hermes_workflows.versions.versions()  # read from files, once in a process


def _let_the_disk_be() -> None:
    """What is started here may be killed, and keeps its power: as in tests/conftest.py."""
    from hermes_workflows.store import durability

    durability._sync_file_range = lambda *_: 0
    if memory.is_used():
        durability.has_ordered_journal = memory.is_ordered_on_disk
    os.fsync = os.fdatasync = lambda descriptor: None  # type: ignore[assignment]


def _listen(address: str) -> int:
    from tests.acceptance.porter import listen

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        pid = os.fork()
        if not pid:
            try:
                listen(listening)
            finally:
                os._exit(70)
    return pid


def become(question: Mapping[str, Any], streams: Sequence[int] = (), telling: int | None = None) -> None:
    """The forked child: the command line, from here to its exit."""
    code = 70
    try:
        os.setsid()
        # A shell has what it puts into the background ignore Ctrl-C, these tests perhaps; a command does not.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(question["cwd"])
        os.environ.clear()
        os.environ.update(question["env"])
        if clock := os.environ.get(clocks.VARIABLE):
            clocks.install(clock)
        for number, stream in enumerate(streams or _opened(question)):
            os.dup2(stream, number)
        if telling is not None:
            os.close(telling)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # the descriptor is the process's own
        sys.argv = ["hermes-workflows", *question["arguments"]]
        from hermes_workflows.cli.main import main

        code = main() or 0
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _opened(question: Mapping[str, Any]) -> list[int]:
    written = os.O_WRONLY | os.O_CREAT
    flags = {"given": os.O_RDONLY, "out": written, "err": written}
    return [os.open(question[name], each, 0o600) for name, each in flags.items()]
