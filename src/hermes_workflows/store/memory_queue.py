"""MemoryQueue: the twin of SqliteQueue without a file, held to the same contract suite.

Handles made by `reopen()` share the rows, as processes share a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock

from ..core.clock import Clock
from .held import Held
from .liveness import Process
from .memory_index import MemoryIndex
from .memory_work import MemoryHolder, MemoryWork
from .queue_port import (
    Change,
    Counts,
    InboxPage,
    Indexed,
    Known,
    Lease,
    ReviewRow,
    RunnerRow,
    Stuck,
    Took,
    Work,
    WorkRow,
)
from .rows import OPEN
from .wanted import EVERY, Wanted, WantedReviews
from .work_table import Answer, Moment


@dataclass
class _Tables:
    """What handles share. `writes` counts changes, as SQLite's data_version does."""

    index: MemoryIndex = field(default_factory=MemoryIndex)
    lock: RLock = field(default_factory=RLock)
    writes: int = 0

    def __post_init__(self) -> None:
        self.work = MemoryWork(stuck=self.index.is_stuck, beating=self.index.is_beating)


class MemoryQueue:
    """See `store.queue_port.Queue`; `rebuild` and `home` as in `SqliteQueue.open`."""

    def __init__(
        self,
        *,
        clock: Clock,
        lease_seconds: float = 30.0,
        rebuild: Callable[[], Iterable[Indexed]] = tuple,
        home: str | None = None,
    ) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._held = Held()
        self._tables = _Tables()
        self._own_writes = self._seen = 0
        for indexed in rebuild():
            self._tables.index.put([indexed])
            summary = indexed.summary
            if not summary.ended and home in (None, summary.home):
                self._tables.work.offer([Work(summary.run_id, "workflow")], Moment.of(clock))

    def reopen(self) -> MemoryQueue:
        """Another handle on the same rows: what a second process, or a restarted one, would have."""
        other = MemoryQueue(clock=self._clock, lease_seconds=self._lease_seconds)
        other._tables = self._tables
        other.changed()
        return other

    def close(self) -> None:
        pass

    def apply(self, change: Change, runner: str) -> list[Lease]:
        moment, tables = Moment.of(self._clock), self._tables
        with tables.lock:
            self._held.take(change.enter, runner)
            tables.work.enter(change.enter, self._holder(change, runner), moment)
            tables.work.finish(change.finish, runner, moment)
            tables.work.release(change.release)
            tables.work.offer(change.offer, moment)
            tables.work.withdraw(change.withdraw)
            tables.index.put(change.index)
            tables.index.put_stuck(change.stuck, moment.text)
            tables.index.unstick(change.unstuck)
            tables.work.forgive(change.unstuck)
            claimed = self._claim(change, runner, moment)
            self._held.drop(lease.token for lease in (*change.finish, *change.release))
            self._held.take(claimed, runner)
            if claimed or change != Change(claim=change.claim):
                self._wrote()
            return claimed

    def _claim(self, change: Change, runner: str, moment: Moment) -> list[Lease]:
        if change.claim is None:
            return []
        holder = self._holder(change, runner)
        claimed = self._tables.work.claim(change.claim, holder, moment)
        if change.claim.then and len(claimed) >= change.claim.limit:
            claimed += self._tables.work.claim(change.claim.then, holder, moment)
        return claimed

    def _holder(self, change: Change, runner: str) -> MemoryHolder:
        process, own = self._held.process_of(runner), self._held.tokens(runner)
        return MemoryHolder(runner, process, self._lease_seconds, own, lambda: self._held.suspects(runner, change))

    def renew(self, leases: Sequence[Lease], seconds: float) -> dict[str, Answer]:
        with self._tables.lock:
            answers = self._tables.work.renew(leases, seconds, Moment.of(self._clock))
            self._held.drop(token for token, answer in answers.items() if answer == "lost")
            self._wrote()
            return answers

    def heartbeat(self, row: RunnerRow) -> None:
        with self._tables.lock:
            self._tables.index.beat(row, first=self._held.beats(row))
            self._wrote()

    def goodbye(self, runner_id: str) -> None:
        with self._tables.lock:
            row = self._held.heartbeats.pop(runner_id, None)
            self._tables.index.goodbye(runner_id, Process.of(row) if row else None)
            self._wrote()

    def drain(self, runner_id: str | None = None) -> None:
        with self._tables.lock:
            self._tables.index.drain(runner_id)
            self._wrote()

    def runners(self) -> list[RunnerRow]:
        with self._tables.lock:
            return self._tables.index.runners()

    def indexed(self, run_id: str) -> Indexed | None:
        with self._tables.lock:
            return self._tables.index.runs.get(run_id)

    def list_indexed(self, wanted: Wanted = EVERY, *, limit: int = 50, offset: int = 0) -> list[Indexed]:
        with self._tables.lock:
            return self._tables.index.page(wanted, limit, offset)

    def counts(self) -> list[Counts]:
        with self._tables.lock:
            return self._tables.index.counts()

    def lately(self, workflow: str, limit: int) -> list[Took]:
        with self._tables.lock:
            return self._tables.index.lately(workflow, limit)

    def tips(self) -> dict[str, Known]:
        with self._tables.lock:
            rows = self._tables.index.runs
            return {run_id: Known(row.tip, row.sealed, row.summary.seq) for run_id, row in rows.items()}

    def started_from(self, run_id: str) -> list[str]:
        with self._tables.lock:
            return self._tables.index.started_from(run_id)

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        with self._tables.lock:
            return sorted(run_id for run_id in self._tables.index.runs if run_id.startswith(prefix))[:limit]

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]:
        with self._tables.lock:
            return self._tables.index.reviews(run_id, status)

    def inbox(self, wanted: WantedReviews, *, limit: int, offset: int = 0) -> InboxPage:
        with self._tables.lock:
            return self._tables.index.inbox_page(wanted, limit, offset)

    def open_questions(self) -> list[tuple[str, str]]:
        with self._tables.lock:
            return [(row.run_id, row.key) for row in self._tables.index.reviews(None, OPEN)]

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        with self._tables.lock:
            return self._tables.index.stuck(run_id)

    def work(self, run_id: str | None = None) -> list[WorkRow]:
        with self._tables.lock:
            return self._tables.work.shown(run_id, Moment.of(self._clock))

    def unqueued(self) -> list[tuple[str, str]]:
        with self._tables.lock:
            index, moved = self._tables.index, self._tables.work.moved()
            return [
                (run_id, row.tip)
                for run_id, row in sorted(index.runs.items())
                if not row.summary.ended and run_id not in moved and not index.is_stuck(run_id)
            ]

    def forget(self, run_id: str) -> None:
        with self._tables.lock:
            self._tables.index.forget(run_id)
            self._tables.work.forget(run_id)
            self._wrote()

    def rewind(self, run_id: str) -> None:
        with self._tables.lock:
            self._tables.index.forget(run_id)
            self._wrote()

    def changed(self) -> bool:
        with self._tables.lock:
            others = self._tables.writes - self._own_writes
            changed, self._seen = others != self._seen, others
            return changed

    def epoch(self) -> object:
        return None

    def next_visible(self) -> float | None:
        with self._tables.lock:
            return self._tables.work.next_visible(Moment.of(self._clock))

    def stamp(self) -> str:
        with self._tables.lock:
            return self._tables.index.stamp

    def put_stamp(self, value: str, epoch: object) -> None:
        with self._tables.lock:
            self._tables.index.stamp = value
            self._wrote()

    def _wrote(self) -> None:
        self._tables.writes += 1
        self._own_writes += 1
