"""The machine below a workspace: git, SQLite, the file system, its room and its permissions. Looks only."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from . import git_binary
from .mounts import MOUNTS, mount_of

# File systems of other machines: SQLite's write-ahead log needs shared memory, and locks may hold on one side only.
_REMOTE = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|fuse\.(sshfs|s3fs|rclone|gcsfuse)|afpfs|webdav")


class Room(NamedTuple):
    """What a file system has left; `files` is None where it does not count them."""

    bytes: int
    files: int | None


class Access(NamedTuple):
    """`owner` when it is somebody else's; `open_to_all` when anybody on the machine may write it."""

    writable: bool
    owner: str | None
    open_to_all: bool


def git_version(environment: Mapping[str, str]) -> str | None:
    """What the git program on that environment's PATH says it is, or None without one."""
    git = shutil.which("git", path=environment.get("PATH"))
    if git is None:
        return None
    said = subprocess.run(
        [git, "--version"], env=git_binary.ENVIRONMENT, capture_output=True, text=True, check=False, timeout=30
    )
    found = re.search(r"\d+(\.\d+)+", said.stdout)
    return found[0] if found else said.stdout.strip() or None


def sqlite_version() -> str:
    return sqlite3.sqlite_version


def room(path: Path) -> Room:
    """What is left for us where `path` lies. Raises OSError."""
    found = os.statvfs(path)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def remote_file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of file system when another machine has it; None where that cannot be known."""
    found = mount_of(path, mounts)
    return found[0] if found is not None and _REMOTE.fullmatch(found[0]) else None


def access(path: Path) -> Access:
    """Who may write there. Raises OSError."""
    found = path.stat()
    owner = None if found.st_uid == os.geteuid() else _name_of(found.st_uid)
    effective = os.access in os.supports_effective_ids
    open_to_all = bool(found.st_mode & stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    return Access(os.access(path, os.W_OK, effective_ids=effective), owner, open_to_all)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
