"""The rows of MemoryQueue's work: the twin of work_table.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from .liveness import Process, Standing, new_token
from .queue_port import Claim, Lease, Work, WorkRow
from .room import Room, is_suspect
from .row_keys import DEADLINE, EXPIRY
from .work_table import LOOKS_FURTHER, PRECEDENCE_SECONDS, Answer, Moment, lost_line

Name = tuple[str, str]


@dataclass(frozen=True)
class MemoryHolder:
    """Who claims; `own` are the tokens it holds already."""

    runner: str
    process: Process
    lease_seconds: float
    own: Collection[str]
    suspected: Callable[[], bool] = lambda: False


@dataclass
class _Row:
    work: Work
    number: int
    offered_at: str = ""
    turn: int = 0
    ready: bool = False
    leased: bool = False
    claims: int = 0
    lost: tuple[str, ...] = ()
    withdrawn: bool = False
    again_at: float | None = None
    token: str | None = None
    holder: MemoryHolder | None = None
    boot_id: str = ""
    expires_at: float = 0.0
    claimed_at: str | None = None
    preferred: str | None = None
    preferred_until: float = 0.0

    @property
    def name(self) -> Name:
        return (self.work.run_id, self.work.key)

    @property
    def is_workflow(self) -> bool:
        return self.work.kind == "workflow"

    def free(self) -> None:
        self.leased, self.again_at = False, None
        self.token = self.holder = self.claimed_at = None

    def kept_for_another(self, runner: str | None, moment: Moment) -> bool:
        current = moment.elapsed <= self.preferred_until <= moment.elapsed + PRECEDENCE_SECONDS
        return current and self.preferred not in (None, runner)

    def losses(self, moment: Moment) -> tuple[str, ...]:
        if self.holder is None or self.boot_id != moment.boot_id:
            return self.lost
        return (*self.lost, lost_line(self.holder.runner, self.holder.process, self.claimed_at))

    def is_late(self, moment: Moment) -> bool:
        return not self.leased or self.expires_at <= moment.elapsed or self.boot_id != moment.boot_id

    def is_orphan(self, asking: Process | None = None) -> bool:
        return self.holder is not None and self.holder.process != asking and self.holder.process.gone()

    def standing(self, moment: Moment) -> Standing:
        if self.withdrawn:
            return "withdrawn"
        if self.token is None:
            return "queued"
        return "expired" if self.is_late(moment) or self.is_orphan() else "leased"

    def shown(self, moment: Moment) -> WorkRow:
        runner = self.holder.runner if self.holder else None
        return WorkRow(self.work, self.standing(moment), runner, self.claims, self.offered_at, self.claimed_at)


@dataclass
class MemoryWork:
    """`stuck` says which runs are, `beating` whether a runner's heartbeat is current."""

    stuck: Callable[[str], bool]
    beating: Callable[[str, Moment], bool]
    rows: dict[Name, _Row] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def enter(self, leases: Iterable[Lease], holder: MemoryHolder, moment: Moment) -> None:
        for lease in leases:
            name = (lease.work.run_id, lease.work.key)
            row = self.rows.setdefault(name, _Row(lease.work, next(self.numbers), moment.text, ready=True))
            if row.token is None:
                row.claims, row.lost, row.ready = lease.claims, lease.lost, True
                _hold(row, lease.token, holder, moment)

    def finish(self, leases: Iterable[Lease], runner: str, moment: Moment) -> None:
        for lease in leases:
            if lease.work.kind == "workflow":
                self.bodies[lease.work.run_id] = runner
            row = self._row_of(lease)
            if row is None:
                continue
            if row.again_at is None or row.withdrawn:
                del self.rows[row.name]
            else:
                self._place(row, replace(row.work, visible_at=row.again_at), moment)

    def release(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            row = self._row_of(lease)
            if row is None:
                continue
            row.free()
            row.claims = max(row.claims - 1, 0)
            if row.withdrawn:
                del self.rows[row.name]

    def offer(self, works: Iterable[Work], moment: Moment) -> None:
        for work in works:
            row = self.rows.get((work.run_id, work.key))
            if row is None:
                self._place(_Row(work, next(self.numbers)), work, moment)
            elif row.withdrawn:
                self._place(row, work, moment)
            elif row.is_workflow and row.token is not None:
                row.again_at = min(work.visible_at, row.again_at if row.again_at is not None else work.visible_at)
            elif row.is_workflow and not row.ready and work.visible_at < row.work.visible_at:
                self._place(row, work, moment)

    def withdraw(self, calls: Iterable[Name]) -> None:
        for name in calls:
            row = self.rows.get(name)
            if row is not None and row.leased:
                row.withdrawn = True
            elif row is not None:
                del self.rows[name]

    def forgive(self, run_ids: Collection[str]) -> None:
        for row in self.rows.values():
            if row.work.run_id in run_ids:
                row.lost = ()

    def claim(self, wanted: Claim, holder: MemoryHolder, moment: Moment) -> list[Lease]:
        due = [row for row in self.rows.values() if not row.ready and row.work.visible_at <= moment.now]
        for row in sorted(due, key=lambda row: (row.work.visible_at, row.number)):
            row.turn, row.ready = self._next_turn(row.work), True
        self._give_back(lambda row: row.is_late(moment), holder)
        leases = self._lease_some(wanted, holder, moment, ())
        wanting = replace(wanted, limit=wanted.limit - len(leases))
        # In this order as in SqliteQueue, which looks at processes only when it wants more.
        if wanting.limit and self._give_back(lambda row: row.is_orphan(holder.process), holder):
            leases += self._lease_some(wanting, holder, moment, leases)
        return leases

    def _lease_some(self, wanted: Claim, holder: MemoryHolder, moment: Moment, just: Sequence[Lease]) -> list[Lease]:
        free = [row for row in self.rows.values() if self._claimable(row) and _wants(wanted, row.work)]
        free = [row for row in free if row.token not in holder.own and not row.kept_for_another(holder.runner, moment)]
        free.sort(key=lambda row: (not row.is_workflow, row.turn, row.number))
        seen = free[: wanted.limit + LOOKS_FURTHER]
        lately = moment.lately
        seen.sort(
            key=lambda row: (not row.is_workflow, self._is_anothers(row, holder.runner) and row.offered_at > lately)
        )
        free = [*seen, *free[len(seen) :]]
        in_use = [(row.work.kind, row.work.name, 1) for row in self.rows.values() if row.leased]
        room = Room(wanted.limits, lambda: in_use, lambda: holder.suspected() or any(map(is_suspect, just)))
        leases: list[Lease] = []
        for row in free:
            if len(leases) < wanted.limit and room.takes(row.work, len(row.losses(moment))):
                if self._is_anothers(row, holder.runner):
                    self.bodies[row.work.run_id] = holder.runner
                leases.append(_lease(row, holder, moment))
        return leases

    def _give_back(self, ended: Callable[[_Row], bool], asking: MemoryHolder) -> bool:
        found = [row for row in self.rows.values() if row.leased and row.token not in asking.own and ended(row)]
        for row in found:
            row.leased = False
            if row.withdrawn:
                del self.rows[row.name]
        return bool(found)

    def renew(self, leases: Sequence[Lease], seconds: float, moment: Moment) -> dict[str, Answer]:
        return {lease.token: self._renew(lease, seconds, moment) for lease in leases}

    def forget(self, run_id: str) -> None:
        self.bodies.pop(run_id, None)
        self.rows = {name: row for name, row in self.rows.items() if name[0] != run_id}

    def moved(self) -> set[str]:
        """The runs of which there are rows that would move them."""
        works = [row.work for row in self.rows.values() if row.work.kind != "notify"]
        return {work.run_id for work in works if work.key != DEADLINE and not work.key.startswith(EXPIRY)}

    def shown(self, run_id: str | None, moment: Moment) -> list[WorkRow]:
        rows = sorted(self.rows.values(), key=lambda row: row.number)
        return [row.shown(moment) for row in rows if run_id in (None, row.work.run_id)]

    def next_visible(self, moment: Moment) -> float | None:
        later = [row.work.visible_at for row in self.rows.values() if not row.ready]
        kept = [row.preferred_until for row in self.rows.values() if row.kept_for_another(None, moment)]
        return min([*later, *(moment.now + until - moment.elapsed for until in kept)], default=None)

    def _renew(self, lease: Lease, seconds: float, moment: Moment) -> Answer:
        row = self._row_of(lease)
        if row is None:
            return "lost"
        row.leased, row.boot_id, row.expires_at = True, moment.boot_id, moment.elapsed + seconds
        return "withdrawn" if row.withdrawn else "held"

    def _claimable(self, row: _Row) -> bool:
        return row.ready and not row.leased and not self.stuck(row.work.run_id)

    def _is_anothers(self, row: _Row, runner: str) -> bool:
        """Whether it is a call of a run whose body another runner has."""
        return not row.is_workflow and self.bodies.get(row.work.run_id, runner) != runner

    def _place(self, row: _Row, work: Work, moment: Moment) -> None:
        turn = self._next_turn(work)
        self.rows[row.name] = row
        row.free()
        row.work, row.turn, row.ready = work, turn, work.visible_at <= moment.now
        row.claims, row.lost, row.withdrawn, row.offered_at = 0, (), False, moment.text
        body = self.bodies.get(work.run_id)
        row.preferred = body if row.is_workflow and body is not None and self.beating(body, moment) else None
        row.preferred_until = moment.elapsed + PRECEDENCE_SECONDS

    def _next_turn(self, work: Work) -> int:
        if work.kind == "workflow":
            waiting = [row for row in self.rows.values() if row.is_workflow and row.ready and not row.leased]
            return max((row.turn for row in waiting), default=-1) + 1
        calls = [row for row in self.rows.values() if not row.is_workflow]
        lowest = min((row.turn for row in calls if self._claimable(row)), default=0)
        return max(lowest, max((row.turn for row in calls if row.work.run_id == work.run_id), default=-1) + 1)

    def _row_of(self, lease: Lease) -> _Row | None:
        row = self.rows.get((lease.work.run_id, lease.work.key))
        return row if row is not None and row.token == lease.token else None


def _lease(row: _Row, holder: MemoryHolder, moment: Moment) -> Lease:
    row.lost = row.losses(moment)
    row.free()
    _hold(row, token := new_token(), holder, moment)
    row.claims += 1
    return Lease(row.work, token, row.claims, row.lost)


def _hold(row: _Row, token: str, holder: MemoryHolder, moment: Moment) -> None:
    row.leased, row.token, row.holder, row.preferred = True, token, holder, None
    row.boot_id, row.expires_at, row.claimed_at = moment.boot_id, moment.elapsed + holder.lease_seconds, moment.text


def _wants(claim: Claim, work: Work) -> bool:
    return claim.run_id in (None, work.run_id) and (not claim.kinds or work.kind in claim.kinds)
