"""A step may fork while another thread of its runner holds a lock: the child, which lives on, keeps none."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.contract.ledgers import git, impatient, open_git, record, start, step_draft

from hermes_workflows.store import database
from hermes_workflows.store.ahead_file import AheadFile, path_of
from hermes_workflows.store.durability import disk_for
from hermes_workflows.store.maintenance import Housekeeper
from hermes_workflows.store.refs import Refs

Lock = Callable[[Path], AbstractContextManager[object]]

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(database, "REPLACE_SECONDS", 0.05)
    with closing(open_git(tmp_path)) as ledger:
        start(ledger)
        yield ledger.path


def a_run(repository: Path) -> AbstractContextManager[object]:
    return Refs(repository, disk_for(repository, "process"), impatient(ours=0.05)).locked(["wf_a"])


def every_run(repository: Path) -> AbstractContextManager[object]:
    return Refs(repository, disk_for(repository, "process"), impatient(ours=0.05)).alone()


def the_index(repository: Path) -> AbstractContextManager[object]:
    return database._lock(repository.with_name("workflows.sqlite"), fcntl.LOCK_EX)


@contextmanager
def a_look_at_the_index(repository: Path) -> Iterator[None]:
    # That nobody changes it now is the first thing to see.
    with the_index(repository):
        pass
    with database._glance(repository.with_name("workflows.sqlite")):
        yield


def maintenance(repository: Path) -> AbstractContextManager[object]:
    return Housekeeper(repository).leased()


@contextmanager
def a_burst(repository: Path) -> Iterator[None]:
    path = path_of(str(repository), "wf_a")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with closing(AheadFile.take(path) or AheadFile.make(str(repository), "wf_a")):
        yield


LOCKS = [a_run, every_run, the_index, a_look_at_the_index, maintenance, a_burst]


def forked(act: Callable[[], object]) -> int:
    """A child that does `act`, and then nothing until it is killed."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            act()
            os.write(told, b"x")
            signal.pause()
        os._exit(0)
    os.close(told)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    return child


def killed(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_ends_with_its_holder_although_a_child_was_forked_meanwhile(repository: Path, lock: Lock) -> None:
    with lock(repository):
        child = forked(lambda: None)
    try:
        with lock(repository):
            pass
    finally:
        killed(child)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_ends_with_a_holder_that_is_killed_although_its_child_lives(repository: Path, lock: Lock) -> None:
    reading, writing = os.pipe()

    held = lock(repository)

    def hold() -> None:
        held.__enter__()
        os.write(writing, f"{forked(lambda: None)}\n".encode())

    holder = forked(hold)
    grandchild = int(os.read(reading, 20))
    killed(holder)
    try:
        with lock(repository):
            pass
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.close(reading)
        os.close(writing)


def test_a_child_takes_no_lock_from_its_parent(repository: Path) -> None:
    held = a_burst(repository)
    with held:
        child = forked(lambda: held.__exit__(None, None, None))
        try:
            with pytest.raises(BlockingIOError), a_burst(repository):
                pass
        finally:
            killed(child)


def test_a_child_has_locks_of_its_own(repository: Path) -> None:
    ledger = open_git(repository.parent)
    with a_run(repository):
        pass
    killed(forked(lambda: record(ledger, "wf_a", step_draft("in-the-child"))))
    assert git(ledger, "log", "-1", "--format=%s", "runs/wf_a").startswith("in-the-child")
