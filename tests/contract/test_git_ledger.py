"""What is true of the ledger because it is a git repository (FORMAT §1, §3, §6)."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.ledgers import (
    DAY,
    append,
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

from hermes_workflows.errors import IntegrityError, NotFound, StoreFailure
from hermes_workflows.store import peek
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Appended, Entry
from hermes_workflows.store.repository import GENESIS


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[GitLedger]:
    made = open_git(tmp_path)
    yield made
    assert git(made, "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


def a_whole_run(ledger: GitLedger, run_id: str = "wf_a") -> None:
    """One of each thing that a run may add."""
    start(ledger, run_id)
    asked = request_draft("ask")
    record(ledger, run_id, step_draft("fan/a", "x" * 70_000), step_draft("fan/b"), step_draft("tick-250"))
    record(ledger, run_id, asked, files={"README.md": b"# asked\n", "source/0123456789ab/flow.py": b"code\n"})
    record(ledger, run_id, response_draft("ask", asked))
    record(ledger, run_id, end_draft(), files={"README.md": b"# done\n"})


def test_the_genesis_commit_is_the_same_for_ever(ledger: GitLedger) -> None:
    assert GENESIS == "5a9177a7b9186b21ed7aaecafae83d28aaca53c9"
    assert git(ledger, "rev-parse", "main").strip() == GENESIS
    assert git(ledger, "rev-list", "--count", "main").strip() == "1"
    readme = git(ledger, "show", "main:README.md")
    assert (
        hashlib.sha256(readme.encode()).hexdigest()
        == "4a62dfd9991f4b82d189967ce81363bd0ed702f33867be6344de1e3cc7612f19"
    )
    assert git(ledger, "show", "main:.gitattributes") == "* -text\n*.json diff=receipt\n"


def test_every_run_starts_at_genesis_and_is_a_chain(ledger: GitLedger) -> None:
    a_whole_run(ledger)
    commits = git(ledger, "log", "--format=%H %P", "--reverse", "runs/wf_a").splitlines()
    assert commits[0] == GENESIS + " "
    assert [line.split()[1] for line in commits[1:]] == [line.split()[0] for line in commits[:-1]]


def test_a_run_adds_its_folder_and_leaves_genesis_alone(ledger: GitLedger) -> None:
    a_whole_run(ledger)
    assert git(ledger, "diff", "--name-status", "main", "runs/wf_a").split() == [
        word
        for name in [
            "README.md",
            f"artifacts/{hashlib.sha256(b'x' * 70_000).hexdigest()[:2]}/{hashlib.sha256(b'x' * 70_000).hexdigest()}",
            "result.json",
            "reviews/ask/request.json",
            "reviews/ask/response.json",
            "run.json",
            "source/0123456789ab/flow.py",
            "steps/fan/a.json",
            "steps/fan/b.json",
            "steps/tick-2xx/tick-250.json",
        ]
        for word in ("A", f"runs/{DAY}/wf_a/{name}")
    ]


def test_a_commit_says_what_it_adds(ledger: GitLedger) -> None:
    start(ledger)
    record(ledger, "wf_a", step_draft("research/docs", author="Ada Lovelace"))
    assert git(ledger, "log", "-1", "--format=%an|%cn|%B", "runs/wf_a").rstrip() == (
        "Ada Lovelace|runner|research/docs: completed (step work, 1.2 s)\n"
        "\n"
        "Hermes-Run: wf_a\n"
        "Hermes-Key: research/docs\n"
        "Hermes-Kind: step\n"
        "Hermes-Status: completed\n"
        "Hermes-Seq: 1"
    )


def test_several_receipts_share_one_commit_with_a_trailer_block_each(ledger: GitLedger) -> None:
    start(ledger)
    record(ledger, "wf_a", *(step_draft(f"a-rather-long-name-{n}") for n in range(12)))
    subject, *_ = message = git(ledger, "log", "-1", "--format=%B", "runs/wf_a").splitlines()
    assert subject.startswith("12 receipts: a-rather-long-name-0, a-rather-long-name-1")
    assert len(subject) == 72
    assert [line for line in message if line.startswith("Hermes-Seq")] == [f"Hermes-Seq: {n}" for n in range(1, 13)]


def test_text_of_others_cannot_forge_a_trailer_or_a_header(ledger: GitLedger) -> None:
    start(ledger)
    evil = "x\n\nHermes-Status: completed\r\u2028Hermes-Run: other\x00\u202e"
    with pytest.raises(IntegrityError, match="no call and no signal can have"):
        record(ledger, "wf_a", step_draft(evil, path="steps/x.json"))
    record(ledger, "wf_a", step_draft("x", author=f"Eve <e@x>\nparent {GENESIS}{evil}"))
    headers, message = git(ledger, "cat-file", "commit", "runs/wf_a").split("\n\n", 1)
    assert [line.split()[0] for line in headers.split("\n")] == ["tree", "parent", "author", "committer"]
    assert message.count("\nHermes-Status:") == message.count("\nHermes-Run:") == 1
    assert ledger.verify("wf_a") == []


def test_settings_of_the_machine_have_no_influence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = open_git(tmp_path)
    a_whole_run(clean)
    home, other = tmp_path / "home", tmp_path / "other"
    hook = home / "hooks" / "reference-transaction"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[commit]\ngpgsign=true\n[core]\nhooksPath={hook.parent}\nautocrlf=true\n[user]\nuseConfigOnly=true\n"
        f"[init]\ntemplateDir={hook.parent}\ndefaultBranch=x\ndefaultRefFormat=reftable\n"
    )
    git(tmp_path, "init", "-q", str(other))
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    monkeypatch.setenv("HOME", str(home))
    before = sorted(other.rglob("*"))
    (tmp_path / "beside").mkdir()
    disturbed = open_git(tmp_path / "beside")
    a_whole_run(disturbed)
    assert disturbed.head("wf_a") == clean.head("wf_a")
    assert disturbed.seal(keep=0) == 1
    assert peek.list_refs(disturbed.path, peek.RUNS) == {}
    assert sorted(other.rglob("*")) == before


def test_a_machine_without_a_git_identity_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nowhere"))
    ledger = open_git(tmp_path)
    a_whole_run(ledger)
    assert git(ledger, "log", "-1", "--format=%ae %ce", "runs/wf_a").split() == ["noreply@hermes-workflows.invalid"] * 2


def test_only_the_run_is_hidden_from_pushes(ledger: GitLedger, tmp_path: Path) -> None:
    a_whole_run(ledger)
    ledger.seal()
    tip = git(ledger, "rev-parse", "runs/wf_a").strip()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(ledger.path), str(clone))
    assert git(clone, "fetch", "-q", "origin", "refs/runs/*:refs/remotes/origin/runs/*") == ""
    for target in (f"{GENESIS}:refs/runs/wf_a", ":refs/runs/wf_a", f"+{GENESIS}:refs/heads/ledger"):
        assert "hidden ref" in git(clone, "push", "origin", target, check=False)
    assert git(clone, "push", "-q", "origin", f"{tip}:refs/heads/answer/wf_a") == ""
    assert "non-fast-forward" in git(clone, "push", "origin", f"+{GENESIS}:refs/heads/answer/wf_a", check=False)
    assert git(ledger, "rev-parse", "runs/wf_a").strip() == tip


def test_two_runs_that_did_the_same_differ_in_nothing_a_diff_shows(ledger: GitLedger) -> None:
    for number, run_id in enumerate(["wf_a", "wf_b"]):
        start(ledger, run_id)
        record(ledger, run_id, step_draft("one", {"x": [1, 2]}, runner=f"runner-{number}", attempt=number + 1))
        record(ledger, run_id, step_draft("two", "first\nsecond"), end_draft(output={"done": True}))
    folders = [f"runs/{run_id}:runs/{DAY}/{run_id}" for run_id in ("wf_a", "wf_b")]
    assert git(ledger, "diff", "--name-only", *folders) == "steps/one.json\n"
    assert not [
        line for line in git(ledger, "diff", *folders).splitlines() if line[:1] in "+-" and line[1:2] != line[0]
    ]


def test_a_diff_of_receipts_shows_what_was_done_and_not_how_long_it_took(ledger: GitLedger) -> None:
    start(ledger)
    record(ledger, "wf_a", step_draft("one", {"risk": "low"}, runner="r"))
    shown = git(ledger, "diff", "main", "runs/wf_a", "--", "*one.json")
    assert '+    "risk": "low"' in shown
    assert "execution" not in shown
    assert "duration" not in shown


TASKS = ("gc", "commit-graph", "loose-objects", "incremental-repack")


@pytest.mark.parametrize(
    "maintenance",
    [
        ["gc", "-q"],
        ["repack", "-adq"],
        ["pack-refs", "--all", "--prune"],
        ["maintenance", "run", *(f"--task={task}" for task in TASKS)],
    ],
)
def test_git_tidies_up_beside_a_writer(ledger: GitLedger, maintenance: list[str]) -> None:
    start(ledger)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(40):
                record(ledger, "wf_a", step_draft(f"s{number}"))
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        git(ledger, *maintenance, check=False)
    writer.join()
    assert failures == []
    fresh = open_git(ledger.path.parent)
    assert [receipt.seq for receipt in fresh.read("wf_a")[1]] == list(range(41))
    fresh.close()


def test_a_packed_run_is_read_and_continued(ledger: GitLedger) -> None:
    tip = start(ledger).head.tip
    record(ledger, "wf_a", step_draft("one"))
    git(ledger, "gc", "-q", "--prune=now")
    fresh = open_git(ledger.path.parent)
    assert not list((ledger.path / "objects").glob("[0-9a-f][0-9a-f]/*"))
    assert [receipt.key for receipt in fresh.read("wf_a", since=tip)[1]] == ["one"]
    assert record(fresh, "wf_a", step_draft("two")).receipts[0].seq == 2
    fresh.close()


def test_git_moving_a_run_between_our_look_and_our_write_is_seen(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    tree = git(ledger, "rev-parse", "runs/wf_a^{tree}").strip()
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    foreign = git(ledger, "commit-tree", tree, "-p", "runs/wf_a", "-m", "empty", env=identity).strip()
    barrier = ledger.disk.barrier

    def meddle() -> object:
        if git(ledger, "rev-parse", "runs/wf_a").strip() != foreign:
            git(ledger, "update-ref", "refs/runs/wf_a", foreign)
        return barrier()

    # The barrier is made after the lock is taken and before the tip is read; a second look must find the new tip.
    ledger.disk.barrier = meddle  # type: ignore[assignment,method-assign]
    outcome = record(ledger, "wf_a", step_draft("work"))
    assert (outcome.base, outcome.receipts[0].seq) == (foreign, 1)


def test_an_append_that_lost_to_git_is_made_again_on_top(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    tree = git(ledger, "rev-parse", "runs/wf_a^{tree}").strip()
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    foreign = git(ledger, "commit-tree", tree, "-p", "runs/wf_a", "-m", "empty", env=identity).strip()

    class Meddler:
        """Moves the ref after the plan was made and before it is carried out."""

        def hold(self, descriptor: int, folder: str) -> None:
            os.close(descriptor)

        def settle(self) -> None:
            git(ledger, "update-ref", "refs/runs/wf_a", foreign)

        def close(self) -> None: ...

    barriers = iter([Meddler(), ledger.disk.barrier()])
    ledger.disk.barrier = lambda: next(barriers)  # type: ignore[method-assign]
    outcome = record(ledger, "wf_a", step_draft("work"))
    assert (outcome.base, outcome.receipts[0].seq) == (foreign, 1)
    assert [receipt.key for receipt in ledger.read("wf_a")[1]] == ["", "work"]


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    finished(ledger, "wf_a")
    for name in ("wf_b", "wf_c"):
        start(ledger, name)
    (ledger.path / "refs/runs/wf_b").write_bytes(b"")
    (ledger.path / "refs/runs/wf_c").write_text("0123456789" * 4 + "\n")
    assert {head.run_id for head in ledger.heads()} == {"wf_a", "wf_b", "wf_c"}
    assert ledger.seal() == 1
    with pytest.raises(IntegrityError, match="refs/runs/wf_b holds no commit id"):
        ledger.read("wf_b")
    with pytest.raises(IntegrityError, match="object 0123456789012345678901234567890123456789 is missing"):
        ledger.read("wf_c")


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    tip = start(ledger).head.tip
    path = ledger.path / "objects" / tip[:2] / tip[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(IntegrityError, match=f"object {tip} is damaged"):
        open_git(tmp_path).read("wf_a")


def test_a_missing_repository_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no receipts repository at .*workflows\.git"):
        open_git(tmp_path, create=False)
    with pytest.raises(StoreFailure, match="cannot make the receipts repository"):
        open_git(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "bare", "work tree"])
def test_a_foreign_repository_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "workflows.git"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
        (path / "mine").write_text("mine")
    else:
        git(tmp_path, "init", "-q", *(["--bare"] if kind == "bare" else []), str(path))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(IntegrityError, match="is not a receipts repository of hermes-workflows"):
        open_git(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_each_workspace_has_an_id_of_its_own_that_no_object_holds(tmp_path: Path) -> None:
    homes = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ledger = open_git(tmp_path / name)
        homes.append(ledger.home)
        assert open_git(tmp_path / name).home == ledger.home == git(ledger, "config", "hermes.workspace").strip()
    assert homes[0] != homes[1]


def test_of_several_that_make_the_repository_one_wins(tmp_path: Path) -> None:
    homes: list[str] = []
    threads = [threading.Thread(target=lambda: homes.append(open_git(tmp_path).home)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 6
    assert len(set(homes)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["workflows.git"]


def test_a_full_disk_acknowledges_nothing_and_is_no_lasting_damage(ledger: GitLedger) -> None:
    start(ledger)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, hard))
    try:
        with pytest.raises(StoreFailure, match="cannot write to"):
            append(ledger, Entry("wf_a", (step_draft("work"),)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(ledger.read("wf_a")[1]) == 1
    assert isinstance(append(ledger, Entry("wf_a", (step_draft("work"),))), Appended)


def test_a_fresh_process_continues_where_another_one_stopped(ledger: GitLedger) -> None:
    start(ledger)
    record(ledger, "wf_a", step_draft("one"), step_draft("two"))
    record(ledger, "wf_a", files={"README.md": b"no receipt in this commit"})
    fresh = open_git(ledger.path.parent)
    assert record(fresh, "wf_a", step_draft("three")).receipts[0].seq == 3
    assert record(ledger, "wf_a", step_draft("four")).receipts[0].seq == 4


def test_a_stamp_tells_whether_any_ref_moved(ledger: GitLedger) -> None:
    seen = {peek.stamp(ledger.path)}
    start(ledger)
    for number in range(50):
        seen.add(peek.stamp(ledger.path))
        record(ledger, "wf_a", step_draft(f"s{number}"))
    assert len(seen) == 51
    still = peek.stamp(ledger.path)
    ledger.read("wf_a")
    list(ledger.heads())
    assert peek.stamp(ledger.path) == still
    record(ledger, "wf_a", end_draft())
    for change in (lambda: git(ledger, "pack-refs", "--all"), ledger.seal, lambda: ledger.seal(keep=0)):
        before = peek.stamp(ledger.path)
        change()
        assert peek.stamp(ledger.path) != before


def test_two_moves_within_one_tick_of_the_clock_have_two_stamps(ledger: GitLedger) -> None:
    runs = ledger.path / "refs/runs"
    stamps = set()
    for _ in range(3):
        os.utime(runs, ns=(10**18, 10**18))
        ledger._refs._publish(str(runs))
        stamps.add(peek.stamp(ledger.path))
    assert len(stamps) == 3


def test_looking_at_a_ref_loads_neither_dulwich_nor_pydantic(ledger: GitLedger) -> None:
    head = start(ledger).head
    code = (
        "import sys, pathlib, hermes_workflows.store.peek as peek\n"
        "print(peek.read_ref(pathlib.Path(sys.argv[1]), 'refs/runs/wf_a'), {'dulwich', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ledger.path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split("\n")[0] == f"{head.tip} set()"


def test_a_ledger_that_nobody_closed_leaves_without_a_word(ledger: GitLedger) -> None:
    start(ledger)
    git(ledger, "gc", "-q", "--prune=now")
    code = (
        "import sys, pathlib; from tests.contract.ledgers import open_git\n"
        "ledger = open_git(pathlib.Path(sys.argv[1])); print(len(ledger.read('wf_a')[1]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(ledger.path.parent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
