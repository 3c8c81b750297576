"""One reader of one page: a workspace of their own in which they type what the page says, from top to bottom."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.acceptance import porter
from tests.docs.pages import ROOT

DEADLINE = 120.0
_SIZE = struct.pack("HHHH", 50, 160, 0, 0)
# What a page's commands must not inherit from the tests: their repository, their seed, the width of their terminal.
_LEFT_OUT = ("GIT_", "PYTEST_", "PYTHONHASHSEED", "HERMES_WORKFLOWS_", "COLUMNS", "LINES")

# Plugins that are here for our own tests alone: half of the time that a page's pytest takes would go into them.
_OTHERS = "-p no:anyio -p no:hypothesispytest -p no:xdist -p no:xdist.looponfail"


@dataclass
class Session:
    """What a reader has typed lies in `folder`; what they saw last is `printed`."""

    folder: Path
    printed: str = ""

    @cached_property
    def workspace(self) -> Path:
        (self.folder / "workspace").mkdir()
        return self.folder / "workspace"

    @cached_property
    def checkout(self) -> Path:
        """This project as a reader has it: cloned, with the examples as they are now."""
        copy = self.folder / "checkout"
        subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True, env=self.environment)
        shutil.copytree(ROOT / "examples", copy / "examples", dirs_exist_ok=True)
        return copy

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
        places = [str(Path(sys.executable).parent), kept["PATH"]]
        if hasattr(os, "pidfd_open"):
            # Most of what pages type is that one program: three hundred starts of Python otherwise.
            places.insert(0, str(porter.programs(*sorted(porter.usual(kept).items()))))
        path = os.pathsep.join(places)
        shown = {"GIT_PAGER": "cat", "NO_COLOR": "1", "TERM": "xterm"}
        return kept | shown | {"PATH": path, "TMPDIR": str(self.folder), "PYTEST_ADDOPTS": _OTHERS}

    def run(self, script: str, *, place: Path | None = None, terminal: bool = False) -> int:
        """Run a script as somebody would who is not there to type: `printed` is what it wrote."""
        if terminal:
            return self._on_a_terminal(script, place or self.workspace)
        done = subprocess.run(
            ["bash", "-eu", "-c", script],
            cwd=place or self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        self.printed = done.stdout
        return done.returncode

    def _on_a_terminal(self, script: str, place: Path) -> int:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, _SIZE)
        # Input stays closed: nobody types, and no answer may pass for a person's.
        child = subprocess.Popen(
            ["bash", "-eu", "-c", script],
            cwd=place,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.printed = b"".join(_chunks(ours)).decode().replace("\r\n", "\n")
        os.close(ours)
        return child.wait(DEADLINE)


def _chunks(descriptor: int) -> list[bytes]:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux: the last program has closed the other end
            return chunks
        if not chunk:
            return chunks
        chunks.append(chunk)
