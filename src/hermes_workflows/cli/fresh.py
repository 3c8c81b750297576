"""Runs as their index has them, without opening the workspace: one SQLite file and the refs read as text.

Light on purpose: the fast `status` and the fast `list` import this, so neither pydantic, dulwich nor click may come in.
Whatever is in doubt (an unknown id, a ref the index has not seen, any error) is None: the caller opens the workspace
then, and asks the receipts.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..core.names import run_component
from ..core.state_rules import ENDS
from ..errors import HermesError
from ..facts import Observed, observed_in
from ..store import peek
from ..store.fast_status import DatabaseGone, FastIndex
from ..store.wanted import LIVING, Wanted
from .seen import Shown, shown_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.clock import Clock
    from ..core.summary import RunSummary
    from ..registry import DatabasePaths, Registry

    Runs = Callable[..., list[RunSummary]]
    Found = Callable[[DatabasePaths, "Query"], list[Shown]]

STATUSES = ("running", "waiting", "completed", "failed", "cancelled")
MOST = 50

_PAGE = 500


class Query(NamedTuple):
    """Which runs a list shows. `state` is one of the seven, some of which only a look at the queue tells."""

    wanted: Wanted
    state: str | None = None
    limit: int = MOST
    offset: int = 0

    @classmethod
    def of(cls, given: Mapping[str, str | None], registry: Registry, limit: int, offset: int) -> Query:
        """What the options say: a workflow by its alias or the name that runs have, a status or a state."""
        state, status, workflow = given.get("state"), given.get("status"), given.get("workflow")
        statuses = (state,) if state in ENDS else LIVING if state else (status,) if status else ()
        entry = registry.workflows.get(workflow or "")
        wanted = Wanted(statuses, entry.ref if entry else workflow, given.get("source"), given.get("find") or "")
        return cls(wanted, state, limit, offset)

    @property
    def is_observed(self) -> bool:
        """Whether only a look at the queue says which runs are meant."""
        return self.state is not None and self.state not in ENDS

    def found(self, runs: Runs, shown: Callable[[RunSummary], Shown]) -> list[Shown]:
        """The runs of one database, as `runs` lists them: the newest first."""
        if not self.is_observed:
            return list(map(shown, runs(self.wanted, limit=self.limit, offset=self.offset)))
        found: list[Shown] = []
        wanted = self.wanted
        while len(found) < self.limit and (page := runs(wanted, limit=_PAGE)):
            found += [each for each in map(shown, page) if each.state.state == self.state]
            wanted = wanted._replace(older=(page[-1].started_at or "", page[-1].run_id))
        return found[: self.limit]

    def of_all(
        self, databases: list[DatabasePaths], found: Callable[[DatabasePaths, Query], list[Shown]]
    ) -> list[Shown]:
        """The runs of all databases together, each asked by `found`."""
        most = self.offset + self.limit
        # Where one database has them all, what is passed over need not be read.
        passed = self.offset if len(databases) == 1 and not self.is_observed else 0
        asked = self._replace(limit=most - passed, offset=passed)
        runs = [shown for paths in databases for shown in found(paths, asked)]
        runs.sort(key=lambda shown: (shown.summary.started_at or "", shown.summary.run_id), reverse=True)
        return runs[self.offset - passed : most - passed]


def fresh_status(registry: Registry, paths: DatabasePaths, run_id: str, clock: Clock) -> Shown | None:
    """A run as its row says, when the row names the commit that the run's ref names."""
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            summary = _fresh(index, paths, run_id)
            if summary is None:
                return None
            seen = observed(index, summary, clock, registry, paths)
    except (DatabaseGone, HermesError):
        return None
    return shown_of(seen, registry.operator, clock, paths)


def fresh_runs(registry: Registry, paths: DatabasePaths, query: Query, clock: Clock) -> list[Shown] | None:
    """Runs of one database, as its index says while nothing has moved in the refs' folder since it was made."""
    try:
        with closing(FastIndex(paths.sqlite)) as index:
            if index.stamp() != str(peek.stamp(paths.receipts)):
                return None
            return query.found(
                lambda wanted, **page: [row.summary for row in index.list_indexed(wanted, **page)],
                lambda run: shown_of(observed(index, run, clock, registry, paths), registry.operator, clock, paths),
            )
    except (DatabaseGone, HermesError):
        return None


def observed(index: FastIndex, summary: RunSummary, clock: Clock, registry: Registry, paths: DatabasePaths) -> Observed:
    """A run and the child runs it waits for, as the index knows them; DatabaseGone when it is behind with a child."""
    child = partial(_fresh, index, paths)
    return observed_in(index, partial(index.work, clock=clock), child, summary, registry, paths, clock)


def _fresh(index: FastIndex, paths: DatabasePaths, run_id: str) -> RunSummary | None:
    """What a run's row says; None when there is neither row nor ref, DatabaseGone when they differ."""
    # Asked first: what lands after this is in git when the ref is read.
    if peek.is_ahead(paths.receipts):
        raise DatabaseGone("git is about to have more than it shows")
    row = index.indexed(run_id)
    tip = peek.read_ref(paths.receipts, peek.RUNS + run_component(run_id))
    # A sealed run has ended, and its ref may have been dropped.
    if tip == (row.tip if row else None) or (tip is None and row and row.sealed):
        return row.summary if row else None
    raise DatabaseGone(f"the index is behind with {run_id}")
