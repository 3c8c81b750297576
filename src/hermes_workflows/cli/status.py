"""`status`: where a run stands.

The index answers while it is fresh; whenever it is in doubt, the workspace is opened and the receipts are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..core.summary import EVENTS, Event, RunSummary, event_of, summarize
from ..errors import Conflict
from ..registry import DatabasePaths
from .completion import complete_runs
from .fresh import fresh_status
from .numbers import count
from .scope import Scope, scoped
from .seen import Shown, shown_of
from .show import event_document, event_line, status_document, status_text
from .told import call_facts, call_line

if TYPE_CHECKING:
    from ..core.outline import Ran
    from ..core.receipts import Receipt
    from ..workspace import Workspace


@click.command("status")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--id", "run_id", metavar="RUN", help="The run; the same as naming it without --id.")
@click.option("--commands", type=click.Choice(["failed", "recent", "all"]), help="List its calls, too: which of them.")
@click.option("--recent-events", type=count(), metavar="N", help="List its newest N receipts, too.")
@scoped
def status(scope: Scope, run: str | None, run_id: str | None, commands: str | None, recent_events: int | None) -> None:
    """Show one run: its status, its state, why, and what to do next."""
    name = run_id or run
    if not name:
        raise click.UsageError("which run? `hermes-workflows list` shows them")
    paths = scope.holding(name)
    shown = fresh_status(scope.registry, paths, name, scope.clock) or _asked(scope, paths, name)
    document, more = status_document(shown), []
    if recent_events is not None:
        events = _events(scope, paths, name, shown.summary, recent_events)
        document["recent_events"] = [event_document(event) for event in events]
        more += ["", *(f"  {event_line(event)}" for event in events)]
    if commands is not None:
        calls = _calls(scope, paths, name, commands)
        document["commands"] = [call_facts(ran) for ran in calls]
        more += ["", *(f"  {ran.key.rpartition('/')[0]}/{call_line(ran)}".replace("  /", "  ") for ran in calls)]
    scope.output.data(document, lambda: "\n".join([status_text(shown), *more]))


def _events(scope: Scope, paths: DatabasePaths, name: str, summary: RunSummary, most: int) -> list[Event]:
    events = list(summary.recent)
    if most > len(events) and len(events) < summary.receipts:
        events = [event_of(receipt) for receipt in _receipts(scope, paths, name)]
    return events[max(len(events) - most, 0) :]


def _calls(scope: Scope, paths: DatabasePaths, name: str, which: str) -> list[Ran]:
    from ..core.outline import calls_of

    calls = calls_of(_receipts(scope, paths, name))
    if which == "failed":
        return [ran for ran in calls if ran.error is not None or ran.status == "failed"]
    return sorted(calls, key=lambda ran: ran.seq)[-EVENTS:] if which == "recent" else calls


def _receipts(scope: Scope, paths: DatabasePaths, name: str) -> Sequence[Receipt]:
    with scope.peek(paths) as workspace:
        return workspace.find(name).receipts


def _asked(scope: Scope, paths: DatabasePaths, name: str) -> Shown:
    with scope.look(paths) as workspace:
        return shown_of(workspace.observed(_summary(workspace, name)), scope.registry.operator, scope.clock, paths)


def _summary(workspace: Workspace, name: str) -> RunSummary:
    """A run of ours as it is now, a fetched one as it came."""
    try:
        return workspace.summary(workspace.resolve(name))
    except Conflict:
        found = workspace.find(name)
        return summarize(found.run_id, found.receipts)
