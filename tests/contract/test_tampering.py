"""Each way to tamper with receipts, and that `verify` finds it: one test a way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.forging import RUN, exchange, indexed, object_path, problems, replaced, rewrite, told
from tests.contract.ledgers import (
    DAY,
    end_draft,
    finished,
    git,
    open_git,
    record,
    request_draft,
    response_draft,
    start,
    step_draft,
)

from hermes_workflows.core import layout
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.repository import GENESIS

FOLDER = f"runs/{DAY}/wf_a"
IDENTITY = {f"GIT_{who}_{what}": "eve" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
LEDGER = "refs/heads/ledger"
LONG = "x" * 70_000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    """A run with a result, a question and its answer, and a blob."""
    made = open_git(tmp_path)
    start(made)
    record(made, "wf_a", step_draft("one", 1))
    record(made, "wf_a", step_draft("two", LONG))
    asked = request_draft("ask")
    record(made, "wf_a", asked)
    record(made, "wf_a", response_draft("ask", asked))
    yield made
    made.close()


@pytest.fixture
def sealed(ledger: GitLedger) -> GitLedger:
    record(ledger, "wf_a", end_draft())
    finished(ledger, "wf_b")
    ledger.seal(keep=0)
    return ledger


def commit(ledger: GitLedger, tree: str, message: str, *parents: str) -> str:
    all_parents = [word for parent in parents for word in ("-p", parent)]
    return git(ledger, "commit-tree", tree, *all_parents, "-m", message, env=IDENTITY).strip()


def test_what_nobody_has_touched_is_sound(sealed: GitLedger) -> None:
    start(sealed, "wf_c")
    assert problems(sealed) == []


def test_any_byte_of_any_receipt_that_is_exchanged_on_disk_is_found(ledger: GitLedger) -> None:
    names = git(ledger, "ls-tree", "-r", "--name-only", f"{RUN}:{FOLDER}").split()
    for name in (name for name in names if name.endswith(".json")):
        oid = git(ledger, "rev-parse", f"{RUN}:{FOLDER}/{name}").strip()
        size = int(git(ledger, "cat-file", "-s", oid))
        for at in {*range(0, size, 97), size - 1}:
            stored = exchange(ledger, oid, lambda body, at=at: body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])  # type: ignore[misc]
            assert {each.path for each in problems(ledger)} >= {name}, (name, at)
            object_path(ledger, oid).write_bytes(stored)
    assert problems(ledger) == []


def test_a_receipt_changed_where_it_was_recorded_moves_everything_after_it(ledger: GitLedger) -> None:
    queue = indexed(ledger)
    replaced(ledger, b'"output": 1,', b'"output": 7,')
    ((found),) = problems(ledger, queue)
    assert (found.run_id, found.path) == ("wf_a", RUN)
    assert "was moved: it does not lead back to" in found.message


def test_a_commit_left_out_of_the_middle_leaves_a_gap(ledger: GitLedger) -> None:
    rewrite(ledger, lambda commits: [*commits[:2], *commits[3:]])
    assert "after 0: what was between them is gone" in told(problems(ledger))


def test_commits_in_another_order_are_found(ledger: GitLedger) -> None:
    rewrite(ledger, lambda commits: [*commits[:2], commits[3], commits[2], *commits[4:]])
    assert "has seq" in told(problems(ledger))


def test_a_ref_set_back_is_found(ledger: GitLedger) -> None:
    queue = indexed(ledger)
    tip = git(ledger, "rev-parse", RUN).strip()
    git(ledger, "update-ref", RUN, f"{RUN}~2")
    ((found),) = problems(ledger, queue)
    assert found.message == f"was moved: it does not lead back to {tip[:12]}, its newest commit"


def test_a_ref_that_is_gone_is_found(ledger: GitLedger) -> None:
    queue = indexed(ledger)
    git(ledger, "update-ref", "-d", RUN)
    ((found),) = problems(ledger, queue)
    assert (found.run_id, found.path) == ("wf_a", RUN)
    assert found.message.startswith("is gone; the run's newest commit was ")


def test_a_run_exchanged_for_another_with_its_name_is_found(ledger: GitLedger, tmp_path: Path) -> None:
    queue = indexed(ledger)
    (tmp_path / "other").mkdir()
    other = open_git(tmp_path / "other")
    start(other)
    record(other, "wf_a", step_draft("one", "forged by our own program"))
    git(ledger, "fetch", "-q", str(other.path), f"+{RUN}:{RUN}")
    ((found),) = problems(ledger, queue)
    assert "was moved" in found.message


def test_a_child_changed_after_its_parent_saw_it_end_is_found(ledger: GitLedger) -> None:
    child = finished(ledger, "wf_a.child").head.tip
    record(ledger, "wf_a", step_draft("child", child="wf_a.child", tip=child))
    git(ledger, "update-ref", "refs/runs/wf_a.child", f"{child}~1")
    assert f"wf_a.child refs/runs/wf_a.child: does not lead back to {child[:12]}" in told(problems(ledger))


@pytest.mark.parametrize("name", ["wf_a", "wf_b"])
def test_a_seal_that_grafts_something_else_is_found(sealed: GitLedger, name: str) -> None:
    """With the tree of the seal before it, which lacks this run or has another one."""
    seal = next(
        each for each in git(sealed, "rev-list", "--first-parent", LEDGER).split() if _seals(sealed, each, name)
    )
    message = git(sealed, "log", "-1", "--format=%B", seal).strip()
    forged = commit(sealed, f"{seal}^1^{{tree}}", message, f"{seal}^1", f"{seal}^2")
    git(sealed, "update-ref", LEDGER, forged)
    assert f"grafts something else than the folder of {name}" in told(problems(sealed))


def _seals(ledger: GitLedger, commit: str, name: str) -> bool:
    return f"seal {name}:" in git(ledger, "log", "-1", "--format=%s", commit)


def test_a_seal_that_brings_more_than_its_run_is_found(sealed: GitLedger) -> None:
    blob = git(sealed, "rev-parse", "main:README.md").strip()
    index = {"GIT_INDEX_FILE": str(sealed.path / "forged-index")}
    git(sealed, "read-tree", LEDGER, env=index)
    git(sealed, "update-index", "--add", "--cacheinfo", f"100644,{blob},runs/{DAY}/wf_a/steps/more.json", env=index)
    tree = git(sealed, "write-tree", env=index).strip()
    message = git(sealed, "log", "-1", "--format=%B", LEDGER).strip()
    git(sealed, "update-ref", LEDGER, commit(sealed, tree, message, f"{LEDGER}^1", f"{LEDGER}^2"))
    assert "grafts something else" in told(problems(sealed))


@pytest.mark.parametrize(
    ("words", "forged", "found"),
    [
        ("Hermes-Status: completed", "Hermes-Status: cancelled", "does not say what it seals"),
        ("Hermes-Run: wf_b", "Hermes-Run: wf_x", "says it seals 'wf_x', and grafts wf_b"),
    ],
)
def test_a_seal_that_says_something_else_is_found(sealed: GitLedger, words: str, forged: str, found: str) -> None:
    message = git(sealed, "log", "-1", "--format=%B", LEDGER).strip()
    assert words in message
    made = commit(sealed, f"{LEDGER}^{{tree}}", message.replace(words, forged), f"{LEDGER}^1", f"{LEDGER}^2")
    git(sealed, "update-ref", LEDGER, made)
    assert found in told(problems(sealed))


def test_a_commit_on_the_ledger_that_is_no_seal_is_found(sealed: GitLedger) -> None:
    git(sealed, "update-ref", LEDGER, commit(sealed, f"{LEDGER}^{{tree}}", "mine", LEDGER))
    assert "is no seal" in told(problems(sealed))


def test_a_seal_of_what_is_no_run_is_found(sealed: GitLedger) -> None:
    message = "seal wf_x: completed\n\nHermes-Run: wf_x\n"
    git(sealed, "update-ref", LEDGER, commit(sealed, f"{LEDGER}^{{tree}}", message, LEDGER, GENESIS))
    assert "holds no run, or several" in told(problems(sealed))
    assert {head.run_id for head in open_git(sealed.path.parent).heads()} == {"wf_a", "wf_b"}


def test_a_seal_that_replaces_what_was_sealed_is_found(sealed: GitLedger, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = open_git(tmp_path / "other")
    start(other, "wf_b")
    tip = record(other, "wf_b", end_draft(output="another")).head.tip
    git(sealed, "fetch", "--quiet", str(other.path), "refs/runs/wf_b")
    other.close()
    message = f"seal wf_b: completed\n\nHermes-Run: wf_b\nHermes-Status: completed\nHermes-Tip: {tip}\n"
    git(sealed, "update-ref", LEDGER, commit(sealed, f"{LEDGER}^{{tree}}", message, LEDGER, tip))
    assert "replaces what was sealed of wf_b before" in told(problems(sealed))


def test_a_ledger_set_back_is_found(sealed: GitLedger) -> None:
    queue = indexed(sealed)
    git(sealed, "update-ref", LEDGER, f"{LEDGER}^1")
    assert "is gone; the run's newest commit was" in told(problems(sealed, queue))


def test_an_artifact_with_another_content_is_found(ledger: GitLedger) -> None:
    sha256 = hashlib.sha256(LONG.encode()).hexdigest()
    oid = git(ledger, "rev-parse", f"{RUN}:{FOLDER}/{layout.artifact(sha256)}").strip()
    exchange(ledger, oid, lambda body: b"y" + body[1:])
    assert layout.artifact(sha256) in {each.path for each in problems(ledger)}


def test_an_artifact_written_anew_under_its_old_name_is_found(ledger: GitLedger) -> None:
    replaced(ledger, b"x" * 1000, b"y" * 1000)
    assert "holds something else than its name says" in told(problems(ledger))


def test_source_written_anew_under_its_old_name_is_found(ledger: GitLedger) -> None:
    from hermes_workflows.core.identity import code_identity

    code = code_identity({"flow.py": b"honest = True\n"})
    record(ledger, "wf_a", step_draft("three"), files={layout.source(code, "flow.py"): b"honest = True\n"})
    assert problems(ledger) == []
    replaced(ledger, b"honest = True", b"honest = Not!")
    assert f", not {code}" in told(problems(ledger))


@pytest.mark.parametrize(
    ("words", "forged"), [(b'"by": "ada"', b'"by": "eve"'), (b"author ada <", b"author eve <")], ids=["json", "commit"]
)
def test_an_answer_given_to_somebody_else_is_found(ledger: GitLedger, words: bytes, forged: bytes) -> None:
    replaced(ledger, words, forged)
    assert "and its commit by" in told(problems(ledger))


def test_what_makes_git_show_something_else_is_found(ledger: GitLedger) -> None:
    forged = commit(ledger, f"{RUN}^{{tree}}", "a better history", f"{RUN}^")
    git(ledger, "replace", RUN, forged)
    assert "a better history" in git(ledger, "log", "-1", RUN)
    assert "makes git show something else in its place" in told(problems(ledger))
    git(ledger, "replace", "-d", RUN)
    (ledger.path / "info" / "grafts").write_text(git(ledger, "rev-parse", RUN))
    ((found),) = problems(ledger)
    assert found.path == "info/grafts"


# --- what is damaged hides nothing else ------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"garbage", b"0" * 40 + b"\n"])
def test_a_ledger_ref_that_cannot_be_read_hides_no_run(ledger: GitLedger, content: bytes) -> None:
    (ledger.path / LEDGER).write_bytes(content)
    replaced(ledger, b"Hermes-Key: one", b"Hermes-Key: two")
    found = problems(ledger)
    assert {(each.run_id, each.path) for each in found} == {("", LEDGER), ("wf_a", "")}
    assert "the commit's trailers do not say what it adds" in told(found)


def test_a_seal_that_cannot_be_read_hides_no_run(sealed: GitLedger) -> None:
    queue = indexed(sealed)
    finished(sealed, "wf_c")
    start(sealed, "wf_d")
    sealed.seal(keep=0)
    object_path(sealed, f"{LEDGER}^1").unlink()
    found = problems(sealed, queue)
    assert "the seals before it cannot be found from here" in {each.hint for each in found}
    assert not {"wf_c", "wf_d"} & {each.run_id for each in found}
    assert {"wf_a", "wf_b"} <= {each.run_id for each in found}


def test_a_blob_that_is_gone_hides_no_other_receipt(ledger: GitLedger) -> None:
    object_path(ledger, f"{RUN}:{FOLDER}/steps/one.json").unlink()
    forged = commit(ledger, f"{RUN}^{{tree}}", "forged", RUN)
    git(ledger, "update-ref", RUN, forged)
    found = problems(ledger)
    assert found[0].path == "steps/one.json"
    assert forged in {each.commit for each in found}


@pytest.mark.parametrize("missing", [f"{RUN}~2", f"{RUN}~2:{FOLDER}/steps", f"{RUN}~2^{{tree}}"])
def test_a_commit_or_tree_that_is_gone_hides_nothing_after_it(ledger: GitLedger, missing: str) -> None:
    record(ledger, "wf_a", step_draft("three"))
    forged = commit(ledger, f"{RUN}^{{tree}}", "forged", RUN)
    git(ledger, "update-ref", RUN, forged)
    path = object_path(ledger, missing)
    path.unlink()
    found = problems(ledger)
    assert f"object {path.parent.name}{path.name} is missing" in told(found)
    assert forged in {each.commit for each in found}
