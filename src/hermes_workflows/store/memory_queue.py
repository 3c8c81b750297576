"""MemoryQueue: the twin of SqliteQueue without a file, held to the same contract suite.

Handles made by `reopen()` share the rows, as processes share a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from threading import RLock

from ..core.clock import Clock
from .held import Held, is_past
from .liveness import Process, new_token
from .queue_port import Change, Claim, Indexed, Lease, ReviewRow, RunnerRow, Stuck, Work, WorkRow
from .rows import OPEN, merged, withdrawn
from .work_table import PRECEDENCE_SECONDS, Answer, Moment

Name = tuple[str, str]


@dataclass
class _Row:
    work: Work
    turn: int
    ready: bool
    number: int
    offered_at: str
    claims: int = 0
    leased: bool = False
    withdrawn: bool = False
    again_at: float | None = None
    token: str | None = None
    runner: str | None = None
    process: Process | None = None
    boot_id: str = ""
    expires_at: float = 0.0
    claimed_at: str | None = None
    preferred: str | None = None
    preferred_until: float = 0.0

    @property
    def is_workflow(self) -> bool:
        return self.work.kind == "workflow"

    def free(self) -> None:
        self.leased, self.again_at = False, None
        self.token = self.runner = self.process = self.claimed_at = None

    def kept_for_another(self, runner: str | None, moment: Moment) -> bool:
        current = moment.elapsed <= self.preferred_until <= moment.elapsed + PRECEDENCE_SECONDS
        return current and self.preferred not in (None, runner)

    def ran_out(self, moment: Moment, asking: Process | None = None) -> bool:
        late = not self.leased or self.expires_at <= moment.elapsed or self.boot_id != moment.boot_id
        return self.token is not None and (late or (self.process not in (None, asking) and self.process.gone()))


@dataclass
class _Shared:
    """The tables."""

    lock: RLock = field(default_factory=RLock)
    work: dict[Name, _Row] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Indexed] = field(default_factory=dict)
    reviews: dict[Name, ReviewRow] = field(default_factory=dict)
    stuck: dict[tuple[str, str, str, str], Stuck] = field(default_factory=dict)
    runners: dict[tuple[str, Process], RunnerRow] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)
    stamp: str = ""
    writes: int = 0


class MemoryQueue:
    """See `store.queue_port.Queue`; `rebuild` and `home` as in `SqliteQueue.open`."""

    def __init__(
        self,
        *,
        clock: Clock,
        lease_seconds: float = 30.0,
        rebuild: Callable[[], Iterable[Indexed]] = tuple,
        home: str | None = None,
        shared: _Shared | None = None,
    ) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._held = Held()
        self._shared = shared or _Shared()
        self._own_writes = 0
        if shared is None:
            for indexed in rebuild():
                self._put(indexed)
                if not indexed.summary.ended and home in (None, indexed.summary.home):
                    self._offer(Work(indexed.summary.run_id, "workflow"), Moment.of(clock))
        self._seen = self._shared.writes

    def reopen(self) -> MemoryQueue:
        """Another handle on the same rows: what a second process, or a restarted one, would have."""
        return MemoryQueue(clock=self._clock, lease_seconds=self._lease_seconds, shared=self._shared)

    def close(self) -> None:
        pass

    def apply(self, change: Change, runner: str) -> list[Lease]:
        moment = Moment.of(self._clock)
        with self._shared.lock:
            self._finish(change.finish, runner, moment)
            self._release(change.release)
            for work in change.offer:
                self._offer(work, moment)
            self._withdraw(change.withdraw)
            for indexed in change.index:
                self._put(indexed)
            for mark in change.stuck:
                self._mark(mark, moment)
            for run_id in change.unstuck:
                self._unstick(run_id)
            self._held.drop(lease.token for lease in (*change.finish, *change.release))
            claimed = self._claim(change.claim, runner, moment) if change.claim else []
            self._held.take(claimed, runner)
            if claimed or change != Change(claim=change.claim):
                self._wrote()
            return claimed

    def _finish(self, leases: Iterable[Lease], runner: str, moment: Moment) -> None:
        for lease in leases:
            if lease.work.kind == "workflow":
                self._shared.bodies[lease.work.run_id] = runner
            row = self._row_of(lease)
            if row is None:
                continue
            if row.again_at is None or row.withdrawn:
                del self._shared.work[_name(row.work)]
            else:
                self._place_anew(row, replace(row.work, visible_at=row.again_at), moment)

    def _release(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            row = self._row_of(lease)
            if row is None:
                continue
            row.free()
            row.claims = max(row.claims - 1, 0)
            if row.withdrawn:
                del self._shared.work[_name(row.work)]

    def _offer(self, work: Work, moment: Moment) -> None:
        row = self._shared.work.get(_name(work))
        if row is None:
            number = next(self._shared.numbers)
            row = _Row(work, self._next_turn(work), work.visible_at <= moment.now, number, moment.text)
            self._shared.work[_name(work)] = row
            self._prefer(row, moment)
        elif row.withdrawn:
            self._place_anew(row, work, moment)
        elif row.is_workflow and row.token is not None:
            row.again_at = min(work.visible_at, row.again_at if row.again_at is not None else work.visible_at)
        elif row.is_workflow and not row.ready and work.visible_at < row.work.visible_at:
            self._place_anew(row, work, moment)

    def _withdraw(self, calls: Iterable[Name]) -> None:
        for name in calls:
            row = self._shared.work.get(name)
            if row is not None and row.leased:
                row.withdrawn = True
            elif row is not None:
                del self._shared.work[name]

    def _claim(self, wanted: Claim, runner: str, moment: Moment) -> list[Lease]:
        for row in self._rows():
            if not row.ready and row.work.visible_at <= moment.now:
                row.turn, row.ready = self._next_turn(row.work), True
        self._expire(runner, moment)
        free = [
            row
            for row in self._rows()
            if self._claimable(row) and _wanted(row.work, wanted) and not row.kept_for_another(runner, moment)
        ]
        free.sort(key=lambda row: (not row.is_workflow, row.turn, row.number))
        return [self._lease(row, runner, moment) for row in free[: wanted.limit]]

    def _expire(self, runner: str, moment: Moment) -> None:
        own, process = self._held.tokens(runner), self._held.process_of(runner)
        for row in self._rows():
            if row.leased and row.token not in own and row.ran_out(moment, process):
                row.leased = False
                if row.withdrawn:
                    del self._shared.work[_name(row.work)]

    def _claimable(self, row: _Row) -> bool:
        return row.ready and not row.leased and row.work.run_id not in self._stuck_runs()

    def _lease(self, row: _Row, runner: str, moment: Moment) -> Lease:
        row.free()
        row.leased, row.token, row.runner, row.preferred = True, new_token(), runner, None
        row.process, row.boot_id = self._held.process_of(runner), moment.boot_id
        row.expires_at, row.claimed_at = moment.elapsed + self._lease_seconds, moment.text
        row.claims += 1
        return Lease(row.work, row.token, row.claims)

    def _place_anew(self, row: _Row, work: Work, moment: Moment) -> None:
        row.free()
        row.work, row.turn, row.ready = work, self._next_turn(work), work.visible_at <= moment.now
        row.claims, row.withdrawn, row.offered_at = 0, False, moment.text
        self._prefer(row, moment)

    def _prefer(self, row: _Row, moment: Moment) -> None:
        runner = self._shared.bodies.get(row.work.run_id)
        current = (
            beat.runner_id == runner
            and beat.boot_id == moment.boot_id
            and beat.elapsed + beat.lease_seconds > moment.elapsed
            for beat in self._shared.runners.values()
        )
        row.preferred = runner if row.is_workflow and any(current) else None
        row.preferred_until = moment.elapsed + PRECEDENCE_SECONDS

    def _next_turn(self, work: Work) -> int:
        if work.kind == "workflow":
            ready = [row.turn for row in self._rows() if row.is_workflow and row.ready and not row.leased]
            return max(ready, default=-1) + 1
        waiting = [row.turn for row in self._rows() if not row.is_workflow and self._claimable(row)]
        own = [row.turn for row in self._rows() if not row.is_workflow and row.work.run_id == work.run_id]
        return max(min(waiting, default=0), max(own, default=-1) + 1)

    def renew(self, leases: Sequence[Lease], seconds: float) -> dict[str, Answer]:
        moment = Moment.of(self._clock)
        with self._shared.lock:
            answers = {lease.token: self._renew(lease, seconds, moment) for lease in leases}
            self._held.drop(token for token, answer in answers.items() if answer == "lost")
            self._wrote()
            return answers

    def _renew(self, lease: Lease, seconds: float, moment: Moment) -> Answer:
        row = self._row_of(lease)
        if row is None:
            return "lost"
        row.leased, row.boot_id, row.expires_at = True, moment.boot_id, moment.elapsed + seconds
        return "withdrawn" if row.withdrawn else "held"

    def heartbeat(self, row: RunnerRow) -> None:
        with self._shared.lock:
            if self._held.beats(row):
                past = [name for name, old in self._shared.runners.items() if is_past(old, row)]
                for name in past:
                    del self._shared.runners[name]
            self._shared.runners[row.runner_id, Process.of(row)] = row
            self._wrote()

    def goodbye(self, runner_id: str) -> None:
        with self._shared.lock:
            row = self._held.heartbeats.pop(runner_id, None)
            for name in [name for name in self._shared.runners if name[0] == runner_id]:
                if row is None or name[1] == Process.of(row):
                    del self._shared.runners[name]
            self._wrote()

    def runners(self) -> list[RunnerRow]:
        with self._shared.lock:
            return sorted(self._shared.runners.values(), key=lambda row: (row.started_at, row.runner_id, row.pid))

    def indexed(self, run_id: str) -> Indexed | None:
        return self._shared.runs.get(run_id)

    def list_indexed(self, *, status: str | None = None, limit: int = 50, offset: int = 0) -> list[Indexed]:
        with self._shared.lock:
            found = [row for row in self._shared.runs.values() if status in (None, row.summary.status)]
        found.sort(key=lambda row: (row.summary.started_at or "", row.summary.run_id), reverse=True)
        return found[offset : offset + limit]

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        with self._shared.lock:
            return sorted(run_id for run_id in self._shared.runs if run_id.startswith(prefix))[:limit]

    def tips(self) -> dict[str, tuple[str, bool]]:
        with self._shared.lock:
            return {run_id: (row.tip, row.sealed) for run_id, row in self._shared.runs.items()}

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]:
        with self._shared.lock:
            rows = list(self._shared.reviews.values())
        found = [row for row in rows if run_id in (None, row.run_id) and status in (None, row.status)]
        return sorted(found, key=lambda row: (row.requested_at or "", row.run_id, row.key))

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        with self._shared.lock:
            found = [mark for mark in self._shared.stuck.values() if run_id in (None, mark.run_id)]
        return sorted(found, key=lambda mark: (mark.since, mark.run_id, mark.kind, mark.key))

    def work(self, run_id: str | None = None) -> list[WorkRow]:
        moment = Moment.of(self._clock)
        with self._shared.lock:
            rows = [row for row in self._rows() if run_id in (None, row.work.run_id)]
            return [_shown(row, moment) for row in sorted(rows, key=lambda row: row.number)]

    def forget(self, run_id: str) -> None:
        shared = self._shared
        with shared.lock:
            shared.runs.pop(run_id, None)
            shared.bodies.pop(run_id, None)
            shared.work = {name: row for name, row in shared.work.items() if name[0] != run_id}
            shared.reviews = {name: row for name, row in shared.reviews.items() if name[0] != run_id}
            self._unstick(run_id)
            self._wrote()

    def changed(self) -> bool:
        with self._shared.lock:
            others = self._shared.writes - self._own_writes
            changed, self._seen = others != self._seen, others
            return changed

    def next_visible(self) -> float | None:
        moment = Moment.of(self._clock)
        with self._shared.lock:
            later = [row.work.visible_at for row in self._rows() if not row.ready]
            kept = [row for row in self._rows() if row.kept_for_another(None, moment)]
            return min(later + [moment.now + row.preferred_until - moment.elapsed for row in kept], default=None)

    def stamp(self) -> str:
        return self._shared.stamp

    def put_stamp(self, value: str) -> None:
        with self._shared.lock:
            self._shared.stamp = value
            self._wrote()

    def _put(self, indexed: Indexed) -> None:
        shared, summary = self._shared, indexed.summary
        known = shared.runs.get(summary.run_id)
        if known is None or summary.seq >= known.summary.seq:
            shared.runs[summary.run_id] = replace(indexed, reviews=())
        for review in indexed.reviews:
            name = (review.run_id, review.key)
            shared.reviews[name] = merged(shared.reviews.get(name), review)
        if summary.ended:
            self._close(summary.run_id)

    def _close(self, run_id: str) -> None:
        self._unstick(run_id)
        self._shared.bodies.pop(run_id, None)
        for review in self.reviews(run_id=run_id, status=OPEN):
            self._shared.reviews[run_id, review.key] = withdrawn(review)

    def _mark(self, mark: Stuck, moment: Moment) -> None:
        name = (mark.run_id, mark.kind, mark.key, mark.code)
        known = self._shared.stuck.get(name)
        self._shared.stuck[name] = replace(mark, since=known.since if known else mark.since or moment.text)

    def _unstick(self, run_id: str) -> None:
        self._shared.stuck = {name: mark for name, mark in self._shared.stuck.items() if name[0] != run_id}

    def _stuck_runs(self) -> set[str]:
        return {name[0] for name in self._shared.stuck}

    def _rows(self) -> list[_Row]:
        return list(self._shared.work.values())

    def _row_of(self, lease: Lease) -> _Row | None:
        row = self._shared.work.get(_name(lease.work))
        return row if row is not None and row.token == lease.token else None

    def _wrote(self) -> None:
        self._shared.writes += 1
        self._own_writes += 1


def _name(work: Work) -> Name:
    return (work.run_id, work.key)


def _wanted(work: Work, claim: Claim) -> bool:
    return claim.run_id in (None, work.run_id) and (not claim.kinds or work.kind in claim.kinds)


def _shown(row: _Row, moment: Moment) -> WorkRow:
    if row.withdrawn:
        status = "withdrawn"
    elif row.token is None:
        status = "queued"
    else:
        status = "expired" if row.ran_out(moment) else "leased"
    return WorkRow(row.work, status, row.runner, row.claims, row.offered_at, row.claimed_at)  # type: ignore[arg-type]
