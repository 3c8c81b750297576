"""Which way to a remote is taken, and which of two commits came first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from dulwich.graph import can_fast_forward
from dulwich.objects import ObjectID
from dulwich.repo import Repo

from . import git_binary
from .dulwich_transport import DulwichTransport
from .durability import Disk
from .git_transport import GitTransport
from .remotes import Remote, Transport


def reach(path: Path, remote: Remote, disk: Disk, environment: Mapping[str, str]) -> Transport:
    """git's program when it is on that environment's PATH, dulwich otherwise."""
    if git := git_binary.find(environment):
        return GitTransport(path, remote, environment, git)
    return DulwichTransport(path, remote, disk, environment)


def leads_to(path: Path, old: str, new: str) -> bool:
    """Whether commit `new` is here and has `old` among its ancestors, or is the same."""
    with closing(Repo(str(path))) as repo:
        try:
            return can_fast_forward(repo, ObjectID(old.encode()), ObjectID(new.encode()))
        except KeyError:
            return False
