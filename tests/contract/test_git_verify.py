"""`verify` on repositories that C git has tampered with."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import DAY, end_draft, git, open_git, record, request_draft, start, step_draft
from tests.contract.test_bursts_interrupted import before

from hermes_workflows.core import layout
from hermes_workflows.errors import IntegrityError
from hermes_workflows.store import trust
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.repository import GENESIS

FOLDER = f"runs/{DAY}/wf_a"
IDENTITY = {f"GIT_{who}_{what}": "eve" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def ledger(tmp_path: Path) -> GitLedger:
    made = open_git(tmp_path)
    start(made)
    record(made, "wf_a", step_draft("one", 1), step_draft("two", "x" * 70_000))
    record(made, "wf_a", request_draft("ask"), files={layout.README: b"# hello\n"})
    return made


def said(files: int) -> str:
    return f"{files} files\n\nHermes-Run: wf_a\n"


def tamper(ledger: GitLedger, change: Callable[[Path], object], *parents: str, message: str = said(0)) -> str:
    """Put a commit on the run in which its folder is changed, as a person with a clone would."""
    tree = ledger.path.parent / "tree"
    tree.mkdir()
    index = {"GIT_INDEX_FILE": str(tree.parent / "index"), "GIT_WORK_TREE": str(tree), **IDENTITY}
    git(ledger, "read-tree", "runs/wf_a", env=index)
    git(ledger, "checkout-index", "-a", f"--prefix={tree}/", env=index)
    change(tree / FOLDER)
    subprocess.run(
        ["git", "add", "-A", "."],
        cwd=tree,
        check=True,
        env={"PATH": "/usr/bin:/bin", "GIT_DIR": str(ledger.path), **index},
    )
    made = git(ledger, "write-tree", env=index).strip()
    all_parents = [word for parent in ("runs/wf_a", *parents) for word in ("-p", parent)]
    commit = git(ledger, "commit-tree", made, *all_parents, "-m", message, env=index).strip()
    git(ledger, "update-ref", "refs/runs/wf_a", commit)
    return commit


def problems(ledger: GitLedger) -> set[tuple[str, str]]:
    return {(problem.path, problem.message) for problem in open_git(ledger.path.parent).verify("wf_a")}


def test_a_run_that_only_this_program_wrote_is_sound(ledger: GitLedger) -> None:
    assert problems(ledger) == set()


def test_a_run_that_ends_and_is_sealed_while_it_is_looked_at_is_sound(
    ledger: GitLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = trust.verify_run

    def meanwhile(*given: Any) -> Any:
        found = look(*given)
        record(ledger, "wf_a", end_draft())
        assert ledger.seal() == 1
        return found

    with monkeypatch.context() as patch:
        patch.setattr(trust, "verify_run", meanwhile)
        assert ledger.verify("wf_a") == []
    assert ledger.verify("wf_a") == []


@pytest.mark.parametrize("damaged", [False, True], ids=["readable", "damaged meanwhile"])
def test_a_run_of_which_the_ledger_holds_something_else_is_found(
    ledger: GitLedger, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    newest = record(ledger, "wf_a", end_draft()).head.tip
    assert ledger.seal(keep=0) == 1
    git(ledger, "update-ref", "refs/runs/wf_a", f"{newest}~1")
    first = git(ledger, "rev-parse", "runs/wf_a").strip()
    again = open_git(ledger.path.parent)
    if damaged:
        # As a power cut does, and nobody knows any more where the run stands.
        before(monkeypatch, trust, "verify_run", lambda: (ledger.path / "refs/runs/wf_a").write_bytes(b""))
    told = {(problem.run_id, problem.path, problem.message) for problem in again.verify("wf_a")}
    assert told == {("wf_a", "refs/heads/ledger", f"holds {FOLDER} as it is not at {first[:12]}")}


def test_a_changed_receipt_is_found_and_not_read(ledger: GitLedger) -> None:
    tip = ledger.read("wf_a")[0].tip

    def change(folder: Path) -> None:
        path = folder / "steps/one.json"
        path.write_text(path.read_text().replace('"output": 1', '"output": 2'))

    commit = tamper(ledger, change, message=said(1))
    assert problems(ledger) == {("steps/one.json", "was changed after it was recorded")}
    assert [problem.commit for problem in ledger.verify("wf_a")] == [commit]
    with pytest.raises(IntegrityError, match=r"steps/one\.json was changed after"):
        ledger.read("wf_a", since=tip)


def test_a_removed_receipt_is_found(ledger: GitLedger) -> None:
    tamper(ledger, lambda folder: (folder / "steps/one.json").unlink())
    assert problems(ledger) == {("steps/one.json", "was removed after it was recorded")}


def test_a_removed_blob_is_found(ledger: GitLedger) -> None:
    (blob,) = (line for line in git(ledger, "ls-tree", "-r", "--name-only", "runs/wf_a").split() if "artifacts" in line)
    path = blob.removeprefix(FOLDER + "/")
    tamper(ledger, lambda folder: (folder / path).unlink())
    assert (path, "was removed after it was recorded") in problems(ledger)
    assert ("steps/two.json", f"its blob {path} is missing") in problems(ledger)


def test_a_link_and_a_program_are_found(ledger: GitLedger) -> None:
    def change(folder: Path) -> None:
        (folder / "steps/link.json").symlink_to("/etc/passwd")
        (folder / "source/0123456789ab").mkdir(parents=True)
        (folder / "source/0123456789ab/run.sh").write_text("#!/bin/sh\n")
        (folder / "source/0123456789ab/run.sh").chmod(0o755)

    tamper(ledger, change)
    found = problems(ledger)
    assert ("steps/link.json", "is not a plain file") in found
    assert ("source/0123456789ab/run.sh", "is not a plain file") in found


def test_what_lies_outside_the_run_is_found(ledger: GitLedger) -> None:
    tamper(ledger, lambda folder: (folder / "../../../README.md").resolve().write_text("mine"))
    assert problems(ledger) == {("README.md", "lies outside the run's folder and was touched")}


def test_a_merge_is_found(ledger: GitLedger) -> None:
    tamper(ledger, lambda _: None, GENESIS)
    assert problems(ledger) == {
        ("", "the commit has 2 parents; a run is a chain"),
        ("", "the commit adds nothing"),
    }


@pytest.mark.parametrize(
    ("words", "forged", "what"),
    [
        ("one: completed", "one: approved", "subject"),
        ("Hermes-Key: one", "Hermes-Key: two", "trailers"),
        ("Hermes-Kind: step", "Hermes-Kind: step\nHermes-Approved: yes", "trailers"),
    ],
)
def test_a_message_that_was_written_again_is_found(tmp_path: Path, words: str, forged: str, what: str) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    record(ledger, "wf_a", step_draft("one", 1))
    message = git(ledger, "log", "-1", "--format=%B", "runs/wf_a").strip() + "\n"
    assert words in message
    arguments = ("commit-tree", "runs/wf_a^{tree}", "-p", "runs/wf_a^", "-m", message.replace(words, forged))
    git(ledger, "update-ref", "refs/runs/wf_a", git(ledger, *arguments, env=IDENTITY).strip())
    ((path, told),) = problems(ledger)
    assert path == ""
    assert f"the commit's {what}" in told


def test_a_source_with_another_content_than_its_name_says_is_found(ledger: GitLedger) -> None:
    def change(folder: Path) -> None:
        (folder / "source/0123456789ab").mkdir(parents=True)
        (folder / "source/0123456789ab/flow.py").write_text("evil = True\n")

    tamper(ledger, change, message=said(1))
    ((path, told),) = problems(ledger)
    assert path == "source/0123456789ab/flow.py"
    assert "not 0123456789ab" in told


def test_a_ref_that_points_at_another_run_hides_neither(ledger: GitLedger) -> None:
    start(ledger, "wf_b")
    git(ledger, "update-ref", "refs/runs/wf_b", "refs/runs/wf_a")
    again = open_git(ledger.path.parent)
    assert sorted(head.run_id for head in again.heads()) == ["wf_a", "wf_b"]
    assert again.head("wf_b") is None
    with pytest.raises(IntegrityError, match="refs/runs/wf_b points at a commit of run wf_a"):
        again.verify("wf_b")


def test_a_root_that_is_not_genesis_is_found(ledger: GitLedger) -> None:
    orphan = git(ledger, "commit-tree", "runs/wf_a^{tree}", "-m", "x", env=IDENTITY).strip()
    git(ledger, "update-ref", "refs/runs/wf_a", orphan)
    assert problems(ledger) == {("", f"commit {orphan} is a root, but not the genesis commit of all runs")}


def test_a_repository_in_the_runs_folder_is_found(ledger: GitLedger) -> None:
    """What git calls a submodule: a commit of another repository, which is never here."""
    index = {"GIT_INDEX_FILE": str(ledger.path.parent / "index"), **IDENTITY}
    git(ledger, "read-tree", "runs/wf_a", env=index)
    git(ledger, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},{FOLDER}/steps/sub.json", env=index)
    tree = git(ledger, "write-tree", "--missing-ok", env=index).strip()
    made = git(ledger, "commit-tree", tree, "-p", "runs/wf_a", "-m", said(1), env=index).strip()
    git(ledger, "update-ref", "refs/runs/wf_a", made)
    found = problems(ledger)
    assert ("steps/sub.json", "is not a plain file") in found
    assert "missing" not in str(found)


def test_a_history_that_was_cut_and_lost_the_run_on_the_way_is_told_in_both(ledger: GitLedger) -> None:
    lost = git(ledger, "rev-parse", "runs/wf_a~1").strip()
    without = git(ledger, "commit-tree", f"{GENESIS}^{{tree}}", "-p", lost, "-m", "lost", env=IDENTITY).strip()
    tip = git(ledger, "commit-tree", "runs/wf_a^{tree}", "-p", without, "-m", "back", env=IDENTITY).strip()
    git(ledger, "update-ref", "refs/runs/wf_a", tip)
    (ledger.path / "objects" / lost[:2] / lost[2:]).unlink()
    found = {message for _, message in problems(ledger)}
    assert {f"object {lost} is missing", f"commit {without} does not have {FOLDER}"} <= found


def test_a_file_that_no_run_has_is_not_read_as_one(ledger: GitLedger) -> None:
    tamper(ledger, lambda folder: (folder / "notes.txt").write_text("mine"))
    with pytest.raises(IntegrityError, match=r"wf_a: notes\.txt is no file of a run"):
        open_git(ledger.path.parent).read("wf_a")


def test_a_commit_that_says_it_is_another_runs_is_nobodys(ledger: GitLedger) -> None:
    tamper(ledger, lambda _: None, message="step\n\nHermes-Run: wf_x\n")
    again = open_git(ledger.path.parent)
    with pytest.raises(IntegrityError, match="says it is of run 'wf_x', but its folder is"):
        again.read("wf_a")
    assert [head.run_id for head in again.heads()] == ["wf_a"]


def test_a_receipt_whose_artifact_is_gone_is_not_half_read(ledger: GitLedger) -> None:
    tamper(ledger, lambda folder: [each.unlink() for each in (folder / "artifacts").rglob("*") if each.is_file()])
    with pytest.raises(IntegrityError, match=r"artifacts/\S+ is missing"):
        open_git(ledger.path.parent).read("wf_a")


def test_a_run_that_somebody_began_without_a_receipt_begins_with_the_first_one(ledger: GitLedger) -> None:
    blob = git(ledger, "rev-parse", "main:README.md").strip()
    index = {"GIT_INDEX_FILE": str(ledger.path.parent / "index"), **IDENTITY}
    git(ledger, "read-tree", "main", env=index)
    git(ledger, "update-index", "--add", "--cacheinfo", f"100644,{blob},runs/{DAY}/wf_b/README.md", env=index)
    tree = git(ledger, "write-tree", env=index).strip()
    made = git(ledger, "commit-tree", tree, "-p", GENESIS, "-m", "begun", env=index).strip()
    git(ledger, "update-ref", "refs/runs/wf_b", made)
    assert ledger.read("wf_b")[1] == []
    assert record(ledger, "wf_b", step_draft("one")).receipts[0].seq == 0


def test_a_missing_object_is_a_problem_and_no_crash(ledger: GitLedger) -> None:
    record(ledger, "wf_a", end_draft())
    blob = git(ledger, "rev-parse", f"runs/wf_a:{FOLDER}/run.json").strip()
    (ledger.path / "objects" / blob[:2] / blob[2:]).unlink()
    assert problems(ledger) == {("run.json", f"object {blob} is missing")}


def test_a_clone_with_changed_line_ends_is_sound(ledger: GitLedger, tmp_path: Path) -> None:
    """`.gitattributes` of genesis keeps git from rewriting receipts, whatever the clone's settings."""
    clone = tmp_path / "clone"
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "-q", "-c", "core.autocrlf=true", str(ledger.path), str(clone))
    git(clone, "fetch", "-q", "origin", "refs/runs/wf_a")
    git(clone, "checkout", "-q", "FETCH_HEAD")
    path = f"{FOLDER}/steps/one.json"
    assert (clone / path).read_bytes() == ledger.file("wf_a", "steps/one.json")
    assert git(clone, "status", "--porcelain") == ""
