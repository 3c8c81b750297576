"""`list`: runs, the newest first, narrowed by state, workflow, where they come from, and words.

The index answers while it is fresh; whenever it is in doubt, the workspace is opened and the receipts are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from ..core.state_rules import ENDS, STATES
from ..core.summary import RunSummary
from ..errors import HermesError
from ..registry import DatabasePaths
from ..store import peek
from ..store.fast_status import DatabaseGone, FastIndex
from ..store.wanted import LIVING, Wanted
from .completion import complete_runs
from .numbers import count
from .quick import observed
from .scope import Scope, scoped
from .seen import Shown, shown_of
from .show import run_row, status_document, total_row, workflow_totals

if TYPE_CHECKING:
    from ..facts import Observed
    from ..workspace import Workspace

_COLUMNS = ("run", "state", "workflow", "started", "usage", "why")
_PAGE = 500


class _Query(NamedTuple):
    """`state` is one of the seven, some of which only a look at the queue tells."""

    wanted: Wanted
    state: str | None
    limit: int
    offset: int


class _Source(Protocol):
    """What lists runs and what knows how they stand: an open workspace, or its index alone."""

    def runs(self, wanted: Wanted, *, limit: int, offset: int = 0) -> list[RunSummary]: ...
    def observed(self, summary: RunSummary) -> Observed: ...


@click.command("list")
@click.option("--status", type=click.Choice(["running", "waiting", "completed", "failed", "cancelled"]))
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state, one of the seven.")
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow: its alias, or the name that runs have.")
@click.option("--source", metavar="RUN", shell_complete=complete_runs, help="Only forks and reproductions of this run.")
@click.option("--find", metavar="WORDS", help="Only runs with all these words in their id, input or reason.")
@click.option("--limit", type=count(1), default=50, show_default=True)
@click.option("--offset", type=count(), default=0)
@click.option("--by-workflow", is_flag=True, help="What all runs of each workflow add up to: runs, tokens, cost.")
@scoped
def list_runs(scope: Scope, limit: int, offset: int, by_workflow: bool, **given: str | None) -> None:
    """Show runs, newest first."""
    query = _Query(_wanted(scope, given), given["state"], limit, offset)
    if by_workflow:
        totals = workflow_totals(summary for paths in scope.every() for summary in _all(scope, paths, query))
        scope.output.table(("workflow", "runs", "usage"), [total_row(each) for each in totals], totals, "no runs")
        return
    runs = _newest(scope, query)
    documents = [status_document(shown) for shown in runs]
    rows = [run_row(shown) for shown in runs]
    scope.output.table(_COLUMNS, rows, documents, "no runs")


def _wanted(scope: Scope, given: dict[str, str | None]) -> Wanted:
    status, state, workflow = given["status"], given["state"], given["workflow"]
    if status and state:
        raise click.UsageError("--status or --state, not both")
    statuses = (state,) if state in ENDS else LIVING if state else (status,) if status else ()
    entry = scope.registry.workflows.get(workflow or "")
    return Wanted(statuses, entry.ref if entry else workflow, given["source"], given["find"] or "")


def _newest(scope: Scope, query: _Query) -> list[Shown]:
    every, most = list(scope.every()), query.offset + query.limit
    # Where one database has them all, what is passed over need not be read.
    passed = query.offset if len(every) == 1 and not _is_observed(query) else 0
    asked = query._replace(limit=most - passed, offset=passed)
    found = [shown for paths in every for shown in _page(scope, paths, asked)]
    found.sort(key=lambda shown: (shown.summary.started_at or "", shown.summary.run_id), reverse=True)
    return found[query.offset - passed : most - passed]


def _all(scope: Scope, paths: DatabasePaths, query: _Query) -> Iterator[RunSummary]:
    if _is_observed(query):
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
        scope.output.talk(f"warning: run {run_id} cannot be read: {reason}\n  hermes-workflows verify says more")


def _page(scope: Scope, paths: DatabasePaths, query: _Query) -> list[Shown]:
    """Runs of one database, as its index says while nothing has moved in the refs' folder since it was made."""
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            if index.stamp() == str(peek.stamp(paths.receipts)):
                return _shown(scope, paths, _Fresh(index, scope, paths), query)
    except (DatabaseGone, HermesError):
        pass
    with scope.look(paths) as workspace:
        _tell_unreadable(scope, workspace)
        return _shown(scope, paths, workspace, query)


def _shown(scope: Scope, paths: DatabasePaths, source: _Source, query: _Query) -> list[Shown]:
    def shown(summary: RunSummary) -> Shown:
        return shown_of(source.observed(summary), scope.registry.operator, scope.clock, paths)

    if not _is_observed(query):
        return list(map(shown, source.runs(query.wanted, limit=query.limit, offset=query.offset)))
    found: list[Shown] = []
    wanted = query.wanted
    while len(found) < query.limit and (page := source.runs(wanted, limit=_PAGE)):
        found += [each for each in map(shown, page) if each.state.state == query.state]
        wanted = wanted._replace(older=(page[-1].started_at or "", page[-1].run_id))
    return found[: query.limit]


def _is_observed(query: _Query) -> bool:
    """Whether only a look at the queue says which runs are meant."""
    return query.state is not None and query.state not in ENDS


class _Fresh:
    """The index alone, read without opening the workspace."""

    def __init__(self, index: FastIndex, scope: Scope, paths: DatabasePaths) -> None:
        self._index = index
        self._observed: Any = partial(observed, index, clock=scope.clock, registry=scope.registry, paths=paths)

    def runs(self, wanted: Wanted, *, limit: int, offset: int = 0) -> list[RunSummary]:
        return [row.summary for row in self._index.list_indexed(wanted, limit=limit, offset=offset)]

    def observed(self, summary: RunSummary) -> Observed:
        found: Observed = self._observed(summary)
        return found
