"""A run put into a code repository: one commit of plain files, and nothing else there moves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.ledgers import git, open_git, record, start, step_draft
from tests.contract.published import ENVIRONMENT, git_in
from tests.contract.test_bursts_interrupted import before

from hermes_workflows.errors import Conflict, InvalidInput, NotFound, StoreFailure
from hermes_workflows.store import code_repository
from hermes_workflows.store.code_repository import CodeRepository, Placed
from hermes_workflows.store.git_ledger import GitLedger

FOLDER = ".hermes/runs/wf_a"


@pytest.fixture
def ledger(tmp_path: Path) -> GitLedger:
    made = open_git(tmp_path)
    start(made)
    record(made, "wf_a", step_draft("one"))
    return made


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    git_in(folder, "init", "--quiet", "--initial-branch=main")
    (folder / ".hermes").mkdir()
    (folder / ".hermes" / "kept").write_text("theirs")
    (folder / "app.py").write_text("print()\n")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "--message", "The program")
    return folder


def place(ledger: GitLedger, code: Path, base: str | None = None) -> Placed:
    head = ledger.head("wf_a")
    assert head
    tree = git(ledger, "rev-parse", f"{head.tip}:{head.folder}").strip()
    message = f"Run wf_a\n\nHermes-Tip: {head.tip}\n"
    return CodeRepository(code, ENVIRONMENT).place(ledger.path, tree, FOLDER, "run/wf_a", message, base)


def changed(code: Path) -> list[str]:
    return git_in(code, "diff", "--name-status", "main...run/wf_a").splitlines()


def test_the_difference_to_main_is_exactly_the_run(ledger: GitLedger, code: Path) -> None:
    placed = place(ledger, code)
    assert placed.base == "main"
    assert changed(code) == [f"A\t{FOLDER}/run.json", f"A\t{FOLDER}/steps/one.json"]
    assert git_in(code, "rev-list", "--count", "main..run/wf_a") == "1"
    assert git_in(code, "log", "-1", "--format=%(trailers:key=Hermes-Tip,valueonly)", "run/wf_a")
    assert "missing" not in git_in(code, "fsck", "--full", "--strict")


def test_work_tree_index_and_head_stay_as_they_are(ledger: GitLedger, code: Path) -> None:
    (code / "app.py").write_text("print(1)\n")
    (code / "new.py").write_text("")
    git_in(code, "add", "new.py")
    before = git_in(code, "status", "--porcelain=v2", "--branch")
    place(ledger, code)
    assert git_in(code, "status", "--porcelain=v2", "--branch") == before


def test_publishing_again_adds_what_is_new_and_keeps_what_others_added(ledger: GitLedger, code: Path) -> None:
    first = place(ledger, code)
    assert not place(ledger, code).new
    git_in(code, "switch", "--quiet", "run/wf_a")
    (code / "fix.py").write_text("")
    git_in(code, "add", "fix.py")
    git_in(code, "commit", "--quiet", "--message", "A fix")
    git_in(code, "switch", "--quiet", "main")
    record(ledger, "wf_a", step_draft("two"))
    second = place(ledger, code)
    assert git_in(code, "merge-base", "--is-ancestor", first.commit, second.commit) == ""
    assert {line.split("\t")[1] for line in changed(code)} == {
        *(f"{FOLDER}/{name}" for name in ("run.json", "steps/one.json", "steps/two.json")),
        "fix.py",
    }


def test_a_merged_branch_begins_anew_on_main(ledger: GitLedger, code: Path) -> None:
    place(ledger, code)
    git_in(code, "merge", "--quiet", "--no-ff", "--message", "Merge", "run/wf_a")
    record(ledger, "wf_a", step_draft("two"))
    place(ledger, code)
    assert changed(code) == [f"A\t{FOLDER}/steps/two.json"]


def test_hooks_and_variables_of_others_have_no_influence(ledger: GitLedger, code: Path, tmp_path: Path) -> None:
    hook = code / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    hook.chmod(0o755)
    environment = ENVIRONMENT | {"GIT_DIR": str(tmp_path), "GIT_INDEX_FILE": str(tmp_path / "index")}
    head = ledger.head("wf_a")
    assert head
    tree = git(ledger, "rev-parse", f"{head.tip}:{head.folder}").strip()
    CodeRepository(code, environment).place(ledger.path, tree, FOLDER, "run/wf_a", "Run")
    assert changed(code)
    assert not (tmp_path / "ran").exists()


def test_without_an_identity_the_commit_is_ours(ledger: GitLedger, code: Path) -> None:
    plain = {"PATH": ENVIRONMENT["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    head = ledger.head("wf_a")
    assert head
    tree = git(ledger, "rev-parse", f"{head.tip}:{head.folder}").strip()
    CodeRepository(code, plain).place(ledger.path, tree, FOLDER, "run/wf_a", "Run")
    assert git_in(code, "log", "-1", "--format=%an", "run/wf_a") == "hermes-workflows"
    git_in(code, "config", "user.name", "Ana")
    git_in(code, "config", "user.email", "ana@example.org")
    record(ledger, "wf_a", step_draft("two"))
    head = ledger.head("wf_a")
    assert head
    tree = git(ledger, "rev-parse", f"{head.tip}:{head.folder}").strip()
    CodeRepository(code, plain).place(ledger.path, tree, FOLDER, "run/wf_a", "Run")
    assert git_in(code, "log", "-1", "--format=%an", "run/wf_a") == "Ana"


def test_a_branch_in_somebodys_work_tree_is_left_alone(ledger: GitLedger, code: Path) -> None:
    place(ledger, code)
    git_in(code, "switch", "--quiet", "run/wf_a")
    record(ledger, "wf_a", step_draft("two"))
    with pytest.raises(Conflict, match="checked out"):
        place(ledger, code)


def test_without_git_nothing_is_put_anywhere(code: Path) -> None:
    with pytest.raises(StoreFailure, match="by the program git"):
        CodeRepository(code, {"PATH": "/nonexistent"})


def test_a_branch_that_moves_meanwhile_is_not_moved_back(
    ledger: GitLedger, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(ledger, code)
    record(ledger, "wf_a", step_draft("two"))
    main = git_in(code, "rev-parse", "main").strip()
    before(monkeypatch, CodeRepository, "_refuse_checked_out", lambda: git_in(code, "branch", "-f", "run/wf_a", main))
    with pytest.raises(Conflict, match="was moved meanwhile"):
        place(ledger, code)
    assert git_in(code, "rev-parse", "run/wf_a").strip() == main != placed.commit


def test_the_branch_that_is_checked_out_is_the_base_where_none_has_a_usual_name(ledger: GitLedger, code: Path) -> None:
    git_in(code, "branch", "--move", "main", "trunk-of-ours")
    assert place(ledger, code).base == "trunk-of-ours"


def test_objects_that_are_named_otherwise_are_refused(ledger: GitLedger, tmp_path: Path) -> None:
    other = tmp_path / "sha256"
    other.mkdir()
    git_in(other, "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    git_in(other, "commit", "--quiet", "--allow-empty", "--message", "The program")
    with pytest.raises(InvalidInput, match="sha256"):
        place(ledger, other)


def test_what_git_says_is_told_when_it_fails(ledger: GitLedger, code: Path) -> None:
    repository = CodeRepository(code, ENVIRONMENT)
    with pytest.raises(StoreFailure, match="bad object 0000"):
        repository.place(ledger.path, "0" * 40, FOLDER, "run/wf_a", "message", None)


def test_a_git_that_does_not_end_is_given_up(ledger: GitLedger, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = CodeRepository(code, ENVIRONMENT)
    monkeypatch.setattr(code_repository, "_SECONDS", 0.0)
    with pytest.raises(StoreFailure, match="did not end within 0 s"):
        repository.place(ledger.path, "0" * 40, FOLDER, "run/wf_a", "message", None)


def test_a_file_where_the_folder_belongs_is_not_replaced(ledger: GitLedger, code: Path) -> None:
    git_in(code, "rm", "--quiet", "-r", ".hermes")
    (code / ".hermes").write_text("a file")
    git_in(code, "add", ".hermes")
    git_in(code, "commit", "--quiet", "--message", "A file")
    with pytest.raises(Conflict, match="no folder"):
        place(ledger, code)


def test_what_is_no_repository_or_has_no_such_branch_is_told(ledger: GitLedger, code: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotFound, match="in no git repository"):
        CodeRepository(tmp_path / "plain", ENVIRONMENT)
    with pytest.raises(NotFound, match="no folder"):
        CodeRepository(tmp_path / "nowhere", ENVIRONMENT)
    with pytest.raises(NotFound, match="no branch develop"):
        place(ledger, code, base="develop")
