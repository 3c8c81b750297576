"""Keeping a repository small: git's own housekeeping, done by one process at a time, beside any number of writers.

Loose objects, which are what a writer makes fastest, take forty times the space of packed ones. `repack` packs what
refs have come to refer to: on that way git knows the path of each object, and so which is the next version of which.
`repack --geometric` rolls the rest, and small packs, into bigger ones whatever refers to them, so nothing that a writer
is about to refer to can go. The cost of both follows what is new. `gc` (the full way) looks at everything, with git's
own grace of two weeks for what nothing refers to. Never `--prune=now`, and never dulwich's own: both destroy what is
being written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import NotFound, StoreFailure, TemporarilyLocked
from .flocks import let_go, open_to_lock
from .git_binary import ENVIRONMENT

LOOSE_LIMIT = 15_000
"""Loose objects from which packing is worth the time: 2,000 receipts and 60 MB."""

TASKS: tuple[tuple[str, ...], ...] = (
    ("pack-refs", "--all"),
    # Runs of one shape stand beside each other in git's order: with its ten candidates the one before is often missed,
    # and 5,000 receipts of 1 KB in ten runs took 8 MB instead of 3.5, or 17 without the paths.
    ("repack", "-d", "-l", "-q", "--window=20"),
    ("repack", "-d", "-l", "-q", "--geometric=2"),
    ("commit-graph", "write", "--reachable", "--changed-paths", "--no-progress"),
)
FULL: tuple[tuple[str, ...], ...] = (("gc", "--quiet"), TASKS[-1])

# How many loose objects are as much to tidy as one pack, however small: each reader looks into all of them, so that
# 1,000 packs make reading a run of twelve receipts take twice as long.
_A_PACK = 128

# Of 256 folders, one tells about how many objects there are in all: ids are evenly spread.
_SAMPLE = "17"
_FOLDERS = 256
_KIBIBYTE = 1024
_COUNTED = re.compile(r"^([a-z-]+): (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Size:
    """What a repository holds: objects one by one and in packs, and the bytes that both take on disk."""

    loose: int
    packed: int
    packs: int
    size: int


@dataclass(frozen=True)
class Maintained:
    """`failed` are git's own words about tasks that did not end well; the next maintenance does them again."""

    sealed: int
    before: Size
    after: Size
    failed: tuple[str, ...] = ()


def loose_objects(repository: Path) -> int:
    """About how many there are, at the cost of one folder."""
    try:
        return len(os.listdir(repository / "objects" / _SAMPLE)) * _FOLDERS
    except FileNotFoundError:
        return 0


def clutter(repository: Path) -> int:
    """How much there is to tidy, in loose objects."""
    try:
        packs = sum(name.endswith(".pack") for name in os.listdir(repository / "objects" / "pack"))
    except FileNotFoundError:
        packs = 0
    return loose_objects(repository) + packs * _A_PACK


class Housekeeper:
    """One passage of maintenance, which `stop` (from any thread) ends early: git leaves whole what it began with."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def leased(self) -> Iterator[None]:
        """Be the only one that does it; the lease ends with the process. Raises TemporarilyLocked."""
        path = self._repository / "hermes" / "maintenance.lock"
        path.parent.mkdir(exist_ok=True)
        descriptor = open_to_lock(path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TemporarilyLocked(
                    f"{self._repository} is being maintained by another process", hint="nothing to do: it does the same"
                ) from None
            yield
        finally:
            let_go(descriptor)

    def tidy(self, *, full: bool = False) -> tuple[str, ...]:
        """Run git's tasks; what git said of those that failed. Raises NotFound without git."""
        told = []
        for task in FULL if full else TASKS:
            if self._stopped.is_set():
                break
            code, said = self._git(*task)
            if code != 0 and not self._stopped.is_set():
                told.append(f"git {task[0]}: {' '.join(said.split())[:200] or f'exit code {code}'}")
        return tuple(told)

    def size(self) -> Size:
        code, said = self._git("count-objects", "-v")
        if code != 0:
            raise StoreFailure(f"git cannot read {self._repository}: {said.strip()}", hint="hermes-workflows doctor")
        # Among them may be warnings, such as of what a killed writer has left.
        found = {name: int(value) for name, value in _COUNTED.findall(said)}
        taken = (found["size"] + found["size-pack"]) * _KIBIBYTE
        return Size(found["count"], found["in-pack"], found["packs"], taken)

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        with self._guard:
            self._stopped.set()
            if self._child is not None and self._child.poll() is None:
                # With its children, which would hold the pipe open.
                os.killpg(self._child.pid, signal.SIGTERM)

    def _git(self, *arguments: str) -> tuple[int, str]:
        git = shutil.which("git")
        if git is None:
            raise NotFound(
                "there is no git on PATH", hint="install git 2.32 or newer; everything else works without it"
            )
        repository = os.fspath(self._repository)
        with self._guard:
            if self._stopped.is_set():
                return -signal.SIGTERM, "stopped"
            self._child = subprocess.Popen(
                [git, "-c", f"safe.directory={repository}", *arguments],
                cwd=repository,
                env={**ENVIRONMENT, "GIT_DIR": repository},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        said, _ = self._child.communicate()
        return self._child.returncode, said.decode("utf-8", "replace")
