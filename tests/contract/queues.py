"""Builders for the queue suites: a clock that stands still, and short ways to offer, claim and beat."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import count
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Protocol, cast

from hermes_workflows.clock import SystemClock
from hermes_workflows.core.summary import RunSummary
from hermes_workflows.store.index import IndexQueue
from hermes_workflows.store.liveness import Process, process_started, this_host
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.queue_port import Change, Claim, Indexed, Lease, ReviewRow, RunnerRow, Stuck, Work
from hermes_workflows.store.sqlite_queue import SqliteQueue

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()


@dataclass
class FrozenClock:
    """Moves when told to; a suspended machine and a wall clock that jumps are one line each."""

    seconds: float = 1000.0
    wall: float = NOON
    boot_id: str = "first-boot"

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall, UTC)

    def elapsed(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += seconds


class Handles(Protocol):
    """Opens one more handle on the same rows, as another process would."""

    def __call__(self) -> IndexQueue: ...


@dataclass
class Shop:
    """A queue under test, its clock, and what a test does with them most."""

    queue: IndexQueue
    clock: FrozenClock
    another: Handles
    leases: dict[str, Lease] = field(default_factory=dict)

    def offer(self, *works: Work) -> None:
        self.queue.apply(Change(offer=works), "offerer")

    def claim(self, runner: str = "ada", limit: int = 10, queue: IndexQueue | None = None, **how: Any) -> list[str]:
        """Names (`run/key`) of what was claimed, in order; the leases are kept by name."""
        claimed = (queue or self.queue).apply(Change(claim=Claim(limit, **how)), runner)
        self.leases.update((name(lease.work), lease) for lease in claimed)
        return [name(lease.work) for lease in claimed]

    def finish(self, *names: str, runner: str = "ada") -> None:
        self.queue.apply(Change(finish=[self.leases[name] for name in names]), runner)

    def release(self, *names: str, runner: str = "ada") -> None:
        self.queue.apply(Change(release=[self.leases[name] for name in names]), runner)

    def withdraw(self, *works: Work) -> None:
        self.queue.apply(Change(withdraw=[(work.run_id, work.key) for work in works]), "ada")

    def renew(self, name: str) -> str:
        lease = self.leases[name]
        return self.queue.renew([lease], 30.0)[lease.token]

    def stick(self, run_id: str, **more: Any) -> None:
        self.queue.apply(Change(stuck=[Stuck(run_id, "divergence", "the code differs", "restore it", **more)]), "ada")

    def put(self, *rows: Indexed) -> None:
        self.queue.apply(Change(index=rows), "ada")

    def status(self) -> dict[str, str]:
        return {name(row.work): row.status for row in self.queue.work()}


@contextmanager
def open_shop(kind: str, folder: Path, clock: FrozenClock | None = None) -> Iterator[Shop]:
    """A shop on one of the two twins."""
    clock = clock or FrozenClock()
    opened: list[IndexQueue] = []

    def another() -> IndexQueue:
        if kind == "sqlite":
            opened.append(SqliteQueue.open(folder / "workflows.sqlite", clock=clock, rebuild=tuple))
        else:
            opened.append(MemoryQueue(clock=clock) if not opened else cast(MemoryQueue, opened[0]).reopen())
        return opened[-1]

    yield Shop(another(), clock, another)
    for queue in opened:
        queue.close()


def name(work: Work) -> str:
    return f"{work.run_id}/{work.key}"


def call(run_id: str, key: str, kind: Any = "step", visible_at: float = 0.0) -> Work:
    return Work(run_id, kind, key, f"fp1:{key}", visible_at)


def calls(run_id: str, *keys: str) -> list[Work]:
    return [call(run_id, key) for key in keys]


def workflow(run_id: str, visible_at: float = 0.0) -> Work:
    return Work(run_id, "workflow", visible_at=visible_at)


def run(run_id: str, *, seq: int = 0, tip: str = "tip", reviews: tuple[ReviewRow, ...] = (), **summary: Any) -> Indexed:
    return Indexed(RunSummary(run_id, seq=seq, **summary), tip, f"runs/2026-11-29/{run_id}", reviews=reviews)


def beat(runner_id: str, clock: FrozenClock, process: Process | None = None) -> RunnerRow:
    process = process or Process.current()
    return RunnerRow(
        runner_id=runner_id,
        host=process.host,
        pid=process.pid,
        pid_started=process.pid_started,
        boot_id=clock.boot_id,
        elapsed=clock.elapsed(),
        started_at="2026-11-29T12:00:00.000Z",
        heartbeat_at="2026-11-29T12:00:00.000Z",
        lease_seconds=30.0,
        concurrency=4,
    )


@cache
def dead_process() -> Process:
    """A process of this machine that is over."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process(this_host(), child.pid, process_started(child.pid) or "")
    child.communicate(b"\n")
    return process


def claim_until_empty(path: Path, runner: str, ready: Barrier, told: Queue[list[str]]) -> None:
    """A process of its own: claims one row at a time, finishes it, and tells what it had."""
    queue = SqliteQueue.open(path, clock=SystemClock(), rebuild=tuple)
    had: list[str] = []
    ready.wait()
    while leases := queue.apply(Change(claim=Claim(1)), runner):
        had += [name(lease.work) for lease in leases]
        queue.apply(Change(finish=leases), runner)
    queue.close()
    told.put(had)


def open_and_offer(path: Path, runner: str, ready: Barrier, told: Queue[int]) -> None:
    """A process of its own: opens the queue at the same moment as others, and offers ten rows."""
    made: list[int] = []

    def rebuild() -> Iterable[Indexed]:
        made.append(1)
        # Enough of them for the others to arrive while this one is still being filled.
        return [run(f"kept-{number}", status="completed") for number in range(2000)]

    ready.wait()
    queue = SqliteQueue.open(path, clock=SystemClock(), rebuild=rebuild)
    for number in range(10):
        queue.apply(Change(offer=[call(runner, f"k-{number}")]), runner)
    queue.close()
    told.put(len(made))


def offer_for_ever(path: Path, runner: str, ready: Barrier, told: Queue[int]) -> None:
    """A process of its own that is meant to be killed in the middle of a transaction."""
    queue = SqliteQueue.open(path, clock=SystemClock(), rebuild=tuple)
    for number in count():
        queue.apply(Change(offer=calls(runner, f"a-{number}", f"b-{number}")), runner)
        told.put(number)


@dataclass
class Crew:
    """Processes at work. `ready` must outlive their start: its semaphores go with the object here."""

    processes: list[SpawnProcess]
    told: Queue[Any]
    ready: Barrier

    def answers(self) -> list[Any]:
        """What each of them tells, once all have ended."""
        answers = [self.told.get(timeout=120) for _ in self.processes]
        for process in self.processes:
            process.join()
        return answers


def spawn(target: Callable[..., None], path: Path, number: int) -> Crew:
    """`number` processes of `target`, each with a name of its own, and a queue to tell their answers in.

    The barrier lets them begin at one instant: starting Python takes longer than what they do.
    """
    context = get_context("spawn")
    told: Queue[Any] = context.Queue()
    ready = context.Barrier(number, timeout=120)
    processes = [context.Process(target=target, args=(path, f"runner-{n}", ready, told)) for n in range(number)]
    for process in processes:
        process.start()
    return Crew(processes, told, ready)
