"""The queue's rows: what offers, claims, renewals and endings do to them, inside somebody else's transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection, Row
from typing import Any, Literal

from ..core.clock import Clock
from ..core.timestamps import render_time
from . import sql
from .liveness import Process, new_token
from .queue_port import DECIDING, Claim, Lease, Work, WorkRow
from .room import SUSPECT_LOSSES, Room
from .rows import work_of, work_row_of
from .texts import dump, load

Answer = Literal["held", "withdrawn", "lost"]

# How long the runner that last advanced a run has its workflow row to itself: it need not replay the body.
PRECEDENCE_SECONDS = 0.2

# For how long after it was offered a call is left to the runner that has its run's body, by whoever has other work;
# and how many rows beyond those that it wants a claimer looks at for such work.
LATELY_SECONDS = 1.0
LOOKS_FURTHER = 24


@dataclass(frozen=True)
class Moment:
    """One reading of the clock for a whole transaction."""

    now: float
    text: str
    elapsed: float
    boot_id: str

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        now = clock.now()
        return cls(now.timestamp(), render_time(now), clock.elapsed(), clock.boot_id)

    @property
    def lately(self) -> str:
        """What was offered after this was offered lately."""
        return render_time(datetime.fromtimestamp(self.now - LATELY_SECONDS, UTC))

    def precedence(self) -> dict[str, Any]:
        """A preference that ends later than this is one of another boot."""
        return {"elapsed": self.elapsed, "precedence_ends": self.elapsed + PRECEDENCE_SECONDS}


@dataclass(frozen=True)
class Holder:
    """Who claims, for how many seconds, through which process, and the tokens that it holds already."""

    runner: str
    process: str
    lease_seconds: float
    own: Collection[str] = ()


def finish(connection: Connection, leases: Iterable[Lease], runner: str, moment: Moment) -> None:
    for lease in leases:
        row = _row_of(lease)
        if lease.work.kind == "workflow":
            connection.execute(sql.KEEP_BODY, {"run_id": lease.work.run_id, "runner": runner})
        if connection.execute(sql.FINISH, row).rowcount:
            continue
        if again := connection.execute(sql.LEASED, row).fetchone():
            _place_anew(connection, again["id"], lease.work, again["again_at"], moment)


def release(connection: Connection, leases: Iterable[Lease]) -> None:
    for lease in leases:
        row = _row_of(lease)
        if not connection.execute(sql.RELEASE, row).rowcount:
            connection.execute(sql.RELEASE_WITHDRAWN, row)


def offer(connection: Connection, works: Iterable[Work], moment: Moment) -> None:
    for work in works:
        values = _offered(work, work.visible_at, moment, _next_turn(connection, work.run_id, work.kind))
        if not connection.execute(sql.OFFER, values).rowcount:
            _offer_existing(connection, work, moment)
        elif work.kind == "workflow":
            _prefer(connection, work.run_id, moment)


def _offer_existing(connection: Connection, work: Work, moment: Moment) -> None:
    row = connection.execute(sql.FIND, {"run_id": work.run_id, "key": work.key}).fetchone()
    if row["withdrawn"]:
        _place_anew(connection, row["id"], work, work.visible_at, moment)
    elif work.kind != "workflow":
        return
    elif row["token"] is not None:
        # Also when that lease has run out: a slow holder may still finish the row, and the turn would be lost.
        connection.execute(sql.OFFER_AGAIN, {"id": row["id"], "visible_at": work.visible_at})
    elif row["state"] == "later" and work.visible_at < row["visible_at"]:
        # A run that was put off is wanted now: what a person answered does not wait for a backoff.
        _place_anew(connection, row["id"], work, work.visible_at, moment)


def withdraw(connection: Connection, calls: Iterable[tuple[str, str]]) -> None:
    for run_id, key in calls:
        names = {"run_id": run_id, "key": key}
        if not connection.execute(sql.WITHDRAW_FREE, names).rowcount:
            connection.execute(sql.WITHDRAW_LEASED, names)


def renew(connection: Connection, leases: Sequence[Lease], seconds: float, moment: Moment) -> dict[str, Answer]:
    until = {"boot_id": moment.boot_id, "expires_at": moment.elapsed + seconds}
    answers: dict[str, Answer] = {}
    for lease in leases:
        connection.execute(sql.RENEW, {**_row_of(lease), **until})
        row = connection.execute(sql.LEASED, _row_of(lease)).fetchone()
        answers[lease.token] = "lost" if row is None else "withdrawn" if row["withdrawn"] else "held"
    return answers


def make_ready(connection: Connection, moment: Moment) -> None:
    """Rows whose time has come queue up behind those that already wait."""
    for row in connection.execute(sql.DUE, {"now": moment.now}).fetchall():
        turn = _next_turn(connection, row["run_id"], row["kind"])
        connection.execute(sql.MAKE_READY, {"id": row["id"], "turn": turn})


def expire(connection: Connection, moment: Moment, own: Collection[str]) -> None:
    """Leases that ran out become claimable; never those of `own` tokens, whose holder is here and awake.

    After a suspend every lease has run out at once, and nobody should then run his own calls twice.
    """
    _give_back(connection, connection.execute(sql.RAN_OUT, _time(moment)), own)


def expire_dead(connection: Connection, own: Collection[str], asking: Holder) -> bool:
    """The same for leases whose process is over; says whether there were any."""
    others = [row["holder"] for row in connection.execute(sql.HOLDERS) if row["holder"] != asking.process]
    dead = [holder for holder in others if Process.of_holder(holder).gone()]
    for holder in dead:
        _give_back(connection, connection.execute(sql.HELD_BY, {"holder": holder}), own)
    return bool(dead)


def _give_back(connection: Connection, rows: Iterable[Row], own: Collection[str]) -> None:
    for row in list(rows):
        if row["token"] not in own:
            connection.execute(sql.DROP if row["withdrawn"] else sql.EXPIRE, {"id": row["id"]})


def claim(
    connection: Connection, wanted: Claim, holder: Holder, moment: Moment, suspected: Callable[[], bool]
) -> list[Lease]:
    room = Room(wanted.limits, lambda: map(tuple, connection.execute(sql.IN_USE)), suspected)
    leases: list[Lease] = []
    while (left := wanted.limit - len(leases)) > 0:
        found = _claimable(connection, wanted, left, room, holder, moment)
        claims = [(row, lost) for row in found if room.takes(work_of(row), len(lost := _lost(row, moment)))]
        leases += [_claim(connection, row, lost, holder, moment) for row, lost in claims]
        if len(claims) == len(found) or len(found) < left:
            break
    return leases


def _claimable(
    connection: Connection, wanted: Claim, limit: int, room: Room, holder: Holder, moment: Moment
) -> list[Row]:
    values = {
        "run_id": wanted.run_id,
        "kinds": f"|{'|'.join(wanted.kinds)}|" if wanted.kinds else "",
        "limit": limit,
        "seen": limit + LOOKS_FURTHER,
        "lately": moment.lately,
        "runner": holder.runner,
        "own": dump(sorted(holder.own)),
        **moment.precedence(),
    }
    if room.is_narrow:
        values |= {"full": dump(room.full), "no_suspects": room.no_suspects, "suspect": SUSPECT_LOSSES}
        values["boot_id"] = moment.boot_id
    statement = sql.claimable(deciding=wanted.kinds == DECIDING, beside=room.is_narrow)
    return connection.execute(statement, values).fetchall()


def _claim(connection: Connection, row: Row, lost: tuple[str, ...], holder: Holder, moment: Moment) -> Lease:
    lease = Lease(work_of(row), new_token(), row["claims"], lost)
    held = _held(lease.token, holder, moment)
    connection.execute(sql.CLAIM, {"id": row["id"], "lost": dump(list(lost)) if lost else None, **held})
    if row["is_anothers"]:
        connection.execute(sql.KEEP_BODY, {"run_id": row["run_id"], "runner": holder.runner})
    return lease


def _lost(row: Row, moment: Moment) -> tuple[str, ...]:
    """Who was lost in this row, with whoever still stands in it. A restart of the machine is nobody's fault."""
    lost = tuple(load(row["lost"])) if row["lost"] else ()
    if row["token"] is None or row["boot_id"] != moment.boot_id:
        return lost
    return (*lost, lost_line(row["runner"], Process.of_holder(row["holder"]), row["claimed_at"]))


def lost_line(runner: str, process: Process, claimed_at: str | None) -> str:
    """One loss, for people."""
    how = "died" if process.gone() else "let its lease run out"
    return f"{runner} (pid {process.pid} on {process.host}) took it at {claimed_at} and {how}"


def rows(connection: Connection, run_id: str | None) -> list[Row]:
    return connection.execute(sql.narrowed(sql.WORK, run_id=run_id), {"run_id": run_id}).fetchall()


def unqueued(connection: Connection) -> list[tuple[str, str]]:
    return [(row["run_id"], row["tip"]) for row in connection.execute(sql.UNQUEUED)]


def shown(row: Row, moment: Moment) -> WorkRow:
    return work_row_of(row, moment.elapsed, moment.boot_id)


def next_visible(connection: Connection, moment: Moment) -> float | None:
    (visible,) = connection.execute(sql.NEXT_VISIBLE).fetchone()
    (until,) = connection.execute(sql.NEXT_UNPREFERRED, moment.precedence()).fetchone()
    times = [visible, None if until is None else moment.now + until - moment.elapsed]
    return min((time for time in times if time is not None), default=None)


def enter(connection: Connection, lease: Lease, holder: Holder, moment: Moment) -> None:
    """Put a lease there that is held without a row: that vanished with the file, or has not been made yet."""
    work = lease.work
    values = {
        "run_id": work.run_id,
        "key": work.key,
        "kind": work.kind,
        "name": work.name,
        "fingerprint": work.fingerprint,
        "visible_at": work.visible_at,
        "claims": lease.claims,
        "lost": dump(list(lease.lost)) if lease.lost else None,
    }
    connection.execute(sql.ENTER_LEASE, {**values, **_held(lease.token, holder, moment)})


def _place_anew(connection: Connection, row_id: int, work: Work, visible_at: float, moment: Moment) -> None:
    turn = _next_turn(connection, work.run_id, work.kind)
    connection.execute(sql.OFFER_ANEW, {"id": row_id, **_offered(work, visible_at, moment, turn)})
    if work.kind == "workflow":
        _prefer(connection, work.run_id, moment)


def _prefer(connection: Connection, run_id: str, moment: Moment) -> None:
    until = moment.elapsed + PRECEDENCE_SECONDS
    connection.execute(
        sql.PREFER, {"run_id": run_id, "until": until, "elapsed": moment.elapsed, "boot_id": moment.boot_id}
    )


def _next_turn(connection: Connection, run_id: str, kind: str) -> int:
    if kind == "workflow":
        return int(connection.execute(sql.NEXT_WORKFLOW_TURN).fetchone()[0])
    return int(connection.execute(sql.NEXT_CALL_TURN, {"run_id": run_id}).fetchone()[0])


def _offered(work: Work, visible_at: float, moment: Moment, turn: int) -> dict[str, Any]:
    return {
        "run_id": work.run_id,
        "key": work.key,
        "kind": work.kind,
        "name": work.name,
        "fingerprint": work.fingerprint,
        "state": "later" if visible_at > moment.now else "ready",
        "turn": turn,
        "visible_at": visible_at,
        "offered_at": moment.text,
    }


def _held(token: str, holder: Holder, moment: Moment) -> dict[str, Any]:
    return {
        "token": token,
        "runner": holder.runner,
        "holder": holder.process,
        "boot_id": moment.boot_id,
        "expires_at": moment.elapsed + holder.lease_seconds,
        "claimed_at": moment.text,
    }


def _row_of(lease: Lease) -> dict[str, str]:
    return {"run_id": lease.work.run_id, "key": lease.work.key, "token": lease.token}


def _time(moment: Moment) -> dict[str, Any]:
    return {"elapsed": moment.elapsed, "boot_id": moment.boot_id}
