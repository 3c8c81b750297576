"""Locks and leftovers: whoever died, and wherever, the next append works (FORMAT §7)."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.ledgers import TickingClock, append, end_draft, git, impatient, open_git, record, start, step_draft

from hermes_workflows.errors import StoreFailure, TemporarilyLocked
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Entry


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    """A repository with one run of one receipt, sound at the end whatever the test did."""
    ledger = open_git(tmp_path)
    start(ledger)
    yield ledger.path
    assert git(ledger, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert open_git(tmp_path).verify("wf_a") == []


def reopen(repository: Path, **seconds: float) -> GitLedger:
    return open_git(repository.parent, patience=impatient(**seconds))


def pending(repository: Path) -> Path:
    """Where our own writer prepares the new value of the run's ref."""
    ledger = open_git(repository.parent)
    return Path(ledger._refs._next_value("refs/runs/wf_a").spare)


def never(_: float) -> None:
    raise AssertionError("waited for a lock that was surely dead")


def test_a_lock_of_a_writer_of_ours_that_died_is_taken_away_without_waiting(repository: Path) -> None:
    left(repository)
    ledger = open_git(repository.parent, patience=impatient(sleep=never))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1
    assert not (repository / "refs/runs/wf_a.lock").exists()


def left(repository: Path) -> Path:
    """What a writer of ours has when it holds git's lock: that is a second name of a file of its own."""
    own = Path(f"{pending(repository)}-0123456789abcdef")
    own.write_text("0" * 40 + "\n")
    os.link(own, repository / "refs/runs/wf_a.lock")
    return own


def test_a_lock_of_a_writer_of_ours_that_lives_is_waited_for(repository: Path) -> None:
    own = left(repository)
    descriptor = os.open(own, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            (repository / "refs/runs/wf_a.lock").unlink()

    ledger = open_git(repository.parent, patience=impatient(sleep=wait, stale=60))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1
    assert len(waits) == 3
    os.close(descriptor)


def test_a_lock_that_became_anothers_while_it_was_swept_is_put_back(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, rename = repository / "refs/runs/wf_a.lock", os.rename
    left(repository)
    seen: list[str] = []

    def swept_by_another_first(source: str, target: str) -> None:
        if source == str(lock) and not seen:
            lock.unlink()
            lock.write_text("of git, and alive")
            seen.append("swept")
        rename(source, target)

    def wait(_: float) -> None:
        seen.append(lock.read_text())
        lock.unlink()

    monkeypatch.setattr(os, "rename", swept_by_another_first)
    ledger = open_git(repository.parent, patience=impatient(sleep=wait, stale=60))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1
    assert seen == ["swept", "of git, and alive"]
    assert list((repository / "hermes/pending").glob("swept*")) == []


def opening(monkeypatch: pytest.MonkeyPatch, opened: Path, act: Callable[[], object]) -> None:
    """Have `act` happen right before anybody opens that file."""
    real = os.open

    def meanwhile(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if path == str(opened):
            act()
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", meanwhile)


def test_a_lock_of_another_users_writer_that_may_not_be_looked_at_is_waited_for(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(repository)
    lock = repository / "refs/runs/wf_a.lock"
    waits: list[float] = []

    def denied() -> None:
        raise PermissionError(13, "Permission denied")

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lock.unlink()

    opening(monkeypatch, lock, denied)
    ledger = open_git(repository.parent, patience=impatient(sleep=wait, stale=60))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1
    assert len(waits) == 3


def test_a_move_ends_when_somebody_has_removed_its_own_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, link = repository / "refs/runs/wf_a.lock", os.link
    lock.write_text("")
    tries: list[str] = []

    def tidy(_: float) -> None:
        for own in (repository / "hermes/pending").glob("*-*"):
            own.unlink()

    def tried(source: str, target: str, **options: Any) -> None:
        tries.extend([target] if target == str(lock) else [])
        assert len(tries) < 9, "tried for ever"
        link(source, target, **options)

    monkeypatch.setattr(os, "link", tried)

    ledger = open_git(repository.parent, patience=impatient(sleep=tidy, stale=60))
    with pytest.raises(StoreFailure):
        append(ledger, Entry("wf_a", (step_draft("work"),)))
    lock.unlink()
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1


@pytest.mark.parametrize("swept", ["by us", "by another one meanwhile"])
def test_what_dead_writers_left_of_a_ref_goes_with_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch, swept: str
) -> None:
    own = left(repository)
    (repository / "refs/runs/wf_a.lock").unlink()
    ledger = reopen(repository)
    record(ledger, "wf_a", end_draft())
    if swept != "by us":
        opening(monkeypatch, own, own.unlink)
    assert ledger.seal(keep=0) == 1
    assert not own.exists()
    assert not pending(repository).exists()


@pytest.mark.parametrize("names", [[""], ["-0123456789abcdef.old"], ["", "-0123456789abcdef"]])
def test_a_second_name_of_the_ref_that_a_dead_writer_left_is_never_written_to(
    repository: Path, names: list[str]
) -> None:
    for suffix in names:
        os.link(repository / "refs/runs/wf_a", f"{pending(repository)}{suffix}")
    before = (repository / "refs/runs/wf_a").read_text()
    ledger = reopen(repository)
    ledger.append([Entry("wf_a", (step_draft("one"),))])
    assert record(ledger, "wf_a", step_draft("two")).receipts[0].seq == 2
    assert git(repository, "rev-parse", "runs/wf_a~2") == before


def test_the_file_of_a_refs_old_value_is_used_again(repository: Path) -> None:
    ledger = reopen(repository)
    files = []
    for number in range(6):
        record(ledger, "wf_a", step_draft(f"s{number}"))
        files.append((repository / "refs/runs/wf_a").stat().st_ino)
    assert files[0::2] == [files[0]] * 3
    assert files[1::2] == [files[1]] * 3
    assert files[0] != files[1]


def test_a_file_kept_for_a_ref_may_hold_anything(repository: Path) -> None:
    for content in ["", "short", "x" * 100]:
        pending(repository).write_text(content)
        record(reopen(repository), "wf_a", step_draft(f"after-{len(content)}"))
        assert len((repository / "refs/runs/wf_a").read_text()) == 41


def test_a_lock_of_git_that_nobody_touches_is_taken_away_in_the_end(repository: Path) -> None:
    (repository / "refs/runs/wf_a.lock").write_text("")
    waits: list[float] = []
    ledger = open_git(repository.parent, patience=impatient(sleep=waits.append))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1
    assert waits
    assert list((repository / "hermes/pending").glob("swept*")) == []


def test_a_lock_of_git_that_is_alive_is_never_taken_away(repository: Path) -> None:
    lock = repository / "refs/runs/wf_a.lock"
    lock.write_text("")

    def work(_: float) -> None:
        lock.write_text(lock.read_text() + "x")

    patience = impatient(sleep=work, theirs=0.2, stale=0.1)
    with pytest.raises(TemporarilyLocked, match=r"git has kept .*wf_a\.lock"):
        append(open_git(repository.parent, patience=patience), Entry("wf_a", (step_draft("work"),)))
    assert lock.exists()
    lock.unlink()
    assert record(reopen(repository), "wf_a", step_draft("work")).receipts[0].seq == 1


def test_a_lock_that_git_lets_go_is_waited_for(repository: Path) -> None:
    lock = repository / "refs/runs/wf_a.lock"
    lock.write_text("")
    ledger = open_git(repository.parent, patience=impatient(sleep=lambda _: lock.unlink(), stale=60))
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1


def test_a_writer_that_is_alive_and_does_not_finish_is_named(repository: Path) -> None:
    holder = reopen(repository)
    with (
        holder._refs.locked(["wf_a"]),
        pytest.raises(TemporarilyLocked, match="another process has been writing"),
    ):
        append(reopen(repository, ours=0.05), Entry("wf_a", (step_draft("work"),)))


def test_a_lock_on_one_run_stops_no_other(repository: Path) -> None:
    ledger = reopen(repository, theirs=0.05, stale=60)
    names = [f"wf_{number}" for number in range(5)]
    for name in names:
        start(ledger, name)
    (repository / "refs/runs/wf_a.lock").write_text("")
    for name in names:
        assert record(ledger, name, step_draft("work")).receipts[0].seq == 1
    (repository / "refs/runs/wf_a.lock").unlink()


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda data: data[:9], lambda data: data[:-1], lambda data: b"x" * 50]
)
def test_an_object_that_a_dead_writer_left_unfinished_is_written_again(
    tmp_path: Path, repository: Path, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "twin").mkdir()
    twin = open_git(tmp_path / "twin")
    start(twin)
    known = {path.name for path in (twin.path / "objects").rglob("*")}
    record(twin, "wf_a", step_draft("work", "some text"))
    left = [path for path in (twin.path / "objects").rglob("*") if path.is_file() and path.name not in known]
    assert len(left) == 7
    for path in left:
        place = repository / path.relative_to(twin.path)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(damage(path.read_bytes()))
    clock = TickingClock()
    clock.now()
    record(open_git(tmp_path, clock=clock), "wf_a", step_draft("work", "some text"))
    assert [(repository / path.relative_to(twin.path)).read_bytes() for path in left] == [
        path.read_bytes() for path in left
    ]


def test_the_folder_of_runs_may_vanish_when_it_is_empty(repository: Path) -> None:
    git(repository, "pack-refs", "--all", "--prune")
    (repository / "refs/runs").rmdir()
    assert record(reopen(repository), "wf_a", step_draft("work")).receipts[0].seq == 1


def test_a_restored_mirror_has_no_folder_of_ours_and_works(repository: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "backup" / "workflows.git"
    git(tmp_path, "clone", "-q", "--mirror", str(repository), str(mirror))
    git(mirror, "config", "hermes.workspace", "0123456789abcdef")
    ledger = reopen(mirror)
    assert record(ledger, "wf_a", step_draft("work")).receipts[0].seq == 1


def test_all_locks_are_had_where_few_files_may_be_open(repository: Path) -> None:
    refs, before = reopen(repository)._refs, resource.getrlimit(resource.RLIMIT_NOFILE)
    # A fourth of what the locks need, beside what other tests have left open.
    few = (len(os.listdir("/dev/fd")) + 64, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, few)
    try:
        with refs.alone():
            pass
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == few
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


_WRITER = """
import sys
from pathlib import Path
from hermes_workflows.store.ports import Entry
from tests.contract.ledgers import open_git, step_draft

folder, name = Path(sys.argv[1]), sys.argv[2]
ledger = open_git(folder)
for number in range(100_000):
    runs = ["wf_a", "wf_b"] if number % 3 == 0 else ["wf_a"]
    ledger.append([Entry(run_id, (step_draft(f"{name}/s{number}"),)) for run_id in runs])
    print(number, flush=True)
"""


def start_writer(folder: Path, name: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder), name],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
    )


def kill_after(writer: subprocess.Popen[str], receipts: int) -> int:
    """Kill the writer right after it has acknowledged so many; how many it had acknowledged in the end."""
    assert writer.stdout is not None
    for _ in range(receipts):
        assert writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    told = writer.stdout.read().split()
    writer.wait()
    writer.stdout.close()
    return receipts + len([word for word in told if word])


def test_a_killed_writer_loses_nothing_it_acknowledged_and_hinders_nobody(repository: Path) -> None:
    start(reopen(repository), "wf_b")
    acknowledged: dict[str, int] = {}
    for round_number in range(6):
        names = [f"w{round_number}a", f"w{round_number}b"]
        writers = [start_writer(repository.parent, name) for name in names]
        for name, writer in zip(names, writers, strict=True):
            acknowledged[name] = kill_after(writer, 7 + round_number)
        # Nobody may need the ten seconds after which a lock of a stranger is dead: it is our own.
        ledger = open_git(repository.parent, patience=impatient(stale=60))
        record(ledger, "wf_a", step_draft(f"after-{round_number}"))
        record(ledger, "wf_b", step_draft(f"after-{round_number}"))
    keys = {receipt.key for receipt in ledger.read("wf_a")[1]}
    for name, count in acknowledged.items():
        assert {f"{name}/s{number}" for number in range(count)} <= keys
    assert ledger.verify("wf_a") == ledger.verify("wf_b") == []


def test_processes_that_write_one_run_lose_nothing(repository: Path) -> None:
    start(reopen(repository), "wf_b")
    writers = [start_writer(repository.parent, name) for name in ("a", "b", "c")]
    counts = [kill_after(writer, 20) for writer in writers]
    receipts = open_git(repository.parent).read("wf_a")[1]
    assert [receipt.seq for receipt in receipts] == list(range(len(receipts)))
    assert len(receipts) >= 1 + sum(counts)
