"""`status` and `list`: where runs stand.

The index answers while it is fresh; whenever it is in doubt, the workspace is opened and the receipts are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from ..core.summary import EVENTS, Event, RunSummary, event_of, summarize
from ..errors import Conflict, HermesError
from ..registry import DatabasePaths
from ..store import peek
from ..store.fast_status import DatabaseGone, FastIndex
from .completion import complete_runs
from .numbers import count
from .quick import fresh_status, observed
from .scope import Scope, scoped
from .seen import Shown, shown_of
from .show import event_document, event_line, run_row, status_document, status_text, total_row, workflow_totals
from .told import call_facts, call_line

if TYPE_CHECKING:
    from ..core.outline import Ran
    from ..core.receipts import Receipt
    from ..workspace import Workspace

_COLUMNS = ("run", "state", "workflow", "started", "usage", "why")
_PAGE = 500


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


@click.command("list")
@click.option("--status", "wanted", type=click.Choice(["running", "waiting", "completed", "failed", "cancelled"]))
@click.option("--limit", type=count(1), default=50, show_default=True)
@click.option("--offset", type=count(), default=0)
@click.option("--by-workflow", is_flag=True, help="What all runs of each workflow add up to: runs, tokens, cost.")
@scoped
def list_runs(scope: Scope, wanted: str | None, limit: int, offset: int, by_workflow: bool) -> None:
    """Show runs, newest first."""
    if by_workflow:
        totals = workflow_totals(summary for paths in scope.every() for summary in _all(scope, paths, wanted))
        scope.output.table(("workflow", "runs", "usage"), [total_row(each) for each in totals], totals, "no runs")
        return
    most = offset + limit
    found = [shown for paths in scope.every() for shown in _page(scope, paths, wanted, most)]
    found.sort(key=lambda shown: (shown.summary.started_at or "", shown.summary.run_id), reverse=True)
    runs = found[offset:most]
    documents = [status_document(shown) for shown in runs]
    rows = [run_row(shown) for shown in runs]
    scope.output.table(_COLUMNS, rows, documents, "no runs")


def _all(scope: Scope, paths: DatabasePaths, wanted: str | None) -> Iterator[RunSummary]:
    with scope.look(paths) as workspace:
        _tell_unreadable(scope, workspace)
        offset = 0
        while page := workspace.runs(status=wanted, limit=_PAGE, offset=offset):
            yield from page
            offset += _PAGE


def _tell_unreadable(scope: Scope, workspace: Workspace) -> None:
    """Runs that are not shown, or not as they are: nobody misses what a list leaves out without a word."""
    for run_id, reason in workspace.refresh().unreadable.items():
        scope.output.talk(f"warning: run {run_id} cannot be read: {reason}\n  hermes-workflows verify says more")


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


def _page(scope: Scope, paths: DatabasePaths, wanted: str | None, limit: int) -> list[Shown]:
    if (shown := _fresh_page(scope, paths, wanted, limit)) is not None:
        return shown
    with scope.look(paths) as workspace:
        _tell_unreadable(scope, workspace)
        runs = workspace.runs(status=wanted, limit=limit)
        return [shown_of(workspace.observed(summary), scope.registry.operator, scope.clock, paths) for summary in runs]


def _fresh_page(scope: Scope, paths: DatabasePaths, wanted: str | None, limit: int) -> list[Shown] | None:
    """The page as the index says it, when nothing has moved in the refs' folder since it was brought up to date."""
    clock = scope.clock
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            if index.stamp() != str(peek.stamp(paths.receipts)):
                return None
            rows = index.list_indexed(status=wanted, limit=limit)
            return [
                shown_of(
                    observed(index, row.summary, clock, scope.registry, paths), scope.registry.operator, clock, paths
                )
                for row in rows
            ]
    except (DatabaseGone, HermesError):
        return None
