"""A run in a code repository: one commit on a branch of its own, made without touching work tree, index or HEAD.

The run's folder becomes `.hermes/runs/<run>/` on top of that repository's main branch. What goes in are the run's
files only, none of its commits: a commit without code would be in the way of `git bisect`. The tip it shows stands
in a trailer. It is git's plumbing all the way, with that repository's own config for who commits.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.redaction import Redactor
from ..errors import Conflict, InvalidInput, NotFound, StoreFailure
from . import git_binary
from .git_transport import transport_environment

_ZERO = "0" * 40
_SECONDS = 600.0
_SETTINGS = ("core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false", "core.commitGraph=false")
_OURS = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "hermes-workflows"), ("EMAIL", "noreply@hermes-workflows.invalid"))
}
_BASES = ("main", "master")


@dataclass(frozen=True)
class Placed:
    """What is on the branch now; `new` says whether a commit was made for it."""

    branch: str
    commit: str
    base: str
    new: bool


class CodeRepository:
    """The repository that a folder is in. Raises NotFound for a folder in none, StoreFailure where there is no git."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        git = git_binary.find(environment)
        if git is None:
            raise StoreFailure(
                "a run is put into a code repository by the program git", hint="install git 2.29 or newer"
            )
        self._git = git
        self._environment = transport_environment(environment)
        self.folder = folder
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}")
        done = self._run("rev-parse", "--path-format=absolute", "--git-common-dir", check=False)
        if done.returncode:
            raise NotFound(f"{folder} is in no git repository that may be read", hint=_said(done.stderr))
        self.path = Path(_text(done))

    def place(self, source: Path, tree: str, path: str, branch: str, message: str, base: str | None = None) -> Placed:
        """Put a tree of the repository `source`, named as git names it, at `path` on `branch`.

        The branch starts from `base`, or from the main branch; when it is there already, it goes on.
        Raises NotFound (no such base), Conflict (checked out, moved meanwhile, something else lies there).
        """
        base, start = self._base(base)
        ref = f"refs/heads/{branch}"
        old = self._commit(ref)
        # A branch that was merged begins anew, or the pull request would be against an old main.
        parent = start if old is None or self._is_ancestor(old, start) else old
        tree = self._copied(source, tree)
        root = self._grafted(f"{parent}^{{tree}}", path.split("/"), tree)
        if old and parent == old and root == self._line("rev-parse", f"{old}^{{tree}}"):
            return Placed(branch, old, base, new=False)
        self._refuse_checked_out(ref, branch)
        commit = self._line("commit-tree", root, "-p", parent, "-F", "-", given=message, env=self._identity())
        moved = self._run("update-ref", "-m", "hermes-workflows publish", ref, commit, old or _ZERO, check=False)
        if moved.returncode:
            raise Conflict(f"{branch} of {self.folder} was moved meanwhile", hint="try again")
        return Placed(branch, commit, base, new=True)

    def _base(self, name: str | None) -> tuple[str, str]:
        """The main branch by its short name, and its commit."""
        wanted = [name] if name else [*filter(None, [self._remote_head()]), *_BASES, self._current()]
        for each in wanted:
            for ref in (f"refs/heads/{each}", f"refs/remotes/origin/{each}"):
                if each and (commit := self._commit(ref)):
                    return each, commit
        shown = name or "main"
        raise NotFound(f"{self.folder} has no branch {shown}", hint="name the one to start from by --base BRANCH")

    def _remote_head(self) -> str:
        done = self._run("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD", check=False)
        return _text(done).removeprefix("refs/remotes/origin/")

    def _current(self) -> str:
        return _text(self._run("symbolic-ref", "--quiet", "--short", "HEAD", check=False))

    def _copied(self, source: Path, tree: str) -> str:
        """Bring the objects of a tree here, by a pack, without a commit and a ref; the tree's id."""
        if self._line("rev-parse", "--show-object-format") != "sha1":
            raise InvalidInput(f"{self.folder} has objects that are named by sha256, and receipts are by sha1")
        there = {"GIT_DIR": str(source)}
        trusted = ("-c", f"safe.directory={source}")
        oid = self._line(*trusted, "rev-parse", "--verify", tree, env=there)
        names = self._run(*trusted, "rev-list", "--objects", "--no-object-names", oid, env=there)
        pack = self._run(*trusted, "pack-objects", "--quiet", "--stdout", given=names.stdout, env=there)
        self._run("unpack-objects", "-q", "--strict", given=pack.stdout)
        return oid

    def _grafted(self, folder: str, path: Sequence[str], tree: str) -> str:
        """The id of `folder` (a tree) with `tree` at `path` in it."""
        name, *below = path
        entries = [] if not folder else self._run("ls-tree", "-z", folder).stdout.split(b"\0")
        others = [entry for entry in entries if entry and entry.partition(b"\t")[2] != name.encode()]
        if below:
            mine = next((entry for entry in entries if entry.partition(b"\t")[2] == name.encode()), b"")
            if mine and not mine.startswith(b"040000 tree "):
                raise Conflict(f"{name} in {self.folder} is no folder, so no run can lie below it")
            tree = self._grafted(mine.partition(b"\t")[0].rpartition(b" ")[2].decode(), below, tree)
        listed = b"\0".join([*others, f"040000 tree {tree}\t{name}".encode(), b""])
        return self._line("mktree", "-z", given=listed)

    def _identity(self) -> dict[str, str]:
        """Whoever commits here; where nobody is known, it is us."""
        known = self._run("-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT", check=False).returncode == 0
        return {} if known else _OURS

    def _refuse_checked_out(self, ref: str, branch: str) -> None:
        if f"branch {ref}".encode() in self._run("worktree", "list", "--porcelain").stdout.splitlines():
            raise Conflict(f"{branch} is checked out in {self.folder}", hint="`git switch` to another branch first")

    def _is_ancestor(self, old: str, new: str) -> bool:
        return self._run("merge-base", "--is-ancestor", old, new, check=False).returncode == 0

    def _commit(self, ref: str) -> str | None:
        return _text(self._run("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}", check=False)) or None

    def _line(self, *arguments: str, given: bytes | str = b"", env: Mapping[str, str] | None = None) -> str:
        return _text(self._run(*arguments, given=given, env=env))

    def _run(
        self, *arguments: str, given: bytes | str = b"", env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        options = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            done = subprocess.run(
                [self._git, *options, *arguments],
                cwd=self.folder,
                env={**self._environment, "LC_ALL": "C", **(env or {})},
                input=given.encode() if isinstance(given, str) else given,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StoreFailure(f"git in {self.folder} did not end within {_SECONDS:g} s", hint="try again") from None
        if check and done.returncode:
            raise StoreFailure(f"git in {self.folder}: {_said(done.stderr)}", hint="nothing there has been moved")
        return done


def _text(done: subprocess.CompletedProcess[bytes]) -> str:
    return "" if done.returncode else os.fsdecode(done.stdout).strip()


def _said(stderr: bytes) -> str:
    lines = [line for line in Redactor().text(stderr.decode("utf-8", "replace")).splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ") if lines else "it said nothing"
