"""The project's own repository: where it stands, and a place of its own for an earlier commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.ledgers import git

from hermes_workflows.errors import InvalidInput, NotFound
from hermes_workflows.store.project import checked_out, commit_of

WHO = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two commits; the workspace is a folder below its top."""
    top = tmp_path / "project"
    (top / "work").mkdir(parents=True)
    git(top, "init", "--quiet", "--initial-branch", "main")
    for content in ("old", "new"):
        (top / "work" / "file").write_text(content)
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "-m", content, env=WHO)
    return top


def head(top: Path, name: str = "HEAD") -> str:
    return git(top, "rev-parse", name).strip()


def test_the_commit_is_found_from_a_folder_below(project: Path) -> None:
    assert commit_of(project / "work") == head(project)
    git(project, "pack-refs", "--all")
    assert commit_of(project / "work") == head(project)
    git(project, "checkout", "--quiet", "--detach", "HEAD~1")
    assert commit_of(project / "work") == head(project)


def test_a_work_tree_that_was_added_has_its_own_commit(project: Path) -> None:
    added = project.parent / "added"
    git(project, "worktree", "add", "--quiet", "-b", "other", str(added), "HEAD~1")
    assert commit_of(added / "work") == head(project, "HEAD~1")


def test_where_there_is_no_commit_there_is_none(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    assert commit_of(tmp_path) is None
    (tmp_path / ".git" / "HEAD").write_text("ref: ../../etc\n")
    assert commit_of(tmp_path) is None


def test_an_earlier_commit_is_checked_out_elsewhere_and_nothing_is_left(project: Path) -> None:
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {project}/hook-ran\n")
    hook.chmod(0o755)
    with checked_out(project / "work", head(project, "HEAD~1")) as there:
        assert (there / "file").read_text() == "old"
        assert (project / "work" / "file").read_text() == "new"
    assert not there.exists()
    assert git(project, "worktree", "list").count("\n") == 1
    assert git(project, "status", "--porcelain") == ""
    assert not (project / "hook-ran").exists()


def test_a_commit_that_is_gone_is_named(project: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="worktree add"), checked_out(project, "1" * 40):
        pass
    with pytest.raises(InvalidInput, match="no git work tree"), checked_out(tmp_path, "1" * 40):
        pass
