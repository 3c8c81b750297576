"""From the rows of index and queue to the facts that core/states.py decides on.

Light on purpose: the fast `status` imports this, so neither pydantic nor dulwich may come in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .core.durations import lasting
from .core.names import run_component
from .core.state_facts import (
    DEADLINE_PASSED,
    REPEATED_CLAIMS,
    Asked,
    Below,
    Executing,
    Facts,
    Mark,
    is_deadline,
)
from .core.states import OperationalState, operational_state
from .core.timestamps import parse_time, render_time
from .lives import elsewhere, living, named, told, unable, who_lost
from .store import peek
from .store.row_keys import DEADLINE, EXPIRY

if TYPE_CHECKING:
    from pathlib import Path

    from .core.clock import Clock
    from .core.summary import OpenReview, RunSummary
    from .registry import DatabasePaths, Registry
    from .store.fast_status import FastIndex
    from .store.queue_port import Queue, RunnerRow, Stuck, WorkRow

    Rows = FastIndex | Queue


# How far below a run its status looks, and how many children of one run it looks at.
_DEPTH = 5
_MOST = 100
_REFUSED = "$refused "


class Observed(NamedTuple):
    """What the queue knows of one run, and of the runners that could move it.

    `others` are runners that are up for another database only, looked for when this one has none.
    """

    summary: RunSummary
    work: Sequence[WorkRow] = ()
    stuck: Sequence[Stuck] = ()
    runners: Sequence[RunnerRow] = ()
    children: Mapping[str, Observed] = MappingProxyType({})
    others: Sequence[RunnerRow] = ()


def observed_in(
    rows: Rows,
    work: Callable[[str], Sequence[WorkRow]],
    child: Callable[[str], RunSummary | None],
    summary: RunSummary,
    registry: Registry,
    paths: DatabasePaths,
    clock: Clock,
) -> Observed:
    """A run and the child runs it waits for, as one database knows them.

    `work` gives the queue's rows of a run, `child` what the receipts of a child run add up to now.
    """
    runners = rows.runners()
    others = elsewhere(runners, () if summary.ended else registry.dbs.values(), paths.sqlite, clock)

    def look(run_id: str) -> Observed | None:
        found = child(run_id)
        return of(found) if found else None

    def of(summary: RunSummary) -> Observed:
        return Observed(summary, work(summary.run_id), rows.stuck(summary.run_id), runners, others=others)

    return with_children(of(summary), look)


class Child(NamedTuple):
    """A child run as its parent's status shows it; without a state when it has not been looked at."""

    workflow_id: str
    status: str | None = None
    state: str | None = None
    label: str | None = None
    reason: str | None = None


def with_children(seen: Observed, look: Callable[[str], Observed | None], depth: int = _DEPTH) -> Observed:
    """The same with the open child runs below it, as `look` finds them by their ids."""
    children = {}
    for key, run_id in islice(seen.summary.open_children.items(), _MOST if depth else 0):
        child = look(run_id)
        if child is not None:
            children[key] = with_children(child, look, depth - 1)
    return seen._replace(children=children)


def children_of(seen: Observed, operator: str, clock: Clock, paths: DatabasePaths) -> dict[str, Child]:
    """The open child runs by the parent's keys."""
    shown = {key: Child(run_id) for key, run_id in seen.summary.open_children.items()}
    for key, below in seen.children.items():
        state = state_of(below, operator, clock, paths)
        shown[key] = Child(below.summary.run_id, below.summary.status, state.state, state.label, state.reason)
    return shown


def state_of(
    seen: Observed, operator: str, clock: Clock, paths: DatabasePaths, home: str | None = None
) -> OperationalState:
    """The operational state, with commands that name this database's files.

    `home` is the workspace's id, which is read from its repository when left out.
    """
    return operational_state(known_of(seen, operator, clock, paths, home))


def known_of(seen: Observed, operator: str, clock: Clock, paths: DatabasePaths, home: str | None = None) -> Facts:
    """All facts: those of rows and runners, and those of this database's files and disk."""
    facts = facts_of(seen, operator, clock, str(paths.sqlite))
    belongs = seen.summary.home
    here = (home or peek.workspace(paths.receipts)) if belongs else None
    return facts._replace(
        receipts=str(paths.receipts),
        ref=f"runs/{run_component(seen.summary.run_id)}",
        elsewhere=belongs if here and here != belongs else None,
        failed_at=within_workspace(facts.failed_at, paths.receipts),
        free=None if seen.summary.ended else free_bytes(paths.receipts),
    )


def facts_of(seen: Observed, operator: str, clock: Clock, database: str | None = None) -> Facts:
    """What the rows say at this moment. `database` is the file they are from, None when that does not matter."""
    summary, now = seen.summary, clock.now().timestamp()
    rows = [row for row in seen.work if row.work.kind != "notify"]
    queued = [row for row in rows if row.status == "queued" and row.work.visible_at <= now]
    later = [row for row in rows if row.status == "queued" and row.work.visible_at > now and not _beside(row)]
    leased = [row for row in rows if row.status == "leased"]
    lost = [row for row in rows if row.status == "expired"]
    repeated = [row for row in rows if row.status in ("queued", "expired") and row.claims >= REPEATED_CLAIMS]
    question = summary.waiting_on
    return Facts(
        run_id=summary.run_id,
        status=summary.status,
        operator=operator,
        question=question.key if question else None,
        asked=_asked(question, now) if question else Asked(),
        error=_message(summary.error),
        failed_at=summary.failed_at,
        cancel_requested=summary.cancel_requested is not None,
        cancelled=_cancelled(summary),
        paused=_paused(summary),
        marks=tuple(Mark(mark.reason, mark.hint) for mark in seen.stuck),
        queued=len(queued),
        oldest=max((now - waiting_since(row) for row in queued), default=0.0),
        executing=tuple(_name(row) for row in leased),
        longest=_longest(leased, seen.runners, now),
        lost=tuple(_name(row) for row in lost),
        lost_by=who_lost(lost[0].runner, seen.runners, clock) if lost else None,
        repeated=_name(repeated[0]) if repeated else None,
        due=_moment(min(row.work.visible_at for row in later)) if later else None,
        signals=tuple(dict.fromkeys(wait.name for wait in summary.open_waits.values())),
        children=tuple(summary.open_children.values()),
        below=tuple(_below(child, operator, clock) for child in seen.children.values()),
        **_of_runners(seen, leased, clock, database),
    )


def _of_runners(seen: Observed, leased: Sequence[WorkRow], clock: Clock, database: str | None) -> dict[str, Any]:
    lives = living(seen.runners, clock)
    kinds = {row.work.kind for row in seen.work if is_open(row)}
    why_not = [unable(row, seen.summary.python, database, kinds) for row in lives["up"]]
    others = [f"{row.runner_id} works on another database, {row.database}" for row in seen.others]
    deaf = {row.runner_id for row in lives["deaf"]} - {row.runner_id for row in lives["up"]}
    notes = [line for row in lives["up"] for line in row.executing]
    busy, refused = busy_line(seen.summary.run_id, ""), [line for line in notes if line.startswith(_REFUSED)]
    return {
        "healthy_runners": why_not.count(None),
        "unable": (*filter(None, why_not), *others),
        "deaf": tuple(f"{named(row)} {told(row, clock)}" for row in lives["deaf"]),
        "deaf_executing": any(row.runner in deaf for row in leased),
        "silent": tuple(f"{named(row)} {told(row, clock)}" for row in lives["silent"]),
        "busy": next((line.removeprefix(busy) for line in notes if line.startswith(busy)), None),
        "refused": refused[0].removeprefix(_REFUSED) if refused else None,
    }


def _asked(question: OpenReview, now: float) -> Asked:
    until = question.expires_at
    late = until is not None and parse_time(until).timestamp() <= now
    of = " ".join(question.assignee.split()) if question.assignee else None
    return Asked(of, question.requested_at, until, late)


def _longest(leased: Sequence[WorkRow], runners: Sequence[RunnerRow], now: float) -> Executing | None:
    row = min(leased, key=lambda row: row.claimed_at or "", default=None)
    if row is None or row.runner is None:
        return None
    return Executing(_name(row), row.runner, seconds_in_hand(row, now), last_line(row, runners))


def seconds_in_hand(row: WorkRow, now: float) -> float:
    return max(now - parse_time(row.claimed_at).timestamp(), 0.0) if row.claimed_at else 0.0


def last_line(row: WorkRow, runners: Sequence[RunnerRow]) -> str:
    """What a claimed call has printed last, as its runner's heartbeat says."""
    name = f"{row.work.run_id} {row.work.key}"
    return next((runner.said[name] for runner in runners if runner.runner_id == row.runner and name in runner.said), "")


def seconds_so_far(row: WorkRow, now: float) -> float:
    """How long a row has been in hand, or could have been claimed; negative before its time."""
    in_hand = row.status in ("leased", "withdrawn")
    return seconds_in_hand(row, now) if in_hand else now - waiting_since(row)


def becomes(row: WorkRow, now: float) -> str:
    """What goes on with a row: `executing on ada for 3 min`, `queued for 5 s`, `due in 2 h`."""
    seconds = seconds_so_far(row, now)
    match row.status:
        case "leased":
            return f"executing on {row.runner} for {lasting(seconds)}"
        case "withdrawn":
            return f"being stopped on {row.runner}"
        case "expired":
            return f"lost by {row.runner}, claimed {row.claims} times"
        case _:
            return f"due in {lasting(-seconds)}" if seconds < 0 else f"queued for {lasting(seconds)}"


def waiting_since(row: WorkRow) -> float:
    """From when on a row that nobody has could have been claimed, in seconds since 1970."""
    return max(parse_time(row.offered_at).timestamp(), row.work.visible_at)


def free_bytes(path: Path) -> int | None:
    """What an ordinary user may still write on the disk of `path`; None when that cannot be known."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def within_workspace(place: str | None, receipts: Path) -> str | None:
    """`file:line` relative to the workspace, when its receipts lie where they usually do."""
    folder = next((each.parent for each in receipts.parents if each.name == ".hermes"), None)
    return place.removeprefix(f"{folder}{os.sep}") if place and folder else place


def runnable(work: Sequence[WorkRow], stuck: Sequence[Stuck], clock: Clock) -> list[WorkRow]:
    """The rows that a runner could claim now: due, held by nobody that lives, and of no run that is stuck."""
    now, kept = clock.now().timestamp(), {mark.run_id for mark in stuck}
    return [row for row in work if is_open(row) and row.work.visible_at <= now and row.work.run_id not in kept]


def is_open(row: WorkRow) -> bool:
    """Whether a row is in the queue: nobody has claimed it, or whoever has is dead or late."""
    return row.status in ("queued", "expired")


def _beside(row: WorkRow) -> bool:
    """Whether a row's time is not what the run waits for: another look at a child, or a limit."""
    return row.work.kind == "child" or row.work.key.startswith((EXPIRY, DEADLINE))


def _below(child: Observed, operator: str, clock: Clock) -> Below:
    facts = facts_of(child, operator, clock)
    own = (facts.run_id, facts.question) if facts.question else None
    asks = own or next((each.asks for each in facts.below if each.asks), None)
    state = operational_state(facts)
    paused = None
    if state.state == "waiting" and asks is None:
        paused = facts.run_id if facts.paused is not None else facts.below[0].paused
    return Below(facts.run_id, state.label, asks, paused)


def busy_line(run_id: str, since: str) -> str:
    """How a runner says in its heartbeat that a body does not come back, and where it is."""
    return f"{run_id} $busy {since}"


def refused_line(why: str) -> str:
    """How a runner says in its heartbeat that there is work which the disk, or another writer, does not let it do."""
    return f"{_REFUSED}{' '.join(why.split())}"


def _moment(seconds: float) -> str:
    return render_time(datetime.fromtimestamp(seconds, UTC))


def _name(row: WorkRow) -> str:
    return row.work.key or "the workflow"


def _cancelled(summary: RunSummary) -> str | None:
    """Why a run was asked to end, in one line, and by whom where that adds something."""
    if summary.cancel_requested is None:
        return None
    # A row that was written before there was this field has none.
    by = getattr(summary, "cancel_by", None)
    if is_deadline(summary.cancel_requested, by):
        return DEADLINE_PASSED
    reason = " ".join(summary.cancel_requested.split())
    instead = f"superseded by {summary.superseded_by}"
    who = f", by {by['by']} ({by['kind']})" if by and by["kind"] != "policy" else ""
    return reason + who + (f"; {instead}" if summary.superseded_by and reason != instead else "")


def _paused(summary: RunSummary) -> str | None:
    paused = getattr(summary, "paused", None)
    if paused is None:
        return None
    reason = " ".join(paused["reason"].split())
    return f"by {paused['by']} since {paused['since']}" + (f": {reason}" if reason else "")


def _message(error: Any) -> str | None:
    if not isinstance(error, dict):
        return None
    return f"{error.get('type', 'Error')}: {error.get('message', '')}"
