"""The queue of leases, said a second time: a dict of rows. Which of several rows a claim takes is not foretold; whether
it might take them is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LEASE_SECONDS = 30.0
SUSPECT = 2
DECIDING = ("workflow", "timer", "child")

Name = tuple[str, str]
"""A run and a key of it; the key of the run itself is ""."""


@dataclass
class Row:
    kind: str
    visible_at: float = 0.0
    token: int | None = None
    holder: str | None = None
    leased: bool = False
    expires_at: float = 0.0
    claims: int = 0
    lost: int = 0
    withdrawn: bool = False
    again: bool = False

    def losses(self) -> int:
        """How many claimers were lost in it, once somebody claims it now."""
        return self.lost + (self.token is not None)

    def standing(self, elapsed: float) -> str:
        if self.withdrawn:
            return "withdrawn"
        if self.token is None:
            return "queued"
        return "leased" if self.leased and self.expires_at > elapsed else "expired"


@dataclass(frozen=True)
class Lease:
    """As whoever claimed the row knows it."""

    name: Name
    token: int
    kind: str
    claims: int
    lost: int


@dataclass
class Change:
    """What one transaction does, in this order."""

    finish: list[Lease] = field(default_factory=list)
    release: list[Lease] = field(default_factory=list)
    offer: list[tuple[Name, str, float]] = field(default_factory=list)
    withdraw: list[Name] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    stuck: list[str] = field(default_factory=list)
    unstuck: list[str] = field(default_factory=list)

    def wake(self, run_id: str) -> None:
        self.offer.append(((run_id, ""), "workflow", 0.0))


class Rows:
    def __init__(self) -> None:
        self.rows: dict[Name, Row] = {}
        self.stuck: set[str] = set()
        self.held: dict[str, dict[int, Lease]] = {}
        self._tokens = 0

    def of(self, run_id: str) -> list[tuple[str, Row]]:
        return [(key, row) for (run, key), row in self.rows.items() if run == run_id]

    def apply(self, change: Change, owner: str) -> None:
        for lease in change.finish:
            self._finish(lease)
        for lease in change.release:
            self._release(lease)
        for lease in (*change.finish, *change.release):
            self.held.get(owner, {}).pop(lease.token, None)
        for name, kind, visible_at in change.offer:
            self._offer(name, kind, visible_at)
        for name in change.withdraw:
            self._withdraw(name)
        self.stuck.update(change.stuck)
        for run_id in change.unstuck:
            self.stuck.discard(run_id)
            for _, row in self.of(run_id):
                row.lost = 0

    def _mine(self, lease: Lease) -> Row | None:
        """The row of a lease, unless somebody else has claimed it since: an old token moves nothing."""
        row = self.rows.get(lease.name)
        return row if row is not None and row.token == lease.token else None

    def _finish(self, lease: Lease) -> None:
        row = self._mine(lease)
        if row is None:
            return
        if row.again and not row.withdrawn:
            self.rows[lease.name] = Row(row.kind)
        else:
            del self.rows[lease.name]

    def _release(self, lease: Lease) -> None:
        row = self._mine(lease)
        if row is None:
            return
        if row.withdrawn:
            del self.rows[lease.name]
        else:
            self.rows[lease.name] = Row(row.kind, row.visible_at, claims=max(row.claims - 1, 0), lost=row.lost)

    def _offer(self, name: Name, kind: str, visible_at: float) -> None:
        row = self.rows.get(name)
        if row is None or row.withdrawn:
            self.rows[name] = Row(kind, visible_at)
        elif kind == "workflow" and row.token is not None:
            row.again = True

    def _withdraw(self, name: Name) -> None:
        row = self.rows.get(name)
        if row is not None and row.leased:
            row.withdrawn = True
        elif row is not None:
            del self.rows[name]

    def renew(self, leases: Iterable[Lease], owner: str, elapsed: float) -> dict[Name, str]:
        answers = {}
        for lease in leases:
            row = self._mine(lease)
            if row is None:
                answers[lease.name] = "lost"
                self.held[owner].pop(lease.token, None)
            else:
                row.leased, row.expires_at = True, elapsed + LEASE_SECONDS
                answers[lease.name] = "withdrawn" if row.withdrawn else "held"
        return answers

    def claim(self, owner: str, limit: int, taken: Sequence[Name], now: float, elapsed: float) -> list[Lease]:
        """Give `taken`, which the real queue gave, to `owner`. Raises AssertionError when it may not have been."""
        own = self.held.setdefault(owner, {})
        for name, row in list(self.rows.items()):
            if row.leased and row.expires_at <= elapsed and row.token not in own:
                row.leased = False
                if row.withdrawn:
                    del self.rows[name]
        free = {name: row for name, row in self._claimable(now).items() if row.token not in own}
        self._check(free, own.values(), limit, taken)
        return [self._claim(owner, name, elapsed) for name in taken]

    def _claimable(self, now: float) -> dict[Name, Row]:
        free = {name: row for name, row in self.rows.items() if not row.leased and row.visible_at <= now}
        return {name: row for name, row in free.items() if name[0] not in self.stuck}

    def _check(self, free: dict[Name, Row], own: Iterable[Lease], limit: int, taken: Sequence[Name]) -> None:
        assert len(set(taken)) == len(taken), f"claimed twice: {taken}"
        assert set(taken) <= set(free), f"not to be claimed: {sorted(set(taken) - set(free))}"
        suspects = {name for name, row in free.items() if row.kind != "workflow" and row.losses() >= SUSPECT}
        room = 0 if any(lease.kind != "workflow" and lease.lost >= SUSPECT for lease in own) else 1
        assert len(suspects & set(taken)) <= room, f"suspects beside each other: {suspects & set(taken)}"
        most = len(free) - len(suspects) + min(room, len(suspects))
        assert len(taken) >= min(limit, most), f"{len(taken)} of {most}, and not {sorted(set(free) - set(taken))}"
        runs = {name for name, row in free.items() if row.kind == "workflow"}
        assert runs <= set(taken) or set(taken) <= runs, f"calls came before runs: {taken}"
        # Deciding needs no executor: whoever has his fill of work gets that as well, some rows at a time.
        deciding = {name for name, row in free.items() if row.kind in DECIDING}
        assert len(set(taken) - deciding) <= max(limit - len(runs), 0), f"more than {limit} were claimed: {taken}"
        waiting = deciding - suspects - set(taken)
        assert len(taken) < limit or not waiting, f"nobody decides for {sorted(waiting)}"

    def _claim(self, owner: str, name: Name, elapsed: float) -> Lease:
        self._tokens += 1
        old = self.rows[name]
        row = Row(old.kind, old.visible_at, self._tokens, owner, True, elapsed + LEASE_SECONDS)
        row.claims, row.lost = old.claims + 1, old.losses()
        self.rows[name] = row
        lease = Lease(name, self._tokens, row.kind, row.claims, row.lost)
        self.held[owner][lease.token] = lease
        return lease
