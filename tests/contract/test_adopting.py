"""What a run takes over from another one, in git and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.ledgers import (
    DAY,
    end_draft,
    git,
    open_git,
    record,
    request_draft,
    response_draft,
    run_draft,
    start,
    step_draft,
)

from hermes_workflows.core import layout
from hermes_workflows.core.identity import code_identity
from hermes_workflows.core.receipts import Draft
from hermes_workflows.errors import Conflict, IntegrityError, InvalidInput, NotFound
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.ports import Adopted, Appended, Entry, Ledger

ONE, TWO, THREE = (layout.step(key) for key in ("one", "two", "three"))
LONG = "x" * 70_000


@pytest.fixture(params=["git", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = open_git(tmp_path) if request.param == "git" else MemoryLedger()
    yield made
    made.close()


def recorded(ledger: Ledger) -> str:
    """A run with three steps, the second one's output long; its tip."""
    start(ledger, "wf_a")
    record(ledger, "wf_a", step_draft("one", 1))
    record(ledger, "wf_a", step_draft("two", LONG))
    return record(ledger, "wf_a", step_draft("three", "y" * 70_000)).head.tip


def fork(ledger: Ledger, commit: str, *paths: str, run_id: str = "wf_b", instead: tuple[Draft, ...] = ()) -> Appended:
    source = {"run": "wf_a", "commit": commit, "how": "fork"}
    return ledger.create(Entry(run_id, (run_draft(source=source),)), DAY, Adopted(commit, paths, instead))


def test_adopted_receipts_are_the_same_bytes_at_the_same_seq(ledger: Ledger) -> None:
    tip = recorded(ledger)
    outcome = fork(ledger, tip, ONE, TWO)
    head, receipts = ledger.read("wf_b")
    assert (head, receipts) == (outcome.head, list(outcome.receipts))
    assert [(each.key, each.seq) for each in receipts] == [("", 0), ("one", 1), ("two", 2)]
    assert receipts[2].output == LONG
    assert ledger.file("wf_b", TWO) == ledger.file("wf_a", TWO)
    assert ledger.verify("wf_b") == []


def test_a_run_that_adopts_counts_on_from_what_it_adopted(ledger: Ledger) -> None:
    fork(ledger, recorded(ledger), TWO)
    outcome = record(ledger, "wf_b", step_draft("four"))
    assert [each.seq for each in outcome.receipts] == [3]
    assert [each.key for each in ledger.read("wf_b", since=outcome.base)[1]] == ["four"]
    assert ledger.verify("wf_b") == []


def test_a_run_may_adopt_nothing(ledger: Ledger) -> None:
    fork(ledger, recorded(ledger))
    assert [each.path for each in ledger.read("wf_b")[1]] == [layout.RUN]
    assert ledger.verify("wf_b") == []


def test_only_artifacts_and_sources_of_adopted_receipts_come_along(ledger: Ledger) -> None:
    files = {"flow.py": b"code"}
    code = code_identity(files)
    start(ledger, "wf_a")
    record(ledger, "wf_a", step_draft("one", LONG, code=code), files={layout.source(code, "flow.py"): b"code"})
    tip = record(ledger, "wf_a", step_draft("two", "y" * 70_000)).head.tip
    fork(ledger, tip, ONE)
    fork(ledger, tip, TWO, run_id="wf_c")
    assert ledger.file("wf_b", layout.source(code, "flow.py")) == b"code"
    assert ledger.file("wf_c", layout.source(code, "flow.py")) is None
    assert [each.output for each in ledger.read("wf_c")[1]][1:] == ["y" * 70_000]
    assert [len(ledger.verify(each)) for each in ("wf_b", "wf_c")] == [0, 0]


def test_what_came_after_the_commit_cannot_be_adopted(ledger: Ledger) -> None:
    start(ledger, "wf_a")
    before = record(ledger, "wf_a", step_draft("one")).head.tip
    record(ledger, "wf_a", step_draft("two"))
    fork(ledger, before, ONE)
    with pytest.raises(IntegrityError, match=r"two\.json is missing"):
        fork(ledger, before, TWO, run_id="wf_c")
    assert ledger.head("wf_c") is None


def test_the_files_of_a_run_are_listed_as_a_commit_has_them(ledger: Ledger) -> None:
    tip = recorded(ledger)
    adopted = fork(ledger, tip, ONE, TWO).head.tip
    kept = [path for path in ledger.paths(adopted) if not path.startswith("artifacts/")]
    assert kept == [layout.RUN, ONE, TWO]
    assert len(ledger.paths(adopted)) == 4
    assert THREE in ledger.paths(tip)


def test_an_ended_run_can_be_adopted_from_without_its_end(ledger: Ledger) -> None:
    recorded(ledger)
    tip = record(ledger, "wf_a", end_draft("failed")).head.tip
    with pytest.raises(InvalidInput, match=r"result\.json"):
        fork(ledger, tip, ONE, layout.RESULT)
    fork(ledger, tip, ONE)
    assert record(ledger, "wf_b", step_draft("two")).receipts[0].seq == 2


def test_a_receipt_may_take_the_place_of_an_adopted_one(ledger: Ledger) -> None:
    tip = recorded(ledger)
    other = step_draft("two", "other", seq=2)
    fork(ledger, tip, ONE, THREE, instead=(other,))
    assert [(each.seq, each.output) for each in ledger.read("wf_b")[1]][1:3] == [(1, 1), (2, "other")]
    assert ledger.verify("wf_b") == []


def test_a_run_that_only_the_ledger_knows_can_be_adopted_from(ledger: Ledger) -> None:
    recorded(ledger)
    tip = record(ledger, "wf_a", end_draft("failed")).head.tip
    assert ledger.seal(keep=0) == 1
    assert ledger.head("wf_a") == ledger.read("wf_a")[0]
    assert fork(ledger, tip, ONE, TWO).receipts[-1].output == LONG
    assert ledger.verify("wf_b") == []


def test_answers_come_with_their_questions(ledger: Ledger) -> None:
    start(ledger, "wf_a")
    asked = request_draft("ask")
    record(ledger, "wf_a", asked)
    tip = record(ledger, "wf_a", response_draft("ask", asked)).head.tip
    fork(ledger, tip, layout.request("ask"), layout.response("ask"))
    assert ledger.verify("wf_b") == []


def test_a_taken_id_and_an_unknown_commit_are_refused(ledger: Ledger) -> None:
    tip = recorded(ledger)
    with pytest.raises(Conflict, match="wf_a exists already"):
        fork(ledger, tip, ONE, run_id="wf_a")
    with pytest.raises(NotFound):
        fork(ledger, "1" * 40, ONE)


def test_a_fork_of_a_fork_is_a_run_like_any_other(ledger: Ledger) -> None:
    tip = recorded(ledger)
    again = fork(ledger, tip, ONE, TWO).head.tip
    fork(ledger, again, ONE, TWO, run_id="wf_c")
    assert ledger.file("wf_c", ONE) == ledger.file("wf_a", ONE)
    assert ledger.verify("wf_c") == []


def test_adoption_is_one_commit_that_names_its_source_and_writes_no_receipt_again(tmp_path: Path) -> None:
    with_git = open_git(tmp_path)
    tip = recorded(with_git)
    before = with_git.objects.written
    fork(with_git, tip, ONE, TWO, THREE)
    # run.json, the run's folder, three folders above it, the commit: all of `steps` is the folder of the source.
    assert with_git.objects.written - before == 6
    assert git(with_git, "log", "--format=%s", "main..runs/wf_b") == "wf_b: forked from wf_a (3 receipts adopted)\n"
    assert f"Hermes-Source: wf_a\nHermes-Commit: {tip}" in git(with_git, "log", "-1", "--format=%b", "runs/wf_b")
    assert git(with_git, "rev-parse", f"runs/wf_b:runs/{DAY}/wf_b/steps") == git(
        with_git, "rev-parse", f"runs/wf_a:runs/{DAY}/wf_a/steps"
    )
    git(with_git, "fsck", "--full", "--strict")
    with_git.close()


def test_a_link_is_no_receipt_to_adopt(tmp_path: Path) -> None:
    with_git = open_git(tmp_path)
    tip = recorded(with_git)
    foreign = as_link(with_git, tip)
    with pytest.raises(IntegrityError, match="not a plain file"):
        fork(with_git, foreign, ONE)
    with_git.close()


def as_link(ledger: GitLedger, tip: str) -> str:
    """The same run with its first step as a symbolic link, as somebody else might push it."""
    index = {"GIT_INDEX_FILE": str(ledger.path / "foreign-index")}
    path = f"runs/{DAY}/wf_a/{ONE}"
    git(ledger, "read-tree", tip, env=index)
    blob = git(ledger, "rev-parse", f"{tip}:{path}").strip()
    git(ledger, "update-index", "--cacheinfo", f"120000,{blob},{path}", env=index)
    tree = git(ledger, "write-tree", env=index).strip()
    who = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return git(ledger, "commit-tree", tree, "-p", tip, "-m", "x", env=who).strip()
