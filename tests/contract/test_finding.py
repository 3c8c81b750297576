"""One resolver for every command: what `RUN` and `RUN@KEY` mean (SEMANTICS §6), on both ledgers."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
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

from hermes_workflows.core.names import run_component
from hermes_workflows.core.receipts import Author
from hermes_workflows.errors import Conflict, IntegrityError, NotFound
from hermes_workflows.finding import Found, find
from hermes_workflows.store.commits import Commit
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.ports import Ledger
from hermes_workflows.store.repository import GENESIS


@pytest.fixture(params=["git", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = open_git(tmp_path) if request.param == "git" else MemoryLedger()
    yield made
    made.close()


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[GitLedger]:
    made = open_git(tmp_path)
    yield made
    made.close()


def found(ledger: Ledger, text: str) -> Found:
    def matching(prefix: str, limit: int) -> Sequence[str]:
        return [head.run_id for head in ledger.heads() if head.run_id.startswith(prefix)][:limit]

    return find(ledger, text, matching)


def paths(seen: Found) -> list[str]:
    return [receipt.path for receipt in seen.receipts]


def elsewhere(ledger: GitLedger, folder: Path, run_id: str) -> GitLedger:
    """Another workspace with one run, which `ledger` has fetched from the remote `origin`."""
    folder.mkdir()
    other = open_git(folder)
    start(other, run_id)
    record(other, run_id, step_draft("work"))
    fetch(ledger, other)
    return other


def fetch(ledger: GitLedger, other: GitLedger) -> None:
    runs, branches = "+refs/runs/*:refs/remotes/origin/runs/*", "+refs/heads/*:refs/remotes/origin/*"
    git(ledger, "fetch", "--quiet", str(other.path), runs, branches)
    other.close()


def test_an_exact_id_comes_before_the_beginning_of_another(ledger: Ledger) -> None:
    start(ledger, "wf")
    start(ledger, "wf_long")
    assert found(ledger, "wf").run_id == "wf"
    assert found(ledger, "wf_").run_id == "wf_long"


def test_the_beginning_of_several_ids_names_them(ledger: Ledger) -> None:
    start(ledger, "wf_a")
    start(ledger, "wf_b")
    with pytest.raises(Conflict, match=r"several runs begin with 'wf': wf_[ab], wf_[ab]"):
        found(ledger, "wf")


def test_an_unknown_run_gets_the_nearest_id(ledger: Ledger) -> None:
    start(ledger, "wf_launch")
    with pytest.raises(NotFound) as error:
        found(ledger, "wf_lunch")
    assert error.value.hint == "did you mean 'wf_launch'?"


def test_a_commit_is_the_run_as_it_was_then(ledger: Ledger) -> None:
    start(ledger)
    then = record(ledger, "wf_a", step_draft("one"), files={"README.md": b"one"}).head.tip
    record(ledger, "wf_a", step_draft("two"), files={"README.md": b"two"})
    for text in (then, then[:12], then[:12].upper()):
        seen = found(ledger, text)
        assert (seen.run_id, seen.head.tip, seen.commit) == ("wf_a", then, True)
        assert paths(seen) == ["run.json", "steps/one.json"]
    assert ledger.content(then, "README.md") == b"one"
    assert ledger.content(then, "steps/two.json") is None


@pytest.mark.parametrize("text", ["f" * 40, "f" * 7, GENESIS, GENESIS[:9]])
def test_what_is_no_commit_of_a_run_is_not_found(ledger: Ledger, text: str) -> None:
    start(ledger)
    with pytest.raises(NotFound, match="no commit of a run"):
        found(ledger, text)


def test_a_key_is_the_moment_after_its_result(ledger: Ledger) -> None:
    start(ledger)
    for key in ("one", "docs/two", "three"):
        record(ledger, "wf_a", step_draft(key))
    seen = found(ledger, "wf@docs/two")
    assert (seen.run_id, seen.key) == ("wf_a", "docs/two")
    assert paths(seen) == ["run.json", "steps/one.json", "steps/docs/two.json"]
    assert paths(found(ledger, "wf_a@steps/one.json")) == ["run.json", "steps/one.json"]


def test_a_question_without_an_answer_is_its_own_last_moment(ledger: Ledger) -> None:
    start(ledger)
    asked = request_draft("ok")
    record(ledger, "wf_a", asked)
    record(ledger, "wf_a", step_draft("beside"))
    assert paths(found(ledger, "wf_a@ok"))[-1] == "reviews/ok/request.json"
    record(ledger, "wf_a", response_draft("ok", asked))
    assert paths(found(ledger, "wf_a@ok"))[-1] == "reviews/ok/response.json"


def test_an_unknown_key_gets_the_nearest_one(ledger: Ledger) -> None:
    start(ledger)
    record(ledger, "wf_a", step_draft("research"))
    with pytest.raises(NotFound, match="run wf_a has no key 'reserch'") as error:
        found(ledger, "wf_a@reserch")
    assert error.value.hint == "did you mean 'research'?"


def test_a_seal_stands_for_the_run_it_sealed(repository: GitLedger) -> None:
    tip = finished(repository, "wf_a").head.tip
    repository.seal(keep=0)
    seal = git(repository, "rev-parse", "ledger").strip()
    for text in (seal, seal[:10], "wf_a"):
        seen = found(repository, text)
        assert (seen.run_id, seen.head.tip, seen.head.sealed) == ("wf_a", tip, True)


def alike(ledger: GitLedger, revision: str) -> list[str]:
    """Two commits of the same receipts, made at other times, whose ids begin with the same seven digits."""
    whole = git(ledger, "cat-file", "commit", revision).encode()
    met: dict[str, bytes] = {}
    for second in itertools.count(1_700_000_000):
        body = re.sub(rb"(?m)^(committer .*> )\d+", rb"\g<1>%d" % second, whole)
        begins = hashlib.sha1(b"commit %d\0" % len(body) + body).hexdigest()[:7]
        if (other := met.setdefault(begins, body)) is not body:
            with contextlib.closing(ledger.disk.barrier()) as barrier:
                return [ledger.objects.write(b"commit", each, barrier).hex() for each in (other, body)]
    raise AssertionError


def test_of_two_commits_that_begin_alike_more_has_to_be_written(repository: GitLedger) -> None:
    start(repository, "wf_a")
    one, two = alike(repository, "refs/runs/wf_a")
    with pytest.raises(Conflict, match=f"several commits begin with {one[:7]}") as refusal:
        found(repository, one[:7])
    assert all(each[:12] in refusal.value.message for each in (one, two))
    assert found(repository, one).head.tip == one


def test_a_merge_is_no_commit_of_a_run(repository: GitLedger) -> None:
    start(repository, "wf_a")
    start(repository, "wf_b")
    one = git(repository, "cat-file", "commit", "refs/runs/wf_a")
    other = git(repository, "rev-parse", "refs/runs/wf_b").strip()
    both = one.replace("\nauthor ", f"\nparent {other}\nauthor ", 1).encode()
    with contextlib.closing(repository.disk.barrier()) as barrier:
        merge = repository.objects.write(b"commit", both, barrier).hex()
    with pytest.raises(NotFound, match="no commit of a run"):
        found(repository, merge)


def test_commits_are_found_in_packs_too(repository: GitLedger) -> None:
    tip = finished(repository, "wf_a").head.tip
    git(repository, "gc", "--quiet")
    assert found(repository, tip[:8]).head.tip == tip


def test_a_fetched_run_is_named_with_its_remote(repository: GitLedger, tmp_path: Path) -> None:
    elsewhere(repository, tmp_path / "there", "WF_Far")
    for text in ("origin/WF_Far", "origin/WF"):
        seen = found(repository, text)
        assert (seen.run_id, seen.remote, seen.commit) == ("WF_Far", "origin", False)
        assert paths(seen) == ["run.json", "steps/work.json"]
    assert found(repository, seen.head.tip[:9]).run_id == "WF_Far"
    assert [head.run_id for head in repository.heads()] == []
    with pytest.raises(NotFound) as error:
        found(repository, "WF_Far")
    assert error.value.hint == "did you mean 'origin/WF_Far'?"


def test_a_run_in_a_fetched_ledger_is_found(repository: GitLedger, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    other = open_git(tmp_path / "there")
    tip = finished(other, "wf_far").head.tip
    other.seal(keep=0)
    git(other, "update-ref", f"refs/heads/ledger/{other.home}", "refs/heads/ledger", check=False)
    git(repository, "fetch", "--quiet", str(other.path), f"refs/heads/ledger:refs/remotes/origin/ledger/{other.home}")
    other.close()
    seen = found(repository, "origin/wf_far")
    assert (seen.head.tip, seen.head.sealed, seen.remote) == (tip, True, "origin")


def test_a_run_that_a_remote_has_under_several_refs_is_one(repository: GitLedger, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    other = open_git(tmp_path / "there")
    tip = finished(other, "wf_far").head.tip
    other.seal()
    for name in ("runs/wf_far", "run/wf_far", "ledger/there"):
        ref = "refs/heads/ledger" if name == "ledger/there" else "refs/runs/wf_far"
        git(repository, "fetch", "--quiet", str(other.path), f"{ref}:refs/remotes/origin/{name}")
    other.close()
    assert [(remote, head.run_id, head.tip) for remote, head in repository.fetched()] == [("origin", "wf_far", tip)]


def test_a_fetched_ledger_that_is_damaged_or_names_what_is_no_run_hides_nothing(
    repository: GitLedger, tmp_path: Path
) -> None:
    elsewhere(repository, tmp_path / "there", "wf_far")
    name = "\x1b[2Jgone"

    def put(kind: bytes, body: bytes) -> bytes:
        with contextlib.closing(repository.disk.barrier()) as barrier:
            return repository.objects.write(kind, body, barrier)

    tree = put(b"tree", b"100644 run.json\0" + put(b"blob", b"{}"))
    for folder in (run_component(name), DAY, "runs"):
        tree = put(b"tree", b"40000 %s\0" % folder.encode() + tree)
    who, genesis = Author("mallory"), bytes.fromhex(GENESIS)
    seal = put(b"commit", Commit(tree, (genesis, genesis), f"seal\n\nHermes-Run: {name}\n", who, who, 1).serialise())
    ledgers = repository.path / "refs/remotes/origin/ledger"
    ledgers.mkdir()
    (ledgers / "hostile").write_text(f"{seal.hex()}\n")
    (ledgers / "damaged").write_text(f"{'d' * 40}\n")
    assert [(remote, head.run_id) for remote, head in repository.fetched()] == [("origin", "wf_far")]


def test_a_fetched_ref_that_names_another_run_is_none(repository: GitLedger, tmp_path: Path) -> None:
    start(repository)
    tip = record(repository, "wf_a", end_draft()).head.tip
    git(repository, "update-ref", "refs/remotes/origin/runs/wf_b", tip)
    git(repository, "update-ref", "refs/remotes/origin/runs/wf_c", GENESIS)
    assert list(repository.fetched()) == []


def test_a_fetched_run_of_bottomless_folders_is_an_error_like_any_other(repository: GitLedger) -> None:
    start(repository)

    def put(kind: bytes, body: bytes) -> bytes:
        with contextlib.closing(repository.disk.barrier()) as barrier:
            return repository.objects.write(kind, body, barrier)

    tree = put(b"tree", b"100644 x.json\0" + put(b"blob", b"{}"))
    for name in [b"d"] * 3000 + [b"steps", b"wf_deep", DAY.encode(), b"runs"]:
        tree = put(b"tree", b"40000 %s\0" % name + tree)
    who = Author("mallory")
    tip = put(b"commit", Commit(tree, (), "deep\n", who, who, 1).serialise()).hex()
    with pytest.raises(IntegrityError, match="folders in folders"):
        repository.at(tip)
    git(repository, "update-ref", "refs/remotes/origin/runs/wf_deep", tip)
    with pytest.raises(IntegrityError, match="folders in folders"):
        found(repository, "origin/wf_deep")
