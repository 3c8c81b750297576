"""A workspace on git whose run asks a question, and clones of it in which people work."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contract.queues import FrozenClock
from tests.contract.workspaces import ACTIONS, Desk

from hermes_workflows.errors import NotFound
from hermes_workflows.registry import parse
from hermes_workflows.review.pull_requests import ForgeReview, PullRequest
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.workspace import Surroundings, Workspace

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ana" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ana@example.org" for who in ("AUTHOR", "COMMITTER")},
}
SHIP = {"action": "approve", "feedback": "Ship it."}

__all__ = ["ACTIONS", "ENVIRONMENT", "SHIP", "Clone", "RecordedForge", "desk_on_git", "git_in"]


def git_in(folder: Path, *arguments: str, **env: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=ENVIRONMENT | env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def desk_on_git(tmp_path: Path) -> Iterator[Desk]:
    """The run `wf`, which asks `ok`, in a workspace of its own."""
    root = tmp_path / "ours"
    root.mkdir()
    (root / "flow.py").write_text(
        "from hermes_workflows import workflow\n\n@workflow\nasync def launch() -> None: ...\n"
    )
    clock = FrozenClock()
    known = parse("{}", root / ".hermes" / "workflows.registry.json")
    paths = known.dbs["default"]
    paths.receipts.parent.mkdir()
    ledger = GitLedger.open(paths.receipts, create=True, clock=clock, durability="process", committer="runner")
    workspace = Workspace(known, paths, ledger, MemoryQueue(clock=clock), Surroundings(clock, ENVIRONMENT))
    desk = Desk(workspace, clock, ledger)  # type: ignore[arg-type]  # a ledger is a ledger
    workspace.start("flow.py:launch", None, run_id="wf")
    desk.ask()
    yield desk
    workspace.close()


@dataclass
class Clone:
    """What a person has in front of them: a clone of the receipts, on a branch of the run."""

    folder: Path
    home: Path

    @classmethod
    def of(cls, desk: Desk, folder: Path, run_id: str = "wf") -> Clone:
        home = desk.workspace.paths.receipts
        git_in(folder.parent, "clone", "--quiet", str(home), str(folder))
        git_in(folder, "fetch", "--quiet", "origin", "refs/runs/*:refs/remotes/origin/runs/*")
        git_in(folder, "switch", "--quiet", "--detach", f"origin/runs/{run_id}")
        return cls(folder, home)

    @property
    def run(self) -> Path:
        (found,) = self.folder.glob("runs/*/*")
        return found

    def answer(self, payload: Any = SHIP, key: str = "ok") -> None:
        text = payload if isinstance(payload, str) else json.dumps(payload)
        (self.run / "reviews" / key / "response.json").write_text(text)

    def commit(self, *options: str) -> str:
        git_in(self.folder, "add", "--all")
        git_in(self.folder, "commit", "--quiet", "--message", "My answer", *options)
        return git_in(self.folder, "rev-parse", "HEAD")

    def push(self, branch: str = "answer/wf") -> None:
        git_in(self.folder, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")


@dataclass
class RecordedForge:
    """A forge that tells what it was given and keeps what it is told."""

    pull: PullRequest
    told: Sequence[ForgeReview] = ()
    permissions: dict[str, str] = field(default_factory=lambda: {"ana": "write", "bob": "admin", "eve": "read"})
    blobs: dict[tuple[str, str], str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    verified: bool = True

    def pull_request(self, number: int) -> PullRequest:
        if number != self.pull.number:
            raise NotFound(f"no pull request {number}")
        return self.pull

    def reviews(self, pull: PullRequest) -> Sequence[ForgeReview]:
        return self.told

    def permission(self, pull: PullRequest, login: str) -> str:
        return self.permissions.get(login, "none")

    def blob(self, pull: PullRequest, commit: str, path: str) -> str | None:
        return self.blobs.get((commit, path))

    def replied(self, pull: PullRequest) -> Sequence[str]:
        return self.comments

    def reply(self, pull: PullRequest, text: str) -> None:
        self.comments.append(text)
