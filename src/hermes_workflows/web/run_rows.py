"""A run as one row of a list, on a page that is served and in one that is exported."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..core.states import OperationalState
from ..core.summary import RunSummary
from ..core.usages import told
from .rendering import segment, since, took


@dataclass(frozen=True)
class Row:
    """One run. `age` is how long ago it was started, `took` how long it ran, or runs so far."""

    href: str
    run_id: str
    workflow: str
    state: str
    label: str
    reason: str
    started: str
    age: str
    took: str
    cost: str


def row_of(summary: RunSummary, state: OperationalState, now: datetime) -> Row:
    return Row(
        href=f"/runs/{segment(summary.run_id)}",
        run_id=summary.run_id,
        workflow=summary.workflow,
        state=state.state,
        label=state.label,
        reason=state.reason,
        started=summary.started_at or "",
        age=since(summary.started_at, now),
        took=took(summary.started_at, summary.finished_at, now),
        cost=told(summary.usage),
    )
