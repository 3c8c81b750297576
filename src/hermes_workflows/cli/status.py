"""`status` and `list`: where runs stand.

The index answers while it is fresh; whenever it is in doubt, the workspace is opened and the receipts are asked.
"""

from __future__ import annotations

from contextlib import closing

import click

from ..core.states import OperationalState
from ..core.summary import RunSummary
from ..errors import HermesError
from ..facts import Observed, state_of
from ..store import peek
from ..store.fast_status import DatabaseGone, FastIndex
from .completion import complete_runs
from .quick import fresh_status
from .scope import Scope, scoped
from .show import run_row, status_document, status_text

_Shown = tuple[RunSummary, OperationalState]
_COLUMNS = ("run", "state", "workflow", "started", "why")


@click.command("status")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--id", "run_id", metavar="RUN", help="The run; the same as naming it without --id.")
@scoped
def status(scope: Scope, run: str | None, run_id: str | None) -> None:
    """Show one run: its status, its state, why, and what to do next."""
    name = run_id or run
    if not name:
        raise click.UsageError("which run? `hermes-workflows list` shows them")
    shown = fresh_status(scope.registry, scope.paths(), name, scope.clock)
    summary, state = shown or _slow_one(scope, name)
    scope.output.data(status_document(summary, state), lambda: status_text(summary, state))


@click.command("list")
@click.option("--status", "wanted", type=click.Choice(["running", "waiting", "completed", "failed", "cancelled"]))
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0), default=0)
@scoped
def list_runs(scope: Scope, wanted: str | None, limit: int, offset: int) -> None:
    """Show runs, newest first."""
    runs = _fast_page(scope, wanted, limit, offset)
    if runs is None:
        with scope.look() as workspace:
            page = workspace.runs(status=wanted, limit=limit, offset=offset)
            runs = [(summary, workspace.observe(summary)) for summary in page]
    documents = [status_document(summary, state) for summary, state in runs]
    rows = [run_row(summary, state) for summary, state in runs]
    scope.output.table(_COLUMNS, rows, documents, "no runs")


def _slow_one(scope: Scope, name: str) -> _Shown:
    with scope.look() as workspace:
        summary = workspace.summary(workspace.resolve(name))
        return summary, workspace.observe(summary)


def _fast_page(scope: Scope, wanted: str | None, limit: int, offset: int) -> list[_Shown] | None:
    paths, clock = scope.paths(), scope.clock
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            if index.stamp() != str(peek.stamp(paths.receipts)):
                return None
            rows = index.list_indexed(status=wanted, limit=limit, offset=offset)
            runners, work = index.runners(), index.work(clock=clock)
            marks = index.stuck()
    except (DatabaseGone, HermesError):
        return None
    shown = []
    for summary in (row.summary for row in rows):
        run_id = summary.run_id
        mine = [row for row in work if row.work.run_id == run_id]
        seen = Observed(summary, mine, [mark for mark in marks if mark.run_id == run_id], runners)
        shown.append((summary, state_of(seen, scope.registry.operator, clock, paths)))
    return shown
