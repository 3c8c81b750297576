"""Drives one run to where nothing more can happen: the runner's own dispatcher, with scripts and a clock that jumps.

While something executes for real, the clock stands still, unless a timer is due that could overtake it: then it goes
at the pace of the world. When nothing executes, questions are answered; then time jumps to whatever is due next.
"""

from __future__ import annotations

import heapq
import queue
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

from ..clock import SystemClock
from ..core.receipts import Failure
from ..runner.dispatch import Dispatcher
from ..runner.executors import execute
from ..runner.jobs import Executed, Job, Surroundings
from ..runner.pool import Pool
from ..runner.records import Records
from ..runner.results import Attempted, Finished
from ..store.queue_port import Lease
from ..workspace import Workspace
from .clocks import MovableClock
from .failures import HIDDEN, Halt, TookTooLong
from .people import People
from .stand_ins import Played, StandIns
from .traces import quiet_decider

__tracebackhide__ = HIDDEN

# Calls in hand at once; only what executes for real needs a thread.
_SLOTS = 10_000
_THREADS = 4
# What comes back for ever while a run waits, and moves nothing: children are looked at, people reminded.
_NO_REASON = frozenset({"child", "notify"})
# How long executing commands get to be killed when the test is over before they are.
_PARTING_SECONDS = 3.0


@dataclass
class _Scheduled:
    """A scripted call whose answer comes later."""

    lease: Lease
    job: Job
    played: Played
    started: datetime


class Driver:
    """`timeout` is in seconds of the real world. Single-threaded but for what executes."""

    def __init__(
        self,
        workspace: Workspace,
        clock: MovableClock,
        stand_ins: StandIns,
        people: People,
        timeout: float,
    ) -> None:
        self._workspace = workspace
        self._clock = clock
        self._stand_ins = stand_ins
        self._people = people
        self._timeout = timeout
        self._world = SystemClock()
        self.decider = quiet_decider()
        self.records = Records(workspace, "test", self.decider)
        around = Surroundings(workspace.root, workspace.environment, workspace.redactor, clock)
        self._dispatcher = Dispatcher(self.records, around, self._start)
        self._pool = Pool(_THREADS)
        self._inbox: queue.SimpleQueue[Finished | Attempted] = queue.SimpleQueue()
        self._events: list[Finished | Attempted] = []
        self._executing: dict[str, Job] = {}
        self._scheduled: dict[str, _Scheduled] = {}
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()

    def run(self) -> None:
        """Raises TookTooLong, Unscripted, ReplayMismatch, and whatever assertion a script fails."""
        self._deadline = self._world.elapsed() + self._timeout
        try:
            while self._goes_on():
                if self._world.elapsed() >= self._deadline:
                    raise TookTooLong(self._too_long())
        except Halt as halt:
            raise halt.failure from halt.failure.__cause__
        finally:
            self._end()

    def _goes_on(self) -> bool:
        claimed = self._dispatcher.turn(_SLOTS - len(self._dispatcher.active), None)
        self._drop_withdrawn()
        if self._record() or claimed or self._dispatcher.has_more:
            return True
        if self._executing:
            self._wait()
            return True
        return self._tell_people() or self._jump()

    # -- calls -----------------------------------------------------------------------------------------------

    def _start(self, lease: Lease, job: Job) -> None:
        now = self._clock.now()
        try:
            played = self._stand_ins.play(job)
        except AssertionError as failure:
            raise Halt(failure) from failure
        if played is None:
            self._executing[lease.token] = job
            self._pool.submit(lambda: self._execute(lease, job))
            return
        self._events += [Attempted(job, attempt) for attempt in played.attempts]
        if played.delay <= 0:
            self._events.append(Finished(job, lease, played.executed, now, now))
            return
        self._scheduled[lease.token] = _Scheduled(lease, job, played, now)
        self._at(now + timedelta(seconds=played.delay), lambda: self._finish(lease.token))

    def _execute(self, lease: Lease, job: Job) -> None:
        executed, started, ended = execute(job, lambda attempt: self._inbox.put(Attempted(job, attempt)))
        self._inbox.put(Finished(job, lease, executed, started, ended))

    def _finish(self, token: str) -> None:
        if (due := self._scheduled.pop(token, None)) is not None:
            self._events.append(Finished(due.job, due.lease, due.played.executed, due.started, self._clock.now()))

    def _drop_withdrawn(self) -> None:
        for token, due in list(self._scheduled.items()):
            if due.job.stop.is_set():
                del self._scheduled[token]
                failure = Failure(type="Cancelled", message=f"stopped while it ran: {due.job.stop.reason}")
                executed = Executed("cancelled", error=failure, mock=True)
                self._events.append(Finished(due.job, due.lease, executed, due.started, self._clock.now()))

    def _record(self) -> bool:
        while not self._inbox.empty():
            self._received(self._inbox.get())
        events, self._events = self._events, []
        self._dispatcher.record(events)
        return bool(events)

    def _received(self, event: Finished | Attempted) -> None:
        self._events.append(event)
        if isinstance(event, Finished):
            self._executing.pop(event.lease.token, None)

    # -- time ------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """For what executes, and no longer than until something else is due."""
        began, due = self._world.elapsed(), self._next_due()
        limit = max(self._deadline - began, 0.0)
        if due is not None:
            limit = min(limit, (due - self._clock.now()).total_seconds())
        with suppress(queue.Empty):
            self._received(self._inbox.get(timeout=limit))
        if due is not None:
            passed = timedelta(seconds=self._world.elapsed() - began)
            self._move_to(min(self._clock.now() + passed, due))

    def _jump(self) -> bool:
        due = self._next_due()
        if due is not None:
            self._move_to(due)
        return due is not None

    def _move_to(self, moment: datetime) -> None:
        self._clock.move_to(moment)
        while self._due and self._due[0][0] <= self._clock.now():
            heapq.heappop(self._due)[2]()

    def _at(self, moment: datetime, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._numbers), act))

    def _next_due(self) -> datetime | None:
        ours = [self._due[0][0]] if self._due else []
        return min([*ours, *self._rows_due()], default=None)

    def _rows_due(self) -> Iterator[datetime]:
        queued, now = self._workspace.queue, self._clock.now()
        stuck = {mark.run_id for mark in queued.stuck()}
        for row in queued.work():
            if row.status == "queued" and row.work.kind not in _NO_REASON and row.work.run_id not in stuck:
                moment = _moment(row.work.visible_at)
                if moment > now:
                    yield moment

    # -- people ----------------------------------------------------------------------------------------------

    def _tell_people(self) -> bool:
        """Give the answers that come at once, note when the others come; says whether there was anything new."""
        told = False
        for delay, act in self._people.news():
            told = True
            if delay > 0:
                self._at(self._clock.now() + timedelta(seconds=delay), act)
            else:
                act()
        return told

    # -- the end ---------------------------------------------------------------------------------------------

    def _too_long(self) -> str:
        doing = ", ".join(f"{job.call.kind} {job.call.key!r}" for job in self._executing.values())
        receipts = sum(row.summary.receipts for row in self._workspace.queue.list_indexed())
        what = f"{doing} is still executing" if doing else f"it goes on and on, with {receipts} receipts so far"
        return f"the run is not over after {self._timeout:g} s: {what}"

    def _end(self) -> None:
        self._dispatcher.stop_all()
        until = self._world.elapsed() + _PARTING_SECONDS
        while self._executing and (left := until - self._world.elapsed()) > 0:
            try:
                self._received(self._inbox.get(timeout=left))
            except queue.Empty:
                break
        self._pool.close()
        self.records.bodies.close()

    def close(self) -> None:
        self.decider.close()


def _moment(seconds: float) -> datetime:
    """Never before `seconds`, whatever is lost between floats and microseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment if moment.timestamp() >= seconds else moment + timedelta(microseconds=1)
