"""The project's own git repository, not that of the receipts: at which commit it stands, and an earlier one of it.

Where it stands is read as text, for each start of a run; only checking out needs the git program.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import HermesError, InvalidInput, NotFound
from . import peek
from .git_binary import ENVIRONMENT

_COMMIT = re.compile(r"[0-9a-f]{40}")
_PATIENCE = 600


def top_of(folder: Path) -> Path | None:
    """The work tree that `folder` lies in, if it lies in one."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def commit_of(folder: Path) -> str | None:
    """The commit that the work tree around `folder` stands at; None when there is none, or it cannot be read."""
    top = top_of(folder)
    if top is None:
        return None
    try:
        repository = _repository(top / ".git")
        head = (repository / "HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else None
        name = head.removeprefix("ref: ")
        return peek.read_ref(repository, name) or peek.read_ref(_shared(repository), name)
    except (OSError, ValueError, HermesError):
        return None


@contextmanager
def checked_out(folder: Path, commit: str) -> Iterator[Path]:
    """The place of `folder` in a temporary work tree of the project as it was at `commit`.

    No hook of the project runs. Raises NotFound for a commit that is not there, InvalidInput without git.
    """
    top, git = top_of(folder), shutil.which("git")
    if top is None or git is None:
        missing = "git is not installed" if git is None else f"{folder} lies in no git work tree"
        raise InvalidInput(f"the recorded code cannot be checked out: {missing}")
    with tempfile.TemporaryDirectory(prefix="hermes-workflows-") as temporary:
        place = Path(temporary).resolve() / (top.name or "project")
        _git(git, top, "worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield place / folder.relative_to(top)
        finally:
            _git(git, top, "worktree", "remove", "--force", str(place))


def _git(git: str, top: Path, *arguments: str) -> None:
    settings = ("-c", f"safe.directory={top}", "-c", "core.hooksPath=/dev/null")
    done = subprocess.run(
        [git, *settings, *arguments],
        cwd=top,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["git says nothing"])[-1]
        raise NotFound(f"git {arguments[0]} {arguments[1]} in {top}: {said}", hint="`git fetch` may bring the commit")


def _repository(path: Path) -> Path:
    """The folder that a `.git` is, or that it names: work trees and submodules have a file."""
    if path.is_dir():
        return path
    named = path.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
    return (path.parent / named).resolve()


def _shared(repository: Path) -> Path:
    """Where branches are: a work tree that was added has only a HEAD of its own."""
    common = repository / "commondir"
    return (repository / common.read_text(encoding="utf-8").strip()).resolve() if common.is_file() else repository
