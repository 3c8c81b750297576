"""What `status`, `list` and `watch` show of a run beyond its receipts: its state, its work in the queue, who has it.

Light on purpose: the fast `status` imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..facts import Child, becomes, children_of, last_line, state_of, within_workspace
from ..lives import named, told
from ..store.row_keys import FOREVER

if TYPE_CHECKING:
    from ..core.clock import Clock
    from ..core.states import OperationalState
    from ..core.summary import RunSummary
    from ..facts import Observed
    from ..lives import Life
    from ..registry import DatabasePaths
    from ..store.queue_port import RunnerRow, Stuck, WorkRow

# Lines of one kind that fit on a screen beside the others.
_FEW = 8


class Pending(NamedTuple):
    """A row of the queue: what goes on with it, and the last line it printed."""

    row: WorkRow
    told: str
    line: str


class Shown(NamedTuple):
    """A run as it is shown. `pending` are its rows in the queue, `marks` why runners say that it is stuck."""

    summary: RunSummary
    state: OperationalState
    children: Mapping[str, Child] = {}
    pending: Sequence[Pending] = ()
    marks: Sequence[Stuck] = ()
    failed_at: str | None = None


def shown_of(seen: Observed, operator: str, clock: Clock, paths: DatabasePaths) -> Shown:
    known, now = (operator, clock, paths), clock.now().timestamp()
    rows = [row for row in seen.work if row.work.kind != "notify" and row.work.visible_at < FOREVER]
    return Shown(
        seen.summary,
        state_of(seen, *known),
        children_of(seen, *known),
        [_pending(row, seen.runners, now) for row in rows],
        seen.stuck,
        within_workspace(seen.summary.failed_at, paths.receipts),
    )


def work_document(row: WorkRow) -> dict[str, Any]:
    return {
        "workflow_id": row.work.run_id,
        "kind": row.work.kind,
        "key": row.work.key,
        "name": row.work.name,
        "status": row.status,
        "visible_at": row.work.visible_at,
        "runner": row.runner,
        "claims": row.claims,
        "offered_at": row.offered_at,
        "claimed_at": row.claimed_at,
    }


def _pending(row: WorkRow, runners: Sequence[RunnerRow], now: float) -> Pending:
    return Pending(row, becomes(row, now), last_line(row, runners))


def pending_document(pending: Pending) -> dict[str, Any]:
    return {**work_document(pending.row), "last_line": pending.line or None}


def pending_line(pending: Pending) -> str:
    """`draft (agent writer): executing on ada for 3 min: 42 of 80 pages`."""
    row = pending.row
    what = f"{row.work.key or 'the workflow'} ({' '.join(filter(None, (row.work.kind, row.work.name)))})"
    said = f": {pending.line}" if pending.line and row.status in ("leased", "withdrawn") else ""
    return f"{what}: {pending.told}{said}"


def runner_document(row: RunnerRow, life: Life) -> dict[str, Any]:
    lists = {name: list(getattr(row, name)) for name in ("executing", "agents", "only")}
    return {**vars(row), **lists, "said": dict(row.said), "life": life, "healthy": life == "up"}


def runner_lines(row: RunnerRow, clock: Clock) -> list[str]:
    """How a runner is, and below it what it has in hand with the last line of each."""
    hands = sum(not each.startswith("$") for each in row.executing)
    facts = [f"heartbeat {row.heartbeat_at}", f"{hands} in hand"]
    facts += [f"only {', '.join(row.only)}"] if row.only else []
    facts += ["draining"] if row.draining else []
    lines = [f"{named(row)} {told(row, clock)}: {', '.join(facts)}"]
    return lines + [
        f"  {each.removeprefix('$')}{f': {row.said[each]}' if each in row.said else ''}" for each in row.executing
    ]


def mark_document(mark: Stuck) -> dict[str, Any]:
    names = ("kind", "key", "reason", "hint", "since", "runner")
    return {name: getattr(mark, name) for name in names}


def few(title: str, items: Sequence[Any], line: Callable[[Any], str], most: int = _FEW) -> list[str]:
    """As many of the lines as leave room for others, and how many there are besides."""
    lines = [f"  {title.ljust(8)}  {line(item)}" for item in items[:most]]
    return lines + ([f"            and {len(items) - most} more"] if len(items) > most else [])
