"""From the rows of index and queue to the facts that core/states.py decides on.

Light on purpose: the fast `status` imports this, so neither pydantic nor dulwich may come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from .core.names import run_component
from .core.states import REPEATED_CLAIMS, Facts, Mark, OperationalState, operational_state
from .core.timestamps import parse_time, render_time
from .store.liveness import Process

if TYPE_CHECKING:
    from .core.clock import Clock
    from .core.summary import RunSummary
    from .registry import DatabasePaths
    from .store.queue_port import RunnerRow, Stuck, WorkRow


class Observed(NamedTuple):
    """What the queue knows of one run, and of the runners that could move it."""

    summary: RunSummary
    work: Sequence[WorkRow] = ()
    stuck: Sequence[Stuck] = ()
    runners: Sequence[RunnerRow] = ()


def state_of(seen: Observed, operator: str, clock: Clock, paths: DatabasePaths) -> OperationalState:
    """The operational state, with commands that name this database's files."""
    ref = f"runs/{run_component(seen.summary.run_id)}"
    return operational_state(facts_of(seen, operator, clock)._replace(receipts=str(paths.receipts), ref=ref))


def facts_of(seen: Observed, operator: str, clock: Clock) -> Facts:
    summary, now = seen.summary, clock.now().timestamp()
    queued = [row for row in seen.work if row.status == "queued" and row.work.visible_at <= now]
    later = [row for row in seen.work if row.status == "queued" and row.work.visible_at > now]
    repeated = [row for row in seen.work if row.status in ("queued", "expired") and row.claims >= REPEATED_CLAIMS]
    waits = [max(parse_time(row.offered_at).timestamp(), row.work.visible_at) for row in queued]
    question = summary.waiting_on
    return Facts(
        run_id=summary.run_id,
        status=summary.status,
        operator=operator,
        question=question.key if question else None,
        error=_message(summary.error),
        cancel_requested=summary.cancel_requested is not None,
        marks=tuple(Mark(mark.reason, mark.hint) for mark in seen.stuck),
        queued=len(queued),
        oldest=max((now - since for since in waits), default=0.0),
        executing=tuple(_name(row) for row in seen.work if row.status == "leased"),
        busy=_busy(seen, clock),
        lost=tuple(_name(row) for row in seen.work if row.status == "expired"),
        repeated=_name(repeated[0]) if repeated else None,
        healthy_runners=sum(is_healthy(row, clock) for row in seen.runners),
        due=_moment(min(row.work.visible_at for row in later)) if later else None,
        children=tuple(summary.open_children.values()),
    )


def is_healthy(row: RunnerRow, clock: Clock) -> bool:
    """Whether a runner lives: it has written its heartbeat within one lease of this boot, and its process exists."""
    if row.boot_id != clock.boot_id or clock.elapsed() - row.elapsed > row.lease_seconds:
        return False
    return not Process.of(row).gone()


def busy_line(run_id: str, since: str) -> str:
    """How a runner says in its heartbeat that a body does not come back, and where it is."""
    return f"{run_id} $busy {since}"


def _busy(seen: Observed, clock: Clock) -> str | None:
    mark = busy_line(seen.summary.run_id, "")
    told = (line for row in seen.runners for line in row.executing if line.startswith(mark) and is_healthy(row, clock))
    return next((line.removeprefix(mark) for line in told), None)


def _moment(seconds: float) -> str:
    return render_time(datetime.fromtimestamp(seconds, UTC))


def _name(row: WorkRow) -> str:
    return row.work.key or "the workflow"


def _message(error: Any) -> str | None:
    if not isinstance(error, dict):
        return None
    return f"{error.get('type', 'Error')}: {error.get('message', '')}"
