"""The command line as a process: in a workspace of its own, piped or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.nursery import Child, nursery, replaced

PROGRAM = [sys.executable, "-m", "hermes_workflows"]
DEADLINE = 60.0
# What Python and the system look at before anything of ours is imported.
_BEFORE_MAIN = ("PYTHON", "LC_", "LANG", "TZ")

REGISTRY = {"dbs": {"default": "workflows.sqlite"}, "workflows": {"launch": {"workflow_ref": "flows/launch.py:launch"}}}
LAUNCH = """
from dataclasses import dataclass
from typing import Literal

from hermes_workflows import agent, ask, bash, workflow


@dataclass
class Topic:
    topic: str
    risk: int = 1


@dataclass
class Review:
    action: Literal["approve", "revise"]
    feedback: str = ""


@workflow
async def launch(inputs: Topic) -> str:
    text = await agent("writer", input=inputs, returns=str, mock_output=f"Draft of {inputs.topic}")
    answer = await ask("Ship it?", key="review_draft", input={"draft": text}, returns=Review)
    return f"{text}: {answer.action}"


@workflow
async def quick(inputs: Topic) -> str:
    if inputs.topic == "bad":
        raise ValueError("a bad topic")
    return inputs.topic


@workflow
async def seeded() -> dict[str, str]:
    import sys

    shown = await bash("echo ${PYTHONHASHSEED:-unset}")
    return {"body": str(sys.flags.hash_randomization), "command": shown.stdout.strip()}


if __name__ == "__main__":
    raise SystemExit(launch.run())
"""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        assert self.stdout, self.stderr
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        """The error a program reads on stderr: the last line, after whatever was told before it."""
        error: dict[str, Any] = json.loads(self.stderr.splitlines()[-1])["error"]
        return error


@dataclass
class Place:
    """A workspace and a folder in it to stand in."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def sqlite(self) -> Path:
        return self.root / ".hermes" / "workflows.sqlite"

    @property
    def receipts(self) -> Path:
        return self.root / ".hermes" / "workflows.git"

    def env(self) -> dict[str, str]:
        hidden = ("PYTHONHASHSEED", "HERMES_WORKFLOWS_ORIGINAL_HASHSEED")
        return {name: value for name, value in os.environ.items() if name not in hidden} | self.environment

    def run(self, *arguments: str, cwd: str = ".", typed: str = "", program: Sequence[str] = ()) -> Said:
        """One command, without a terminal: stdin is `typed`.

        It is a process that was forked with everything imported; with a `program`, one that begins at nothing.
        """
        if not program and self._is_all_for_main():
            child = nursery().start(arguments, self.root / cwd, replaced(self.env()), typed)
            return Said(child.wait(DEADLINE), child.stdout, child.stderr)
        return self.begun(*arguments, cwd=cwd, typed=typed, program=program or PROGRAM)

    def command(self, *arguments: str) -> Child:
        """A command that has been started and not waited for, and whose environment is all for it."""
        assert self._is_all_for_main()
        return nursery().start(arguments, self.root, replaced(self.env()))

    def _is_all_for_main(self) -> bool:
        return not any(name.startswith(_BEFORE_MAIN) for name in self.environment)

    def begun(self, *arguments: str, cwd: str = ".", typed: str = "", program: Sequence[str] = PROGRAM) -> Said:
        """The same as a process of its own from the first byte of Python on: where its start is the subject."""
        done = subprocess.run(
            [*program, *arguments],
            cwd=self.root / cwd,
            env=self.env(),
            input=typed,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def start(self, run_id: str = "wf", ref: str = "launch", topic: str = "docs") -> Said:
        return self.run("run", ref, "--id", run_id, "--input-json", json.dumps({"topic": topic}))

    def work(self, *arguments: str) -> Said:
        return self.run("runner", "run", "--idle-exit-after", "0.1", *arguments)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", self.receipts, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def terminal(self, *arguments: str, typed: str = "") -> tuple[int, str]:
        """One command with all three streams on a terminal, and what is seen there."""
        ours, theirs = pty.openpty()
        child: Child | subprocess.Popen[bytes]
        if self._is_all_for_main():
            child = nursery().start(arguments, self.root, replaced(self.env()), terminal=os.ttyname(theirs))
        else:
            program = [*PROGRAM, *arguments]
            child = subprocess.Popen(program, cwd=self.root, env=self.env(), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = _read_until_closed(ours)
        os.close(ours)
        return child.wait(DEADLINE), seen.replace("\r\n", "\n")


def _read_until_closed(descriptor: int) -> str:
    seen, until = b"", time.monotonic() + DEADLINE
    while time.monotonic() < until:
        ready, _, _ = select.select([descriptor], [], [], 1.0)
        if not ready:
            continue
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux says EIO when the last process has closed the terminal
            break
        if not chunk:
            break
        seen += chunk
    return seen.decode("utf-8", "replace")


def place(root: Path, registry: Any = None, **environment: str) -> Place:
    (root / ".hermes").mkdir(parents=True)
    (root / ".hermes" / "workflows.registry.json").write_text(json.dumps(REGISTRY if registry is None else registry))
    (root / "flows").mkdir()
    (root / "flows" / "launch.py").write_text(LAUNCH)
    return Place(root, environment)
