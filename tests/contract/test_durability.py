"""What is synced, how often, and in which order; the counts are the cost of a receipt."""

from __future__ import annotations

import ctypes
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import pytest
from tests.contract.ledgers import (
    TickingClock,
    finished,
    git,
    impatient,
    open_git,
    record,
    start,
    step_draft,
)

from hermes_workflows.store import durability, peek
from hermes_workflows.store.durability import Disk, disk_for, has_ordered_journal
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.mounts import mount_of
from hermes_workflows.store.ports import Entry

pytestmark = pytest.mark.syncs

needs_ext4 = pytest.mark.skipif(
    not has_ordered_journal(Path(gettempdir())) or durability._sync_file_range is None, reason="not on ext4"
)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On the disk, wherever other tests are (`tests/memory.py`)."""
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


def ledger_on(tmp_path: Path, disk: Disk) -> GitLedger:
    path = open_git(tmp_path).path
    return GitLedger(path, clock=TickingClock(), disk=disk, committer="runner", patience=impatient())


def cost(ledger: GitLedger, work: Callable[[], object]) -> dict[str, int]:
    """Objects made and syncs done by `work`."""
    before, written = Counter(ledger.disk.counts), ledger.objects.written
    work()
    return {"objects": ledger.objects.written - written, **(ledger.disk.counts - before)}


def test_what_the_disk_cannot_write_out_is_no_less_than_an_error() -> None:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        durability._write_out(descriptor, 2)


def test_what_the_disk_does_not_begin_to_write_out_is_left_to_the_sync(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    os.close(descriptor)
    disk = Disk(durability._WriteOut, syncs=True)
    disk.start_content(descriptor, 0, 10)
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.sync_content(descriptor)


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EPERM, errno.EBADF], ids=errno.errorcode.get)
def test_where_the_system_refuses_to_write_out_nobody_asks_for_it(answer: int) -> None:
    asked = []

    def call(*arguments: int) -> int:
        asked.append(arguments)
        ctypes.set_errno(answer)
        return -1

    assert durability._is_allowed(call) == (answer == errno.EBADF)
    # Of no open file: to ask whether it may be asked writes nothing.
    assert asked[0][0] == -1
    assert durability._sync_file_range is None or durability._is_allowed(durability._sync_file_range)


def test_more_files_than_may_be_open_are_settled_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "_MOST_OPEN", 4)
    for barrier in (durability._WriteOut, durability._FsyncEach):
        disk = Disk(barrier, syncs=True)
        held = disk.barrier()
        for number in range(6):
            held.hold(os.open(tmp_path / str(number), os.O_WRONLY | os.O_CREAT), str(tmp_path))
        assert len(held._open) == 2  # type: ignore[attr-defined]
        held.settle()
        held.close()


def test_a_mount_table_that_cannot_be_read_or_does_not_have_the_disk_tells_nothing(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is None
    (tmp_path / "mounts").write_text("1 2 0:0 / / rw - tmpfs none rw\nodd\n")
    assert mount_of(tmp_path, tmp_path / "mounts") is None
    assert not has_ordered_journal(tmp_path, tmp_path / "mounts")


@needs_ext4
def test_a_receipt_costs_eight_objects_and_one_fsync(tmp_path: Path) -> None:
    ledger = open_git(tmp_path, durability="power")
    start(ledger)
    record(ledger, "wf_a", step_draft("group/first"))
    for n in range(3):
        # Blob, five folders and the root, commit; written out with the ref's new value.
        assert cost(ledger, lambda n=n: record(ledger, "wf_a", step_draft(f"group/{n}"))) == {  # type: ignore[misc]
            "objects": 8,
            "writeouts": 9,
            "fsyncs": 1,
        }
    assert cost(ledger, lambda: record(ledger, "wf_a", step_draft("flat")))["objects"] == 7


@needs_ext4
def test_receipts_of_many_runs_share_one_fsync(tmp_path: Path) -> None:
    ledger = open_git(tmp_path, durability="power")
    for n in range(8):
        start(ledger, f"wf_{n}")
    # One more would be a pack.
    entries = [Entry(f"wf_{n}", (step_draft(f"s{n}"),)) for n in range(6)]
    assert cost(ledger, lambda: ledger.append(entries)) == {"objects": 6 * 7, "writeouts": 6 * 7 + 6, "fsyncs": 1}


@needs_ext4
def test_a_large_batch_is_a_pack_of_two_files_and_costs_one_fsync(tmp_path: Path) -> None:
    ledger = open_git(tmp_path, durability="power")
    start(ledger)
    drafts = tuple(step_draft(f"s{n}") for n in range(600))
    # The pack and its index are written out before they are named, and the index once more with the ref's value.
    assert cost(ledger, lambda: record(ledger, "wf_a", *drafts)) == {"objects": 611, "writeouts": 4, "fsyncs": 1}
    assert len(list((ledger.path / "objects/pack").iterdir())) == 2
    assert git(ledger, "fsck", "--full", "--strict") == ""


def test_what_is_asked_twice_costs_nothing(tmp_path: Path) -> None:
    ledger = ledger_on(tmp_path, Disk(durability._FsyncEach, syncs=True))
    start(ledger)
    record(ledger, "wf_a", step_draft("work"))
    assert cost(ledger, lambda: ledger.append([Entry("wf_a", (step_draft("work"),))])) == {"objects": 0}
    assert cost(ledger, lambda: ledger.read("wf_a")) == {"objects": 0}
    finished(ledger, "wf_b")
    ledger.seal()
    assert cost(ledger, ledger.seal) == {"objects": 0}


def test_elsewhere_every_file_and_folder_is_synced(tmp_path: Path) -> None:
    ledger = ledger_on(tmp_path, Disk(durability._FsyncEach, syncs=True))
    start(ledger)
    before = {path.name for path in (ledger.path / "objects").rglob("*")}
    spent = cost(ledger, lambda: record(ledger, "wf_a", step_draft("flat")))
    folders = {
        path.parent for path in (ledger.path / "objects").rglob("*") if path.name not in before and path.is_file()
    }
    # Seven objects and the ref's value; their folders, `objects`, `pending` and `hermes`; the ref's folder.
    assert spent == {"objects": 7, "fsyncs": 7 + 1 + len(folders) + 3 + 1}
    assert git(ledger, "fsck", "--full") == ""


def test_elsewhere_a_folder_that_git_has_emptied_meanwhile_needs_no_sync(tmp_path: Path) -> None:
    disk = Disk(durability._FsyncEach, syncs=True)
    folder = tmp_path / "objects" / "17"
    folder.mkdir(parents=True)
    with closing(disk.barrier()) as barrier:
        barrier.hold(os.open(folder / "a", os.O_WRONLY | os.O_CREAT), str(folder))
        (folder / "a").unlink()
        folder.rmdir()
        barrier.settle()
    # The file that was packed, and the folder that is left.
    assert disk.counts["fsyncs"] == 2


def test_elsewhere_a_pack_and_its_index_are_synced_before_they_are_named(tmp_path: Path) -> None:
    ledger = ledger_on(tmp_path, Disk(durability._FsyncEach, syncs=True))
    start(ledger)
    drafts = tuple(step_draft(f"s{n}") for n in range(60))
    # Both, the index and the ref's value once more; `pack`, `objects`, `pending` and `hermes`; the ref's folder.
    assert cost(ledger, lambda: record(ledger, "wf_a", *drafts)) == {"objects": 66, "fsyncs": 2 + 2 + 4 + 1}


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory")
def test_a_file_system_that_does_not_order_by_itself_gets_a_sync_for_each_file() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder, closing(open_git(Path(folder), durability="power")) as ledger:
        start(ledger)
        spent = cost(ledger, lambda: record(ledger, "wf_a", step_draft("flat")))
    assert spent["fsyncs"] > spent["objects"] == 7
    assert "writeouts" not in spent


def test_nothing_is_synced_when_only_the_process_may_end(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    start(ledger)
    assert cost(ledger, lambda: record(ledger, "wf_a", step_draft("flat"))) == {"objects": 7}


class Witness:
    """A barrier that looks, when it settles, at what is on disk and where the ref points."""

    def __init__(self, ledger: GitLedger, seen: list[str]) -> None:
        self.ledger, self.seen = ledger, seen
        self.held = 0

    def hold(self, descriptor: int, folder: str) -> None:
        self.held += 1
        os.close(descriptor)

    def settle(self) -> None:
        ref = peek.read_ref(self.ledger.path, "refs/runs/wf_a")
        self.seen.append(f"{self.held} files settled, ref at {ref}")
        # The new value lies ready and names a whole commit: had the machine stopped here, the ref would be the old one.
        (value,) = (path.read_text().strip() for path in (self.ledger.path / "hermes/pending").iterdir())
        assert git(self.ledger, "rev-list", "--objects", value, f"^{ref}")

    def close(self) -> None: ...


def test_the_ref_moves_after_its_objects_and_its_folder_is_synced_last(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    old = start(ledger).head.tip
    seen: list[str] = []
    ledger.disk.barrier = lambda: Witness(ledger, seen)  # type: ignore[method-assign]
    ledger.disk.sync_folder = lambda path: seen.append(  # type: ignore[method-assign]
        f"{os.path.basename(path)} synced, ref at {peek.read_ref(ledger.path, 'refs/runs/wf_a')}"
    )
    new = record(ledger, "wf_a", step_draft("work")).head.tip
    assert seen == [f"8 files settled, ref at {old}", f"runs synced, ref at {new}"]


def test_a_failed_append_leaves_no_file_open(tmp_path: Path) -> None:
    from hermes_workflows.errors import NotFound

    for disk in (Disk(durability._FsyncEach, syncs=True), disk_for(tmp_path, "power")):
        folder = tmp_path / str(id(disk))
        folder.mkdir()
        ledger = ledger_on(folder, disk)
        start(ledger)
        before = len(os.listdir("/dev/fd"))
        with pytest.raises(NotFound):
            ledger.append([Entry("wf_a", (step_draft("work"),)), Entry("wf_x", (step_draft("work"),))])
        assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize(
    ("options", "ordered"),
    [
        ("ext4 /dev/vda rw,errors=remount-ro", True),
        ("ext4 /dev/vda rw,data=ordered", True),
        ("ext4 /dev/vda rw,data=writeback", False),
        ("ext4 /dev/vda rw,nobarrier", False),
        ("xfs /dev/vda rw", False),
        ("overlay overlay rw,lowerdir=/a", False),
    ],
)
def test_only_ext4_with_an_ordered_journal_is_trusted_to_order(tmp_path: Path, options: str, ordered: bool) -> None:
    device = os.stat(tmp_path).st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"1 0 0:1 / /proc rw - proc proc rw\n2 1 {os.major(device)}:{os.minor(device)} / / rw - {options}\n"
    )
    assert has_ordered_journal(tmp_path, mounts) is ordered
    assert has_ordered_journal(tmp_path, tmp_path / "missing") is False


def test_objects_are_whole_where_files_without_a_name_are_unknown(tmp_path: Path) -> None:
    ledger = open_git(tmp_path)
    ledger.objects._loose._unnamed = False
    start(ledger)
    record(ledger, "wf_a", step_draft("work", "x" * 70_000))
    assert git(ledger, "fsck", "--full", "--strict") == ""
    assert not list((ledger.path / "objects").rglob("tmp_obj_*"))
