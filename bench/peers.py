"""The peers: an environment of their own, made from PyPI when it is wanted first, and their programs in it.

Whatever goes wrong here is `Unavailable`, which becomes a line of the report and never ends a benchmark.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path("build") / "bench-peers"

INSTALL_SECONDS = 600
RUN_SECONDS = 1_200


class Unavailable(Exception):
    """A peer that cannot be installed or does not do the work, and why."""


@dataclass(frozen=True)
class Peer:
    """`name` is the package whose version is quoted; `program` lies beside this file."""

    name: str
    label: str
    packages: tuple[str, ...]
    program: str


LANGGRAPH = Peer(
    "langgraph", "langgraph SQLite, sync", ("langgraph", "langgraph-checkpoint-sqlite"), "peer_langgraph.py"
)
DBOS = Peer("dbos", "dbos SQLite", ("dbos",), "peer_dbos.py")
PEERS = (LANGGRAPH, DBOS)


class Peers:
    """An environment for each, since neither says what the other may bring along."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._pythons: dict[str, Path | Unavailable] = {}

    def measured(self, peer: Peer, workload: str, steps: int, folder: Path) -> dict[str, Any]:
        """What the peer's program says of the workload; its database is made in `folder`. Raises Unavailable."""
        program = str(Path(__file__).parent / peer.program)
        command = [str(self.python(peer)), program, workload, str(steps), str(folder)]
        return dict(json.loads(_output(command, RUN_SECONDS)))

    def versions(self, peer: Peer) -> dict[str, str]:
        """Of all that was installed for it by name. Raises Unavailable."""
        code = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        return dict(json.loads(_output([str(self.python(peer)), "-c", code, *peer.packages], 60)))

    def python(self, peer: Peer) -> Path:
        """The interpreter of the peer's environment, made when it is not there. Raises Unavailable."""
        found = self._pythons.get(peer.name)
        if found is None:
            try:
                found = self._made(peer)
            except Unavailable as error:
                found = error
            self._pythons[peer.name] = found
        if isinstance(found, Unavailable):
            raise found
        return found

    def _made(self, peer: Peer) -> Path:
        home = (self._folder / peer.name).absolute()
        python, stamp = home / "bin" / "python", home / "installed"
        wanted = f"{sys.version}\n{' '.join(peer.packages)}\n"
        if not stamp.is_file() or stamp.read_text() != wanted:
            print(f"Installing {peer.name} into {self._folder / peer.name}; this takes a minute, once.", flush=True)
            _output([sys.executable, "-m", "venv", "--clear", str(home)], INSTALL_SECONDS)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _output([*pip, *peer.packages], INSTALL_SECONDS)
            stamp.write_text(wanted)
        return python


def _output(command: list[str], seconds: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Unavailable(said[-1])
    # What a program prints besides comes before the document that it ends with.
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else ""
