"""Places and remotes that are other than they should be: told in one error that says which, and nothing is harmed."""

from __future__ import annotations

import errno
import io
import itertools
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob, Tag
from tests.contract.forging import told
from tests.contract.ledgers import finished, git, open_git, record, start, step_draft
from tests.contract.remotes import SOMEBODY, bare, reach, refs_of, workspace

from hermes_workflows.errors import (
    Conflict,
    HermesError,
    IntegrityError,
    InvalidInput,
    NotFound,
    RemoteFailure,
    StoreFailure,
)
from hermes_workflows.store import (
    bundles,
    dulwich_transport,
    git_binary,
    git_transport,
    memory_ledger,
    peek,
    quarantine,
    reaching,
    remotes,
    repository,
    texts,
)
from hermes_workflows.store.admission import Recorded
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.peek import LEDGER
from hermes_workflows.store.project import commit_of
from hermes_workflows.store.secret_key import secret_key

# -- repositories that are none ----------------------------------------------------------------------------------


def test_a_file_where_the_repository_belongs_is_named(tmp_path: Path) -> None:
    (tmp_path / "workflows.git").write_text("a file")
    with pytest.raises(HermesError, match="it is a file"):
        open_git(tmp_path)


def test_a_repository_without_a_main_branch_is_somebody_elses(tmp_path: Path) -> None:
    path = bare(tmp_path, "workflows.git")
    git(path, "config", "hermes.workspace", "ws-1")
    with pytest.raises(HermesError, match="it has no branch main"):
        open_git(tmp_path)


def test_a_repository_whose_settings_cannot_be_read_is_no_foreign_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_git(tmp_path)
    (ledger.path / "config").unlink()
    (ledger.path / "config").mkdir()
    with pytest.raises(StoreFailure, match="Is a directory"):
        repository.workspace_id(ledger.path)


def test_a_setting_without_a_value_is_none(tmp_path: Path) -> None:
    assert repository._setting("[hermes]\n\tother = 1\n[core]\n\tworkspace = no\n", "hermes", "workspace") is None
    assert repository._setting('[hermes]\n\tworkspace = "ws-1"\n', "hermes", "workspace") == "ws-1"


def test_a_new_repository_takes_no_folder_from_anybody(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (tmp_path / "theirs").write_text("a file")
    with pytest.raises(NotADirectoryError):
        repository._rename_new(made, tmp_path / "theirs")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    repository._rename_new(made, tmp_path / "full")
    assert made.is_dir()


# -- projects ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"\xff\xfe", b"ref: ../../etc/passwd", b"no commit"])
def test_a_head_that_says_nothing_is_no_commit(tmp_path: Path, head: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head)
    assert commit_of(tmp_path) is None


# -- keys --------------------------------------------------------------------------------------------------------


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "private" / "key"
    made = secret_key(file)
    assert (len(made), secret_key(file)) == (32, made)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (file.parent / ".gitignore").read_text() == "*\n"
    assert [each.name for each in file.parent.iterdir() if each.name.startswith(".key")] == []
    file.unlink()
    assert secret_key(file) != made


def test_a_key_that_others_may_have_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    secret_key(file)
    file.chmod(0o640)
    with pytest.raises(InvalidInput, match="others may have read"):
        secret_key(file)
    file.chmod(0o600)
    file.write_bytes(b"short")
    with pytest.raises(InvalidInput, match="is no key of 32 bytes"):
        secret_key(file)


def test_a_link_is_no_place_for_a_key(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "theirs")
    with pytest.raises(StoreFailure, match="symbolic links"):
        secret_key(tmp_path / "key")
    assert not (tmp_path / "theirs").exists()


def test_a_key_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailure):
        secret_key(tmp_path / "file" / "key")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreFailure, match="gone/key: File exists"):
        secret_key(tmp_path / "gone" / "key")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "key").mkdir()
    with pytest.raises(HermesError):
        secret_key(tmp_path / "folder" / "key")


def test_of_two_that_make_a_key_at_once_both_have_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, real = tmp_path / "key", os.link

    def slower(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "link", real)
        first.append(secret_key(file))
        real(source, target)

    first: list[bytes] = []
    monkeypatch.setattr(os, "link", slower)
    assert [secret_key(file)] == first


# -- remotes -----------------------------------------------------------------------------------------------------


def test_a_remote_without_an_address_or_with_an_odd_name_is_named(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    git(ledger, "config", "remote.origin.fetch", "+refs/*:refs/*")
    with pytest.raises(InvalidInput, match="has no url"):
        remotes.find_remote(ledger.path)
    git(ledger, "config", "remote.a/b.url", "/somewhere")
    assert remotes.remote_names(ledger.path) == ["a/b", "origin"]
    with pytest.raises(InvalidInput, match="cannot stand before a run's id"):
        remotes.find_remote(ledger.path, "a/b")


def test_what_is_gone_is_forgotten_without_git_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = workspace(tmp_path, "ours", bare(tmp_path))
    tip = start(ledger).head.tip
    git(ledger, "update-ref", "refs/remotes/origin/runs/wf_gone", tip)
    monkeypatch.setattr(git_binary, "delete_refs", lambda path, refs: False)
    remotes.prune(ledger.path, remotes.find_remote(ledger.path), {})
    assert refs_of(ledger, "refs/remotes") == {}


def test_a_remote_that_keeps_git_waiting_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = workspace(tmp_path, "ours", bare(tmp_path))
    monkeypatch.setattr(git_transport, "_SECONDS", 0.0)
    with pytest.raises(RemoteFailure, match="has kept git waiting for 0 s"):
        reach(ledger, "git").refs()


@pytest.mark.parametrize("kind", ["git", "dulwich"])
def test_a_ref_cannot_be_replaced_where_there_is_no_repository(tmp_path: Path, kind: str) -> None:
    ledger = workspace(tmp_path, "ours", tmp_path / "none.git")
    tip = start(ledger).head.tip
    with pytest.raises(HermesError):
        reach(ledger, kind).replace("refs/heads/run/wf_a", "0" * 40, tip)


def test_a_workspaces_own_store_lets_nothing_be_replaced(tmp_path: Path) -> None:
    other = workspace(tmp_path, "other")
    ledger = workspace(tmp_path, "ours", other.path)
    tip = start(ledger).head.tip
    assert reach(ledger, "dulwich").replace("refs/heads/run/wf_a", tip, tip)


def test_a_remote_that_does_not_send_what_it_has_is_told(tmp_path: Path) -> None:
    ledger = workspace(tmp_path, "ours", bare(tmp_path))
    transport = reach(ledger, "dulwich")
    assert isinstance(transport, dulwich_transport.DulwichTransport)
    with pytest.raises(IntegrityError, match="did not send"):
        transport._check_sent({"refs/remotes/origin/runs/wf_a": "c" * 40})


def test_an_error_of_a_package_that_nobody_here_knows_is_one_of_the_remote(tmp_path: Path) -> None:
    ledger = workspace(tmp_path, "ours", bare(tmp_path))
    transport: Any = reach(ledger, "dulwich")
    with pytest.raises(HermesError, match="origin"), transport._talking(transport._remote.url):
        raise RuntimeError("urllib3 says no")
    with pytest.raises(KeyboardInterrupt), transport._talking(transport._remote.url):
        raise KeyboardInterrupt


def test_a_commit_that_is_not_here_leads_nowhere(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    tip = start(ledger).head.tip
    assert reaching.leads_to(ledger.path, tip, tip)
    assert not reaching.leads_to(ledger.path, "c" * 40, tip)


def test_what_a_tag_names_comes_with_it() -> None:
    blob = Blob.from_string(b"x")
    tag = Tag()
    tag.name, tag.object = b"v1", (Blob, blob.id)
    tag.tagger, tag.tag_time, tag.tag_timezone, tag.message = b"a <a>", 1, 0, b"m"
    assert quarantine._links(tag) == [blob.id]
    assert quarantine._links(blob) == []


# -- bundles and tars --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        b"# v2 git bundle\n" + (b"a" * 40 + b" refs/runs/wf_a\n") * 200_000 + b"\nPACK",
        b"# v3 git bundle\n@object-format=sha256\n\n",
        b"# v3 git bundle\n@filter=blob:none\n\n",
        b"# v2 git bundle\n",
    ],
)
def test_a_header_without_an_end_or_of_another_format_is_no_bundles(header: bytes) -> None:
    with pytest.raises(InvalidInput, match="has a header that is not a bundle's"):
        bundles.read_header(io.BytesIO(header), "x.bundle")


def test_a_header_names_its_format_and_what_it_takes_for_granted() -> None:
    lines = [b"# v3 git bundle", b"@object-format=sha1", b"-" + b"b" * 40 + b" before", b"a" * 40 + b" refs/runs/wf_a"]
    header = bundles.read_header(io.BytesIO(b"\n".join([*lines, b"", b"PACK"])), "x.bundle")
    assert header.refs == {"refs/runs/wf_a": "a" * 40}


@pytest.mark.parametrize("program", [True, False], ids=["git", "dulwich"])
def test_a_run_that_lacks_an_object_is_packed_by_nobody(tmp_path: Path, program: bool) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    head = record(ledger, "wf_a", step_draft("a")).head
    blob = git(ledger, "rev-parse", f"{head.tip}:{head.folder}/steps/a.json").strip()
    (ledger.path / "objects" / blob[:2] / blob[2:]).unlink()
    git_program = git_binary.find(os.environ) if program else None
    with pytest.raises(IntegrityError, match="cannot be packed"):
        bundles.write_bundle(ledger.path, head, tmp_path / "x.bundle", git_program)
    assert not (tmp_path / "x.bundle").exists()


def test_a_tar_has_a_name_that_tars_have(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    head = start(ledger).head
    with pytest.raises(InvalidInput, match="is no name of a tar"):
        bundles.write_tar(ledger._snapshots, head, tmp_path / "x.zip")
    assert list(tmp_path.glob("x.zip*")) == []


# -- values ------------------------------------------------------------------------------------------------------


def test_what_no_receipt_holds_no_row_holds_either() -> None:
    with pytest.raises(TypeError, match="object is no value of a receipt"):
        texts.dump({"x": object()})


# -- seals -------------------------------------------------------------------------------------------------------


@pytest.fixture
def sealed(tmp_path: Path) -> Any:
    ledger = open_git(tmp_path)
    for run_id in ("wf_a", "wf_b"):
        finished(ledger, run_id)
    ledger.seal(keep=0)
    start(ledger, "wf_c")
    return ledger


def forged(ledger: Any, *arguments: str, message: str) -> str:
    """What is told of the ledger branch with one more commit of these parents."""
    parents = [word for parent in arguments for word in ("-p", parent)]
    made = git(ledger, "commit-tree", f"{LEDGER}^{{tree}}", *parents, "-m", message, env=SOMEBODY).strip()
    git(ledger, "update-ref", LEDGER, made)
    return told(list(open_git(ledger.path.parent).verify_seals()))


def test_a_seal_without_a_run_is_none(sealed: Any) -> None:
    assert "is no seal" in forged(sealed, LEDGER, message="seal wf_c: completed\n\nHermes-Run: wf_c\n")


def test_a_seal_of_another_run_than_it_says_is_told(sealed: Any) -> None:
    message = "seal wf_b: completed\n\nHermes-Run: wf_b\n"
    assert "says it seals 'wf_b', and grafts wf_c" in forged(sealed, LEDGER, "refs/runs/wf_c", message=message)


def test_a_seal_of_a_run_that_goes_on_is_told(sealed: Any) -> None:
    message = "seal wf_c: completed\n\nHermes-Run: wf_c\n"
    assert "seals a run that has no result" in forged(sealed, LEDGER, "refs/runs/wf_c", message=message)


def test_a_ledger_of_another_beginning_is_told(sealed: Any) -> None:
    assert "is a root, but not the genesis commit" in forged(sealed, message="seal\n")
    assert [head.run_id for head in open_git(sealed.path.parent).heads()] == ["wf_c"]


# -- memory ------------------------------------------------------------------------------------------------------


def test_the_ledger_in_memory_tells_ambiguous_and_unknown_commits_as_git_does() -> None:
    ledger = MemoryLedger(home="home")
    tip = start(ledger).head.tip
    assert ledger.at(tip)[0].run_id == "wf_a"
    with pytest.raises(NotFound, match="is no commit of a run"):
        ledger.at("f" * 40)
    with pytest.raises(NotFound):
        ledger.verify("wf_a", "f" * 40)
    assert list(ledger.rejected()) == list(ledger.proposals(fetched=True)) == []
    ledger.land()
    one, other, begins = alike()
    tips = [start(ledger, run_id).head.tip for run_id in (one, other)]
    with pytest.raises(Conflict, match=f"several commits begin with {begins}: {tips[0][:12]}, {tips[1][:12]}"):
        ledger.at(begins)
    assert ledger.at(tips[1])[0].run_id == other


def alike() -> tuple[str, str, str]:
    """Two ids of runs whose first commits in memory begin with the same seven digits, and these."""
    ledger = MemoryLedger(home="home")
    made = Recorded({"run.json": ledger.content(start(ledger).head.tip, "run.json") or b""}, ())
    met: dict[str, str] = {}
    for number in itertools.count():
        begins = memory_ledger._commit_id(memory_ledger._START, f"wf_{number}", made)[:7]
        if other := met.get(begins):
            return other, f"wf_{number}", begins
        met[begins] = f"wf_{number}"
    raise AssertionError


def test_a_file_of_refs_is_read_to_its_end_however_little_the_disk_gives_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that meets a bad place half-way gives what it has; the next one says what is wrong."""
    made = open_git(tmp_path)
    for name in ("wf_a", "wf_b", "wf_c"):
        start(made, name)
    git(made, "pack-refs", "--all")
    whole = peek.list_refs(made.path, peek.RUNS)
    read, packed = os.read, (made.path / "packed-refs").stat().st_ino
    with monkeypatch.context() as disk:
        disk.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 30)))
        assert peek.list_refs(made.path, peek.RUNS) == whole
        assert len(whole) == 3

        def bad(descriptor: int, size: int) -> bytes:
            if os.fstat(descriptor).st_ino == packed and os.lseek(descriptor, 0, os.SEEK_CUR):
                raise OSError(errno.EIO, "Input/output error")
            return read(descriptor, min(size, 90))

        disk.setattr(os, "read", bad)
        with pytest.raises(StoreFailure, match="Input/output error"):
            peek.list_refs(made.path, peek.RUNS)
