"""SqliteQueue: the queue port on one SQLite file, which is made again from the ledger whenever it is gone.

Every public method runs through `_attempt`: look whether the path still leads to the open file, do the work, and when
either says that the file is gone, make a new one (or open the one another process made) and do the work again.
Doing it again is safe: nothing of the failed attempt is in the new file except the leases this process holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TypeVar

from ..core.clock import Clock
from ..errors import StoreFailure, TemporarilyLocked
from . import index_table, work_table
from .database import BUSY_SECONDS, Database, DatabaseGone, open_database, replace_database, translated
from .held import Held
from .liveness import Process
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
from .room import is_suspect
from .rows import standing_of
from .wanted import EVERY, Wanted, WantedReviews
from .work_table import Answer, Holder, Moment

T = TypeVar("T")
Rebuild = Callable[[], Iterable[Indexed]]

ATTEMPTS = 3
_FILLED_AT_ONCE = 100


class SqliteQueue:
    """See `store.queue_port.Queue`. One handle is shared by the threads of a process; forks open their own.

    A handle remembers the leases it gave to each runner until they are finished, released or lost. They are never
    offered to that same runner again, however late it is, and they are entered again when the file is made anew.
    """

    def __init__(self, path: Path, clock: Clock, lease_seconds: float, rebuild: Rebuild, home: str | None) -> None:
        # SQLite names its other files after what a link leads to.
        self._path = path.resolve()
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._rebuild = rebuild
        self._home = home
        self._lock = RLock()
        self._held = Held()
        self._database: Database | None = None
        self._opened = 0
        self._seen: object = None

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        lease_seconds: float = 30.0,
        rebuild: Rebuild,
        home: str | None = None,
    ) -> SqliteQueue:
        """Open the queue at `path`, or make it from `rebuild()`, every run as the ledger knows it.

        A new file gets one workflow row for each unfinished run of workspace `home` (of any, when None).
        Raises InvalidInput for another program's database, NewerSchema, and StoreFailure when it cannot be written.
        """
        queue = cls(path, clock, lease_seconds, rebuild, home)
        queue._attempt(lambda connection: None)
        queue.changed()
        return queue

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def apply(self, change: Change, runner: str) -> list[Lease]:
        moment = Moment.of(self._clock)
        # One hold of the lock: a file made anew in between would bring finished leases back and miss claimed ones.
        with self._alone():
            self._held.take(change.enter, runner)
            claimed = self._write(lambda connection: self._apply(connection, change, runner, moment))
            self._held.drop(lease.token for lease in (*change.finish, *change.release))
            self._held.take(claimed, runner)
        return claimed

    def _apply(self, connection: sqlite3.Connection, change: Change, runner: str, moment: Moment) -> list[Lease]:
        self._enter(connection, [(lease, runner) for lease in change.enter], moment)
        work_table.finish(connection, change.finish, runner, moment)
        work_table.release(connection, change.release)
        work_table.offer(connection, change.offer, moment)
        work_table.withdraw(connection, change.withdraw)
        index_table.put(connection, change.index)
        index_table.put_stuck(connection, change.stuck, moment.text)
        index_table.unstick(connection, change.unstuck)
        if change.claim is None:
            return []
        own = self._held.tokens(runner)
        holder = Holder(runner, self._held.process_of(runner).to_text(), self._lease_seconds, own)
        work_table.make_ready(connection, moment)
        work_table.expire(connection, moment, own)
        claimed: list[Lease] = []

        def suspected() -> bool:
            return self._held.suspects(runner, change) or any(is_suspect(lease) for lease in claimed)

        claimed += work_table.claim(connection, change.claim, holder, moment, suspected)
        wanting = replace(change.claim, limit=change.claim.limit - len(claimed))
        # Looking at processes costs a file each; whoever has got all he wanted need not look.
        if wanting.limit and work_table.expire_dead(connection, own, holder):
            claimed += work_table.claim(connection, wanting, holder, moment, suspected)
        if change.claim.then and len(claimed) >= change.claim.limit:
            claimed += work_table.claim(connection, change.claim.then, holder, moment, suspected)
        return claimed

    def renew(self, leases: Sequence[Lease], seconds: float) -> dict[str, Answer]:
        moment = Moment.of(self._clock)
        with self._alone():
            answers = self._write(lambda connection: work_table.renew(connection, leases, seconds, moment))
            self._held.drop(token for token, answer in answers.items() if answer == "lost")
        return answers

    def heartbeat(self, row: RunnerRow) -> None:
        with self._alone():
            first = self._held.beats(row)
            self._write(lambda connection: index_table.beat(connection, row, first=first))

    def goodbye(self, runner_id: str) -> None:
        with self._alone():
            row = self._held.heartbeats.pop(runner_id, None)
            process = Process.of(row) if row else None
            self._write(lambda connection: index_table.goodbye(connection, runner_id, process))

    def drain(self, runner_id: str | None = None) -> None:
        self._write(lambda connection: index_table.drain(connection, runner_id))

    def runners(self) -> list[RunnerRow]:
        return self._attempt(index_table.runners)

    def indexed(self, run_id: str) -> Indexed | None:
        return self._attempt(lambda connection: index_table.one(connection, run_id))

    def list_indexed(self, wanted: Wanted = EVERY, *, limit: int = 50, offset: int = 0) -> list[Indexed]:
        return self._attempt(lambda connection: index_table.page(connection, wanted, limit, offset))

    def counts(self) -> list[Counts]:
        return self._attempt(index_table.counts)

    def lately(self, workflow: str, limit: int) -> list[Took]:
        return self._attempt(lambda connection: index_table.lately(connection, workflow, limit))

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        """Ids of runs that start with `prefix`, in order."""
        return self._attempt(lambda connection: index_table.matching(connection, prefix, limit))

    def started_from(self, run_id: str) -> list[str]:
        """Ids of forks and reproductions of a run, oldest first."""
        return self._attempt(lambda connection: index_table.started_from(connection, run_id))

    def tips(self) -> dict[str, Known]:
        """Where every run stands as the index knows it."""
        return self._attempt(index_table.tips)

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]:
        return self._attempt(lambda connection: index_table.reviews(connection, run_id, status))

    def inbox(self, wanted: WantedReviews, *, limit: int, offset: int = 0) -> InboxPage:
        return self._attempt(lambda connection: index_table.inbox(connection, wanted, limit, offset))

    def open_questions(self) -> list[tuple[str, str]]:
        return self._attempt(index_table.open_questions)

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        return self._attempt(lambda connection: index_table.stuck(connection, run_id))

    def work(self, run_id: str | None = None) -> list[WorkRow]:
        moment = Moment.of(self._clock)
        rows = self._attempt(lambda connection: work_table.rows(connection, run_id))
        return [work_table.shown(row, moment) for row in rows]

    def unqueued(self) -> list[tuple[str, str]]:
        return self._attempt(work_table.unqueued)

    def forget(self, run_id: str) -> None:
        self._write(lambda connection: index_table.forget(connection, run_id))

    def rewind(self, run_id: str) -> None:
        self._write(lambda connection: index_table.rewind(connection, run_id))

    def changed(self) -> bool:
        """Also True when the file is gone or replaced: the next call then works on the new one."""
        with self._lock:
            seen: object = None
            if self._database is not None:
                with suppress(DatabaseGone, sqlite3.Error):
                    seen = (self._database.stamp, self._database.version())
            changed = seen is None or seen != self._seen
            self._seen = seen
            return changed

    def epoch(self) -> object:
        """How often this handle has opened a file: the name of one, its inode, comes back when it is gone."""
        with self._lock:
            return self._opened

    def next_visible(self) -> float | None:
        moment = Moment.of(self._clock)
        return self._attempt(lambda connection: work_table.next_visible(connection, moment))

    def stamp(self) -> str:
        """The state of the refs up to which every row is known to be right (see `store.index`)."""
        return self._attempt(index_table.stamp)

    def put_stamp(self, value: str, epoch: object) -> None:
        def put(connection: sqlite3.Connection) -> None:
            if self._opened == epoch:
                index_table.put_stamp(connection, value)

        self._write(put)

    def _write(self, action: Callable[[sqlite3.Connection], T]) -> T:
        def within(connection: sqlite3.Connection) -> T:
            assert self._database is not None  # _attempt has opened it
            with self._database.transaction():
                return action(connection)

        return self._attempt(within)

    def _attempt(self, action: Callable[[sqlite3.Connection], T]) -> T:
        with self._alone():
            for _ in range(ATTEMPTS):
                try:
                    return self._once(action)
                except DatabaseGone as error:
                    gone = error
                # A disk that is full or failing may break the new file as well.
                try:
                    self._restore()
                except DatabaseGone as error:
                    gone = error
        raise StoreFailure(str(gone), hint="the file is damaged again and again; check the disk, then move it away")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # While one thread fills a new file, the one that renews leases must go on to its other duties.
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            raise TemporarilyLocked(f"{self._path} is being made again", hint="try again in a moment")
        try:
            yield
        finally:
            self._lock.release()

    def _once(self, action: Callable[[sqlite3.Connection], T]) -> T:
        database = self._database or self._entered(open_database(self._path))
        database.check()
        try:
            return action(database.connection)
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def _restore(self) -> None:
        """Leave the file that is gone; open the one at the path, or put one there."""
        if not self._path.parent.is_dir():
            # Where the receipts are gone too, a folder made anew would be in the way of the one that was moved.
            next(iter(self._rebuild()), None)
        left, self._database = self._database, None
        try:
            made = replace_database(self._path, self._fill, distrust=left.stamp if left else None)
        finally:
            # Only now: while it is open its inode cannot come back as that of somebody's new file.
            if left is not None:
                left.close()
        self._entered(made)

    def _entered(self, database: Database) -> Database:
        """The file to work on from now on: only when it knows the leases of this process."""
        try:
            self._enter_leases(database)
        except BaseException:
            database.close()
            raise
        self._database = database
        self._opened += 1
        return database

    def _fill(self, connection: sqlite3.Connection) -> None:
        moment = Moment.of(self._clock)
        rebuilt = iter(self._rebuild())
        while rows := list(islice(rebuilt, _FILLED_AT_ONCE)):
            index_table.put(connection, rows)
            unfinished = [run for run in map(standing_of, rows) if not run.ended and self._home in (None, run.home)]
            work_table.offer(connection, [Work(run.run_id, "workflow") for run in unfinished], moment)

    def _enter_leases(self, database: Database) -> None:
        if not self._held.leases:
            return
        moment = Moment.of(self._clock)
        try:
            with database.transaction() as connection:
                self._enter(connection, self._held.leases.values(), moment)
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def _enter(self, connection: sqlite3.Connection, leases: Iterable[tuple[Lease, str]], moment: Moment) -> None:
        for lease, runner in leases:
            holder = Holder(runner, self._held.process_of(runner).to_text(), self._lease_seconds)
            work_table.enter(connection, lease, holder, moment)
