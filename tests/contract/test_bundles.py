"""Runs in files: what a bundle takes along, and what is let in from one (SEMANTICS §1)."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.exchanging import WITHOUT_GIT, bundle, desk, run, store, whole_run
from tests.contract.ledgers import (
    DAY,
    NOON,
    git,
    record,
    request_draft,
    step_draft,
)
from tests.contract.remotes import ENVIRONMENT, SOMEBODY, add_remote, bare, refs_of
from tests.contract.test_bursts_interrupted import before

from hermes_workflows import exchange
from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Author, Execution, Provenance, RunRequest, RunStarted, draft
from hermes_workflows.errors import (
    Conflict,
    HermesError,
    IntegrityError,
    InvalidInput,
    NotFound,
    StoreFailure,
    TemporarilyLocked,
)
from hermes_workflows.review.resolving import Resolution
from hermes_workflows.store import git_binary
from hermes_workflows.store.bundles import read_header
from hermes_workflows.store.ports import Entry
from hermes_workflows.store.quarantine import Quarantine
from hermes_workflows.store.repository import GENESIS
from hermes_workflows.workspace import Workspace


@pytest.fixture(params=["git", "dulwich"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    return ENVIRONMENT if request.param == "git" else WITHOUT_GIT


@pytest.fixture
def ours(tmp_path: Path, environment: dict[str, str]) -> Iterator[Workspace]:
    made = desk(tmp_path, "ours", environment)
    yield made
    assert git(store(made), "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


@pytest.fixture
def theirs(tmp_path: Path, environment: dict[str, str]) -> Iterator[Workspace]:
    made = desk(tmp_path, "theirs", environment)
    yield made
    made.close()


@pytest.fixture
def hub(tmp_path: Path, ours: Workspace, theirs: Workspace) -> Path:
    made = bare(tmp_path)
    add_remote(store(ours), made)
    add_remote(store(theirs), made)
    return made


def test_a_bundle_imported_elsewhere_is_the_same_run(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    (arrived,) = exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    assert (arrived.head.tip, arrived.home, arrived.new) == (tip, theirs.ledger.home, True)
    assert ours.ledger.read("wf_a")[1] == theirs.ledger.read("wf_a")[1]
    assert ours.verify("wf_a") == {"wf_a": []}
    assert ours.summary("wf_a").home == theirs.ledger.home


def test_an_imported_run_that_goes_on_is_not_executed_here(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    run(theirs, "wf_a", step_draft("one"))
    exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    assert [summary.run_id for summary in ours.runs()] == ["wf_a"]
    assert ours.queue.work() == []


def test_nobody_answers_for_an_imported_run_but_its_own_workspace(
    ours: Workspace, theirs: Workspace, tmp_path: Path
) -> None:
    tip = run(theirs, "wf_a", request_draft("ask"))
    assert [row.key for row in theirs.reviews()] == ["ask"]
    exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    assert ours.reviews() == []
    ada = Provenance(kind="human", by="ada", channel="cli")
    for attempt in (
        lambda: ours.answer("wf_a", "ask", "yes", ada),
        lambda: ours.control("wf_a", "cancel", by=ada),
        lambda: ours.control("wf_a", "pause", by=ada),
        lambda: ours.signal("wf_a", "go", None, ada),
        lambda: ours.resolve_step(Resolution("wf_a", "key", happened=True, by=ada, at=NOON)),
    ):
        with pytest.raises(Conflict, match="belongs to workspace"):
            attempt()
    assert refs_of(store(ours))["refs/runs/wf_a"] == tip
    ours.rebuild_index()
    assert ours.reviews() == []
    state = ours.state("wf_a")
    assert (state.state, state.next_action) == (
        "running",
        "hermes-workflows fork wf_a --id NEW makes a run of your own of it",
    )


def test_a_run_that_names_no_workspace_is_refused(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    execution = Execution(started_at=NOON)
    request = RunRequest(workflow="module:function", input={"topic": "launch"})
    started = draft(RunStarted(key="", request=request, execution=execution, path=layout.RUN), Author("starter"))
    theirs.ledger.create(Entry("wf_a", (started,)), DAY)
    with pytest.raises(IntegrityError, match="which workspace it belongs to"):
        exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))


def test_a_sealed_and_a_fetched_run_are_exported_as_well(
    ours: Workspace, theirs: Workspace, hub: Path, tmp_path: Path
) -> None:
    tip = whole_run(theirs)
    theirs.ledger.seal(keep=0)
    exchange.push(theirs)
    exchange.fetch(ours)
    third = desk(tmp_path, "third")
    (arrived,) = exchange.import_bundle(third, bundle(ours, "origin/wf_a", tmp_path / "a.bundle"))
    assert arrived.head.tip == tip
    (again,) = exchange.import_bundle(third, bundle(theirs, "wf_a", tmp_path / "b.bundle"))
    assert not again.new


def test_plain_git_clones_a_bundle_and_has_the_run_checked_out(theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    git(tmp_path, "clone", "--quiet", str(file), "clone")
    assert git(tmp_path / "clone", "rev-parse", "HEAD", "--abbrev-ref", "HEAD").split() == [tip, "run/wf_a"]
    assert (tmp_path / "clone" / "runs" / DAY / "wf_a" / "result.json").is_file()


def test_a_bundle_that_plain_git_made_is_taken(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    git(store(theirs), "bundle", "create", str(tmp_path / "a.bundle"), "refs/runs/wf_a", "main")
    git(store(theirs), "bundle", "create", "--version=3", str(tmp_path / "b.bundle"), f"{GENESIS}..refs/runs/wf_a")
    assert [one.head.tip for one in exchange.import_bundle(ours, tmp_path / "a.bundle")] == [tip]
    assert not exchange.import_bundle(ours, tmp_path / "b.bundle")[0].new


def test_a_later_export_takes_an_imported_run_forwards(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    run(theirs, "wf_a")
    early = bundle(theirs, "wf_a", tmp_path / "early.bundle")
    tip = record(theirs.ledger, "wf_a", step_draft("one")).head.tip
    late = bundle(theirs, "wf_a", tmp_path / "late.bundle")
    for file, new in ((early, True), (late, True), (early, False)):
        assert [one.new for one in exchange.import_bundle(ours, file)] == [new]
    head = ours.ledger.head("wf_a")
    assert head
    assert head.tip == tip


@pytest.mark.parametrize("moment", ["looked at", "given its ref"])
def test_a_run_that_somebody_brings_in_while_it_arrives_is_no_news_and_no_loss(
    ours: Workspace, theirs: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    tip = run(theirs, "wf_a", step_draft("one"))
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    owner, name = (store(ours), "_refuse_existing") if moment == "looked at" else (store(ours)._refs, "move")
    wanted = "refs/runs/wf_a:refs/runs/wf_a"
    before(monkeypatch, owner, name, lambda: git(store(ours), "fetch", "-q", str(store(theirs).path), wanted))
    if moment == "given its ref":
        with pytest.raises(TemporarilyLocked, match="wf_a was moved meanwhile"):
            exchange.import_bundle(ours, file)
    (arrived,) = exchange.import_bundle(ours, file)
    assert (arrived.new, refs_of(store(ours))["refs/runs/wf_a"]) == (False, tip)


def test_another_run_of_the_same_name_is_refused(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = run(ours, "wf_a")
    whole_run(theirs, "wf_a")
    run(theirs, "WF_A2")
    run(ours, "wf_a2")
    for name in ("wf_a", "WF_A2"):
        before = refs_of(store(ours))
        with pytest.raises(Conflict):
            exchange.import_bundle(ours, bundle(theirs, name, tmp_path / f"{name}.bundle"))
        assert refs_of(store(ours)) == before
    assert before["refs/runs/wf_a"] == tip


def test_one_file_brings_no_two_runs_of_one_name(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    third = desk(tmp_path, "third")
    for workspace in (theirs, third):
        run(workspace, "wf_a")
    git(store(theirs), "fetch", "-q", str(store(third).path), "refs/runs/wf_a:refs/heads/run/wf_a")
    git(store(theirs), "bundle", "create", str(tmp_path / "two.bundle"), "refs/runs/wf_a", "refs/heads/run/wf_a")
    with pytest.raises(Conflict, match="came as two runs"):
        exchange.import_bundle(ours, tmp_path / "two.bundle")
    assert refs_of(store(ours)) == {"refs/heads/main": GENESIS}


def test_a_bundle_that_plain_git_made_of_several_runs_brings_them_all(
    ours: Workspace, theirs: Workspace, tmp_path: Path
) -> None:
    tips = {name: run(theirs, name, step_draft("one")) for name in ("wf_a", "wf_b")}
    git(store(theirs), "bundle", "create", str(tmp_path / "all.bundle"), "--glob=refs/runs/*")
    arrived = exchange.import_bundle(ours, tmp_path / "all.bundle")
    assert {one.head.run_id: one.head.tip for one in arrived if one.new} == tips
    assert sorted(summary.run_id for summary in ours.runs()) == ["wf_a", "wf_b"]


@pytest.mark.parametrize("newest_last", [True, False])
def test_of_two_moments_of_a_run_in_one_file_the_later_one_stays(
    ours: Workspace, theirs: Workspace, tmp_path: Path, newest_last: bool
) -> None:
    older = run(theirs, "wf_a")
    newest = record(theirs.ledger, "wf_a", step_draft("one")).head.tip
    # git lists refs by their names.
    for name, tip in (("run/1", (newest, older)[newest_last]), ("run/2", (older, newest)[newest_last])):
        git(store(theirs), "update-ref", f"refs/heads/{name}", tip)
    git(store(theirs), "bundle", "create", str(tmp_path / "two.bundle"), "--glob=refs/heads/run/*")
    exchange.import_bundle(ours, tmp_path / "two.bundle")
    assert refs_of(store(ours))["refs/runs/wf_a"] == newest


def test_a_run_that_says_it_is_ours_is_not_taken_for_it(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    """Our runners would go on with it, and the id of a workspace is no secret."""
    run(theirs, "wf_a", home=ours.ledger.home)
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    with pytest.raises(Conflict, match="says that it belongs to this workspace"):
        exchange.import_bundle(ours, file)
    assert refs_of(store(ours)) == {"refs/heads/main": GENESIS}


def test_a_continuation_of_ours_that_we_did_not_make_is_refused(
    ours: Workspace, theirs: Workspace, tmp_path: Path
) -> None:
    tip = run(ours, "wf_a")
    git(store(theirs), "fetch", str(store(ours).path), "refs/runs/wf_a:refs/runs/wf_a")
    record(theirs.ledger, "wf_a", step_draft("one"))
    with pytest.raises(Conflict, match="has not made"):
        exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    assert refs_of(store(ours))["refs/runs/wf_a"] == tip


def forged_run(theirs: Workspace, file: Path) -> Path:
    """A run one of whose receipts was changed by a later commit."""
    tip = whole_run(theirs)
    ledger = store(theirs)
    index = {**SOMEBODY, "GIT_INDEX_FILE": str(file.with_suffix(".index"))}
    git(ledger, "read-tree", tip, env=index)
    readme = git(ledger, "rev-parse", f"{GENESIS}:README.md").strip()
    git(ledger, "update-index", "--cacheinfo", f"100644,{readme},runs/{DAY}/wf_a/result.json", env=index)
    tree = git(ledger, "write-tree", env=index).strip()
    forged = git(ledger, "commit-tree", "-m", "forged", "-p", tip, tree, env=index).strip()
    git(ledger, "update-ref", "refs/runs/wf_a", forged)
    git(ledger, "bundle", "create", str(file), "refs/runs/wf_a")
    return file


def test_a_tampered_run_is_refused_with_its_first_bad_commit(
    ours: Workspace, theirs: Workspace, tmp_path: Path
) -> None:
    file = forged_run(theirs, tmp_path / "forged.bundle")
    with pytest.raises(IntegrityError, match=r"wf_a is not what a workspace records: [0-9a-f]{12}"):
        exchange.import_bundle(ours, file)
    assert refs_of(store(ours)) == {"refs/heads/main": GENESIS}
    assert not list((store(ours).path / "hermes" / "arriving").iterdir())
    assert not list((store(ours).path / "objects" / "pack").iterdir())


@pytest.mark.parametrize("cut", [10, 60, 300, 2_000, -1])
def test_a_bundle_that_is_cut_off_is_refused(ours: Workspace, theirs: Workspace, tmp_path: Path, cut: int) -> None:
    whole_run(theirs)
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises((InvalidInput, IntegrityError)):
        exchange.import_bundle(ours, file)
    assert refs_of(store(ours)) == {"refs/heads/main": GENESIS}


def test_any_changed_byte_of_a_bundles_pack_is_found(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    run(theirs, "wf_a")
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    data = file.read_bytes()
    begin = data.index(b"PACK")
    for position in range(begin, len(data), max((len(data) - begin) // 12, 1)):
        file.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        with pytest.raises(HermesError):
            exchange.import_bundle(ours, file)
    assert ours.runs() == []


def test_a_pack_with_a_hole_is_refused(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    path = store(theirs).path
    hole = git(store(theirs), "rev-parse", f"{tip}:runs/{DAY}/wf_a/steps/a.json").strip()
    names = [line[:40] for line in git(store(theirs), "rev-list", "--objects", tip).splitlines()]
    wanted = "\n".join(name for name in names if name != hole).encode()
    command = ["git", "-C", str(path), "pack-objects", "--stdout", "-q"]
    pack = subprocess.run(command, input=wanted, capture_output=True, check=True).stdout
    with Quarantine(store(ours).path, store(ours).disk, git_binary.find(ours.environment)) as quarantine:
        (tmp_path / "pack").write_bytes(pack)
        with open(tmp_path / "pack", "rb") as file, pytest.raises(IntegrityError, match="no sound pack"):
            quarantine.take(file)


def test_no_repack_takes_away_what_has_just_come(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    file = bundle(theirs, "wf_a", tmp_path / "a.bundle")
    ledger = store(ours)
    with open(file, "rb") as opened, Quarantine(ledger.path, ledger.disk, git_binary.find(ENVIRONMENT)) as quarantine:
        read_header(opened, "a.bundle")
        quarantine.take(opened)
        quarantine.admit()
        git(ledger, "repack", "-a", "-d", "-q")
        git(ledger, "prune", "--expire=now")
        ledger.accept(tip)
    assert ours.verify("wf_a") == {"wf_a": []}
    assert not list((ledger.path / "objects" / "pack").glob("*.keep"))


def test_what_a_killed_import_left_is_swept_by_a_later_one(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    run(theirs, "wf_a")
    arriving = store(ours).path / "hermes" / "arriving"
    for name, age in (("dead", 100_000), ("living", 1_000)):
        (arriving / name).mkdir(parents=True)
        moment = tmp_path.stat().st_mtime - age
        os.utime(arriving / name, (moment, moment))
    packs = store(ours).path / "objects" / "pack"
    for name, mark in (("dead", "arriving in hermes-workflows\n"), ("somebodys", "")):
        (packs / f"{name}.keep").write_text(mark)
        os.utime(packs / f"{name}.keep", (moment - 100_000, moment - 100_000))
    exchange.import_bundle(ours, bundle(theirs, "wf_a", tmp_path / "a.bundle"))
    assert [path.name for path in arriving.iterdir()] == ["living"]
    assert [path.name for path in packs.glob("*.keep")] == ["somebodys.keep"]


def test_a_bundle_without_its_beginning_is_refused(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    tip = whole_run(theirs)
    git(store(theirs), "bundle", "create", str(tmp_path / "a.bundle"), f"{tip}~2..refs/runs/wf_a")
    with pytest.raises(IntegrityError):
        exchange.import_bundle(ours, tmp_path / "a.bundle")


@pytest.mark.parametrize("git_says", ["fatal: write error: No space left on device", None])
def test_a_full_disk_is_no_fault_of_the_pack(ours: Workspace, tmp_path: Path, git_says: str | None) -> None:
    pack, program = tmp_path / "pack", tmp_path / "git"
    pack.write_bytes(b"PACK")
    program.write_text(f"#!/bin/sh\necho '{git_says}' >&2\nexit 128\n")
    program.chmod(0o755)
    arriving = Quarantine(store(ours).path, store(ours).disk, git_says and str(program))
    with open(pack, "rb") as file, arriving, pytest.raises(StoreFailure, match="No space left"):
        arriving.take(file if git_says else _Failing(errno.ENOSPC))


class _Failing(io.BytesIO):
    """A file on a disk that fails; also what reading ends in when dulwich cannot write what it has read."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def read(self, _: int | None = -1) -> bytes:
        raise OSError(self._code, os.strerror(self._code))


def test_a_file_whose_end_cannot_be_read_lets_nothing_in(ours: Workspace) -> None:
    with (
        Quarantine(store(ours).path, store(ours).disk) as arriving,
        pytest.raises(IntegrityError, match="Input/output error"),
    ):
        arriving.take(_Failing(errno.EIO))
    assert not list((store(ours).path / "objects" / "pack").iterdir())


def test_what_is_no_bundle_is_named(ours: Workspace, theirs: Workspace, tmp_path: Path) -> None:
    whole_run(theirs)
    exchange.export_tar(theirs, theirs.find("wf_a"), tmp_path / "a.tar")
    with pytest.raises(InvalidInput, match="no git bundle"):
        exchange.import_bundle(ours, tmp_path / "a.tar")
    git(store(theirs), "bundle", "create", str(tmp_path / "main.bundle"), "main")
    with pytest.raises(InvalidInput, match="holds no run"):
        exchange.import_bundle(ours, tmp_path / "main.bundle")
    with pytest.raises(NotFound, match="no file"):
        exchange.import_bundle(ours, tmp_path / "nothing.bundle")


def test_a_link_that_somebody_put_among_the_receipts_is_in_no_tar(theirs: Workspace, tmp_path: Path) -> None:
    tip = run(theirs, "wf_a")
    index = {**SOMEBODY, "GIT_INDEX_FILE": str(tmp_path / "index")}
    git(store(theirs), "read-tree", tip, env=index)
    target = git(store(theirs), "rev-parse", f"{GENESIS}:README.md").strip()
    git(store(theirs), "update-index", "--add", "--cacheinfo", f"120000,{target},runs/{DAY}/wf_a/link", env=index)
    tree = git(store(theirs), "write-tree", env=index).strip()
    git(
        store(theirs),
        "update-ref",
        "refs/runs/wf_a",
        git(store(theirs), "commit-tree", "-m", "linked", "-p", tip, tree, env=index).strip(),
    )
    linked = store(theirs).head("wf_a")
    assert linked
    with pytest.raises(IntegrityError, match="link is no plain file"):
        store(theirs).write_tar(linked, tmp_path / "a.tar")
    assert not list(tmp_path.glob("*.tar*"))


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz"])
def test_a_tar_holds_the_files_of_the_run(theirs: Workspace, tmp_path: Path, name: str) -> None:
    tip = whole_run(theirs)
    count = exchange.export_tar(theirs, theirs.find("wf_a"), tmp_path / name)
    with tarfile.open(tmp_path / name) as archive:
        files = {entry.name: archive.extractfile(entry) for entry in archive.getmembers()}
        assert archive.pax_headers["comment"] == tip
        result = files["wf_a/result.json"]
        assert result
        assert result.read() == theirs.ledger.file("wf_a", "result.json")
    listed = git(store(theirs), "ls-tree", "-r", "--name-only", f"{tip}:runs/{DAY}/wf_a").splitlines()
    assert sorted(files) == [f"wf_a/{path}" for path in listed]
    assert count == len(files)


def test_an_export_overwrites_nothing_and_leaves_nothing_half_written(theirs: Workspace, tmp_path: Path) -> None:
    whole_run(theirs)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.bundle").write_text("precious")
    with pytest.raises(Conflict, match="there already"):
        bundle(theirs, "wf_a", tmp_path / "out" / "a.bundle")
    with pytest.raises(HermesError):
        bundle(theirs, "wf_a", tmp_path / "nowhere" / "a.bundle")
    with pytest.raises(InvalidInput, match="exported whole"):
        bundle(theirs, "wf_a@a", tmp_path / "out" / "b.bundle")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.bundle"]
