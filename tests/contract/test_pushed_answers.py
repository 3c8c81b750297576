"""Answers that people push as commits: exactly one file is taken, and everything else is refused with its path."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.contract.published import SHIP, Clone, desk_on_git, git_in
from tests.contract.workspaces import Desk, person

from hermes_workflows.review.commits import import_commits
from hermes_workflows.review.imported import Imported

__all__ = ["desk_on_git"]


@pytest.fixture
def clone(desk_on_git: Desk, tmp_path: Path) -> Clone:
    return Clone.of(desk_on_git, tmp_path / "clone")


def refs(clone: Clone, *prefixes: str) -> list[str]:
    return git_in(clone.home, "for-each-ref", "--format=%(refname)", *prefixes).splitlines()


def imported(desk: Desk) -> Imported:
    (one,) = import_commits(desk.workspace)
    return one


def refused(desk: Desk) -> str:
    before = desk.ledger.head("wf")
    one = imported(desk)
    assert one.outcome == "refused"
    assert desk.ledger.head("wf") == before
    return "; ".join(one.reasons)


def test_a_pushed_response_is_the_answer(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    commit = clone.commit()
    clone.push()
    assert imported(desk_on_git).outcome == "recorded"
    response = desk_on_git.workspace.review("wf", "ok").response
    assert response is not None
    assert response.output == SHIP
    by = response.execution.provenance
    assert by is not None
    assert (by.kind, by.by, by.channel, by.message_id, by.verified) == ("manual", "Ana", "commit", commit, "none")
    assert by.origin == {
        "commit": commit,
        "author": "Ana <ana@example.org>",
        "signature": "none",
        "ref": "refs/heads/answer/wf",
    }


def test_a_read_branch_is_cleared_away_and_its_commit_enters_no_run(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    commit = clone.commit()
    clone.push()
    import_commits(desk_on_git.workspace)
    assert refs(clone, "refs/heads/answer", "refs/refused") == []
    assert commit not in git_in(clone.home, "rev-list", "refs/runs/wf")
    assert import_commits(desk_on_git.workspace) == []
    assert "missing" not in git_in(clone.home, "fsck", "--full", "--strict")


def test_a_receipt_that_was_copied_counts_by_its_output(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer(
        {"schema": "hermes.receipt/1", "kind": "review", "output": {**SHIP, "feedback": {"$lines": ["a", "b"]}}}
    )
    clone.commit()
    clone.push()
    assert imported(desk_on_git).outcome == "recorded"
    response = desk_on_git.workspace.review("wf", "ok").response
    assert response is not None
    assert response.output == {**SHIP, "feedback": "a\nb"}


@pytest.mark.parametrize("branch", ["origin/answer/wf", "origin/run/wf", "origin/runs/wf"])
def test_a_fetched_branch_says_the_same(desk_on_git: Desk, clone: Clone, branch: str) -> None:
    clone.answer()
    clone.commit()
    git_in(clone.home, "fetch", "--quiet", str(clone.folder), f"HEAD:refs/remotes/{branch}")
    assert import_commits(desk_on_git.workspace, fetched=False) == []
    assert imported(desk_on_git).outcome == "recorded"
    # It stays, since it is the remote's; the next look knows it.
    assert imported(desk_on_git).outcome == "known"
    assert len(desk_on_git.receipts()) == 3


def test_an_author_whose_name_is_in_another_encoding_is_heard(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    git = ["git", "-C", str(clone.folder)]
    made = subprocess.run([*git, "cat-file", "commit", clone.commit()], capture_output=True, check=True).stdout
    named = made.replace(b"author Ana", b"author J\xfcrg")
    store = [*git, "hash-object", "-t", "commit", "-w", "--stdin"]
    commit = subprocess.run(store, input=named, capture_output=True, check=True).stdout.decode().strip()
    git_in(clone.folder, "push", "--quiet", "origin", f"{commit}:refs/heads/answer/wf")
    one = imported(desk_on_git)
    assert (one.outcome, one.by) == ("recorded", "J\ufffdrg")


def test_an_answer_to_an_older_commit_of_the_run_counts(desk_on_git: Desk, clone: Clone) -> None:
    desk_on_git.ask("second")
    clone.answer()
    clone.commit()
    clone.push()
    assert imported(desk_on_git).outcome == "recorded"


def test_a_run_without_its_history_counts_by_its_blobs(desk_on_git: Desk, clone: Clone) -> None:
    git_in(clone.folder, "reset", "--quiet", "--soft", "origin/main")
    clone.answer()
    clone.commit()
    clone.push()
    assert imported(desk_on_git).outcome == "recorded"


def test_every_other_change_is_refused_with_its_path(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    (clone.run / "README.md").write_text("Looks good.")
    (clone.run / "steps").mkdir()
    (clone.run / "steps" / "paid.json").write_text("{}")
    (clone.folder / "evil.py").write_text("import os")
    (clone.run / "run.json").unlink()
    clone.commit()
    clone.push()
    reasons = refused(desk_on_git)
    for path in ("README.md", "steps/paid.json", "evil.py", "run.json"):
        assert path in reasons


def test_a_changed_question_is_refused(desk_on_git: Desk, clone: Clone) -> None:
    request = clone.run / "reviews" / "ok" / "request.json"
    request.write_text(request.read_text().replace("Ship it?", "Delete it?"))
    clone.answer()
    clone.commit()
    clone.push()
    assert "request.json is not the one that was asked with" in refused(desk_on_git)


def test_a_link_in_place_of_the_answer_is_refused(desk_on_git: Desk, clone: Clone) -> None:
    (clone.run / "reviews" / "ok" / "response.json").symlink_to("/etc/passwd")
    clone.commit()
    clone.push()
    assert "response.json" in refused(desk_on_git)


def test_a_branch_that_does_not_build_on_the_run_is_refused(desk_on_git: Desk, clone: Clone) -> None:
    git_in(clone.folder, "checkout", "--quiet", "--orphan", "other")
    clone.answer()
    clone.commit()
    clone.push()
    assert "does not build on wf" in refused(desk_on_git)


def test_an_answer_that_does_not_fit_is_refused_with_all_reasons_and_kept(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer({"action": "maybe", "extra": 1})
    commit = clone.commit()
    clone.push()
    reasons = refused(desk_on_git)
    assert "/action" in reasons
    assert "extra" in reasons
    assert "feedback" in reasons
    assert refs(clone, "refs/heads/answer", "refs/refused") == [f"refs/refused/wf/{commit}"]


def test_after_a_refusal_a_better_commit_counts(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer("{")
    clone.commit()
    clone.push()
    assert "not JSON" in refused(desk_on_git)
    clone.answer()
    clone.commit("--amend")
    clone.push()
    assert imported(desk_on_git).outcome == "recorded"


def test_the_second_answer_is_told_who_was_first(desk_on_git: Desk, clone: Clone) -> None:
    desk_on_git.workspace.answer("wf", "ok", SHIP, person("bob"))
    clone.answer()
    clone.commit()
    clone.push()
    assert "was answered by bob" in refused(desk_on_git)


def test_an_answer_to_a_question_that_was_never_asked_is_refused(desk_on_git: Desk, clone: Clone) -> None:
    (clone.run / "reviews" / "later").mkdir()
    clone.answer(key="later")
    clone.commit()
    clone.push()
    assert "there is no question later" in refused(desk_on_git)


def test_a_branch_of_no_run_of_ours_is_left_alone(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    clone.commit()
    clone.push("answer/wf_other")
    assert list(import_commits(desk_on_git.workspace)) == []
    assert refs(clone, "refs/heads/answer") == ["refs/heads/answer/wf_other"]


def test_a_branch_that_says_nothing_new_is_cleared_away_when_it_was_pushed(desk_on_git: Desk, clone: Clone) -> None:
    git_in(clone.home, "update-ref", "refs/remotes/origin/runs/wf", "refs/runs/wf~1")
    assert list(import_commits(desk_on_git.workspace)) == []
    git_in(clone.folder, "push", "--quiet", "origin", "HEAD~1:refs/heads/answer/wf")
    assert "adds no reviews/<key>/response.json" in refused(desk_on_git)
    assert refs(clone, "refs/heads/answer") == []


def test_a_branch_of_very_many_commits_is_no_answer(desk_on_git: Desk, clone: Clone) -> None:
    clone.answer()
    for _ in range(51):
        clone.commit("--allow-empty")
    clone.push()
    assert "does not build on wf" in refused(desk_on_git)


def test_one_bad_branch_hides_no_other(desk_on_git: Desk, clone: Clone) -> None:
    git_in(clone.home, "update-ref", "refs/remotes/origin/answer/wf", git_in(clone.home, "rev-parse", "main^{tree}"))
    clone.answer()
    clone.commit()
    clone.push()
    assert sorted(one.outcome for one in import_commits(desk_on_git.workspace)) == ["recorded", "refused"]


def signing(clone: Clone, folder: Path) -> Path:
    """A key with which the clone signs its commits."""
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    for name, value in {"gpg.format": "ssh", "user.signingKey": str(key)}.items():
        git_in(clone.folder, "config", name, value)
    return key


def test_a_signature_by_a_listed_key_makes_it_a_persons(desk_on_git: Desk, clone: Clone, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen")
    key = signing(clone, tmp_path)
    clone.answer()
    clone.commit("--gpg-sign")
    clone.push()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ana@example.org {key.with_suffix('.pub').read_text()}")
    git_in(clone.home, "config", "gpg.ssh.allowedSignersFile", str(allowed))
    one = imported(desk_on_git)
    assert (one.outcome, one.kind, one.by) == ("recorded", "human", "ana@example.org")


def test_a_commit_that_was_changed_under_its_signature_is_refused(
    desk_on_git: Desk, clone: Clone, tmp_path: Path
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen")
    key = signing(clone, tmp_path)
    clone.answer()
    signed = git_in(clone.folder, "cat-file", "commit", clone.commit("--gpg-sign"))
    (tmp_path / "changed").write_text(signed.replace("My answer", "Our answer") + "\n")
    changed = git_in(clone.folder, "hash-object", "-wt", "commit", str(tmp_path / "changed"))
    git_in(clone.folder, "update-ref", "HEAD", changed)
    clone.push()
    (tmp_path / "allowed").write_text(f"ana@example.org {key.with_suffix('.pub').read_text()}")
    git_in(clone.home, "config", "gpg.ssh.allowedSignersFile", str(tmp_path / "allowed"))
    assert "its signature does not belong to it" in refused(desk_on_git)


def test_a_signature_by_anybody_else_proves_nothing(desk_on_git: Desk, clone: Clone, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen")
    signing(clone, tmp_path)
    clone.answer()
    clone.commit("--gpg-sign")
    clone.push()
    (tmp_path / "allowed").write_text("")
    git_in(clone.home, "config", "gpg.ssh.allowedSignersFile", str(tmp_path / "allowed"))
    assert imported(desk_on_git).kind == "manual"
