"""`list`: runs, the newest first, narrowed by state, workflow, where they come from, and words.

The index answers while it is fresh; whenever it is in doubt, the workspace is opened and the receipts are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..core.state_rules import STATES
from .completion import complete_runs
from .fresh import MOST, STATUSES, Query, fresh_runs
from .numbers import count
from .scope import Scope, scoped
from .seen import Shown, shown_of
from .show import run_row, status_document, total_row, workflow_totals
from .writing import one_line

if TYPE_CHECKING:
    from ..core.summary import RunSummary
    from ..registry import DatabasePaths
    from ..workspace import Workspace

_COLUMNS = ("run", "state", "workflow", "started", "usage", "why")
_PAGE = 500


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state, one of the seven.")
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow: its alias, or the name that runs have.")
@click.option("--source", metavar="RUN", shell_complete=complete_runs, help="Only forks and reproductions of this run.")
@click.option("--find", metavar="WORDS", help="Only runs with all these words in their id, input or reason.")
@click.option("--limit", type=count(1), default=MOST, show_default=True)
@click.option("--offset", type=count(), default=0)
@click.option("--by-workflow", is_flag=True, help="What all runs of each workflow add up to: runs, tokens, cost.")
@scoped
def list_runs(scope: Scope, limit: int, offset: int, by_workflow: bool, **given: str | None) -> None:
    """Show runs, newest first."""
    if given["status"] and given["state"]:
        raise click.UsageError("--status or --state, not both")
    query = Query.of(given, scope.registry, limit, offset)
    if by_workflow:
        totals = workflow_totals(summary for paths in scope.every() for summary in _all(scope, paths, query))
        scope.output.table(("workflow", "runs", "usage"), [total_row(each) for each in totals], totals, "no runs")
        return
    runs = query.of_all(scope.every(), lambda paths, asked: _found(scope, paths, asked))
    documents = [status_document(shown) for shown in runs]
    rows = [run_row(shown) for shown in runs]
    scope.output.table(_COLUMNS, rows, documents, "no runs")


def _all(scope: Scope, paths: DatabasePaths, query: Query) -> Iterator[RunSummary]:
    if query.is_observed:
        raise click.UsageError("--by-workflow counts what receipts tell: --status, not --state")
    with scope.look(paths) as workspace:
        _tell_unreadable(scope, workspace)
        offset = 0
        while page := workspace.runs(query.wanted, limit=_PAGE, offset=offset):
            yield from page
            offset += _PAGE


def _tell_unreadable(scope: Scope, workspace: Workspace) -> None:
    """Runs that are not shown, or not as they are: nobody misses what a list leaves out without a word."""
    for run_id, reason in workspace.refresh().unreadable.items():
        why = one_line(reason, 500)
        scope.output.talk(f"warning: run {run_id} cannot be read: {why}\n  hermes-workflows verify says more")


def _found(scope: Scope, paths: DatabasePaths, query: Query) -> list[Shown]:
    if (fresh := fresh_runs(scope.registry, paths, query, scope.clock)) is not None:
        return fresh
    with scope.look(paths) as workspace:
        _tell_unreadable(scope, workspace)

        def shown(summary: RunSummary) -> Shown:
            return shown_of(workspace.observed(summary), scope.registry.operator, scope.clock, paths)

        return query.found(workspace.runs, shown)
