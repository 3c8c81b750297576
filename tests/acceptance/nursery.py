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
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.acceptance import clocks

DEADLINE = 60.0
_HIDDEN = ("PYTHONHASHSEED", "HERMES_WORKFLOWS_ORIGINAL_HASHSEED")


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
        until = time.monotonic() + seconds
        while self.lives():
            assert time.monotonic() < until, f"still running: {self.stderr[-2000:]}"
            time.sleep(0.002)
        assert self.code is not None
        return self.code


class Nursery:
    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self._folder = Path(tempfile.mkdtemp(prefix="nursery-"))
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

    def ask(self, **question: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(question) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], typed: str = "") -> Child:
        self._started += 1
        base = self._folder / str(self._started)
        output, errors = base.with_suffix(".out"), base.with_suffix(".err")
        output.touch()
        errors.touch()
        given = base.with_suffix(".in") if typed else Path(os.devnull)
        if typed:
            given.write_text(typed)
        streams = {"given": str(given), "out": str(output), "err": str(errors)}
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
            pid = os.fork()
            if not pid:
                _become(question)
            living.add(pid)
            ended.pop(pid, None)  # the kernel gives a pid again
            answer: Any = pid
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


def _let_the_disk_be() -> None:
    """What is started here may be killed, and keeps its power: as in tests/conftest.py."""
    from hermes_workflows.store import durability

    durability._sync_file_range = lambda *_: 0
    os.fsync = lambda descriptor: None  # type: ignore[assignment]


def _become(question: Mapping[str, Any]) -> None:
    """The forked child: the command line, from here to its exit."""
    code = 70
    try:
        os.setsid()
        os.chdir(question["cwd"])
        os.environ.clear()
        os.environ.update(question["env"])
        if clock := os.environ.get(clocks.VARIABLE):
            clocks.install(clock)
        for number, (path, flags) in enumerate(
            (
                (question["given"], os.O_RDONLY),
                (question["out"], os.O_WRONLY | os.O_CREAT),
                (question["err"], os.O_WRONLY | os.O_CREAT),
            )
        ):
            os.dup2(os.open(path, flags, 0o600), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # the descriptor is the process's own
        sys.argv = ["hermes-workflows", *question["arguments"]]
        from hermes_workflows.cli.main import main

        code = main() or 0
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
