"""From the rows of index and queue to the facts that core/states.py decides on.

Light on purpose: the fast `status` imports this, so neither pydantic nor dulwich may come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .core.names import run_component
from .core.states import (
    DEADLINE_PASSED,
    REPEATED_CLAIMS,
    Below,
    Facts,
    Mark,
    OperationalState,
    is_deadline,
    operational_state,
)
from .core.timestamps import parse_time, render_time
from .store import peek
from .store.liveness import Process
from .store.row_keys import DEADLINE, EXPIRY

if TYPE_CHECKING:
    from .core.clock import Clock
    from .core.summary import RunSummary
    from .registry import DatabasePaths
    from .store.queue_port import RunnerRow, Stuck, WorkRow


# How far below a run its status looks, and how many children of one run it looks at.
_DEPTH = 5
_MOST = 100
_REFUSED = "$refused "


class Observed(NamedTuple):
    """What the queue knows of one run, and of the runners that could move it."""

    summary: RunSummary
    work: Sequence[WorkRow] = ()
    stuck: Sequence[Stuck] = ()
    runners: Sequence[RunnerRow] = ()
    children: Mapping[str, Observed] = MappingProxyType({})


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
    ref = f"runs/{run_component(seen.summary.run_id)}"
    facts = facts_of(seen, operator, clock)._replace(receipts=str(paths.receipts), ref=ref)
    belongs = seen.summary.home
    if belongs and (here := home or peek.workspace(paths.receipts)) and here != belongs:
        facts = facts._replace(elsewhere=belongs)
    return operational_state(facts)


def facts_of(seen: Observed, operator: str, clock: Clock) -> Facts:
    summary, now = seen.summary, clock.now().timestamp()
    rows = [row for row in seen.work if row.work.kind != "notify"]
    queued = [row for row in rows if row.status == "queued" and row.work.visible_at <= now]
    later = [row for row in rows if row.status == "queued" and row.work.visible_at > now and not _beside(row)]
    repeated = [row for row in rows if row.status in ("queued", "expired") and row.claims >= REPEATED_CLAIMS]
    waits = [max(parse_time(row.offered_at).timestamp(), row.work.visible_at) for row in queued]
    question = summary.waiting_on
    return Facts(
        run_id=summary.run_id,
        status=summary.status,
        operator=operator,
        question=question.key if question else None,
        error=_message(summary.error),
        cancel_requested=summary.cancel_requested is not None,
        cancelled=_cancelled(summary),
        paused=_paused(summary),
        marks=tuple(Mark(mark.reason, mark.hint) for mark in seen.stuck),
        queued=len(queued),
        oldest=max((now - since for since in waits), default=0.0),
        executing=tuple(_name(row) for row in rows if row.status == "leased"),
        busy=_busy(seen, clock),
        lost=tuple(_name(row) for row in rows if row.status == "expired"),
        repeated=_name(repeated[0]) if repeated else None,
        healthy_runners=sum(is_healthy(row, clock) for row in seen.runners),
        due=_moment(min(row.work.visible_at for row in later)) if later else None,
        signals=tuple(dict.fromkeys(wait.name for wait in summary.open_waits.values())),
        children=tuple(summary.open_children.values()),
        below=tuple(_below(child, operator, clock) for child in seen.children.values()),
    )


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
    return Below(facts.run_id, operational_state(facts).label, asks)


def is_healthy(row: RunnerRow, clock: Clock) -> bool:
    """Whether a runner lives: it has written its heartbeat within one lease of this boot, and its process exists."""
    if row.boot_id != clock.boot_id or clock.elapsed() - row.elapsed > row.lease_seconds:
        return False
    return not Process.of(row).gone()


def busy_line(run_id: str, since: str) -> str:
    """How a runner says in its heartbeat that a body does not come back, and where it is."""
    return f"{run_id} $busy {since}"


def refused_line(why: str) -> str:
    """How a runner says in its heartbeat that there is work which the disk, or another writer, does not let it do."""
    return f"{_REFUSED}{' '.join(why.split())}"


def _busy(seen: Observed, clock: Clock) -> str | None:
    mark = busy_line(seen.summary.run_id, "")
    told = (line for row in seen.runners for line in row.executing if line.startswith(mark) and is_healthy(row, clock))
    return next((line.removeprefix(mark) for line in told), None)


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
    return f"{reason}, by {by['by']} ({by['kind']})" if by and by["kind"] != "policy" else reason


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
