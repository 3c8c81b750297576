"""The runs that a list is narrowed to, across databases, a page at a time: each page goes on after the one before.

What has ended is found by the index alone. Whether a run is queued, running, waiting or stuck depends on the queue and
on the time, so those that have not ended are looked at one by one, and only so many for one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..core.state_rules import ENDS
from ..core.states import OperationalState
from ..core.summary import RunSummary
from ..errors import HermesError
from ..store.wanted import LIVING, Wanted
from ..workspace import Workspace

# Runs that are looked at for one page of those in a state that the index does not know.
_LOOKED_AT: Final = 300


@dataclass(frozen=True)
class Hit:
    """A run that was found."""

    workspace: Workspace
    summary: RunSummary
    state: OperationalState


@dataclass(frozen=True)
class Page:
    """`after` is where the next page goes on, None at the end; `looked_at` runs were not all of the wanted state."""

    hits: tuple[Hit, ...]
    after: tuple[str, str] | None
    looked_at: int


_Listed = list[tuple[Workspace, RunSummary]]


def find_runs(every: Sequence[Workspace], wanted: Wanted, state: str, size: int) -> Page:
    """At most `size` of the `wanted` runs, the newest first; `state` is one of the seven, or "" for all."""
    if state in ENDS:
        wanted = wanted._replace(statuses=(state,))
    elif state:
        wanted = wanted._replace(statuses=LIVING)
    batch = size if state in ("", *ENDS) else _LOOKED_AT
    found = _newest(every, wanted, batch + 1)
    hits: list[Hit] = []
    looked_at = 0
    for workspace, summary in found[:batch]:
        if len(hits) == size:
            break
        looked_at += 1
        seen = workspace.observe(summary)
        if state in ("", seen.state):
            hits.append(Hit(workspace, summary, seen))
    after = _place(found[looked_at - 1][1]) if looked_at < len(found) else None
    return Page(tuple(hits), after, looked_at)


def readable(every: Sequence[Workspace]) -> tuple[tuple[Workspace, ...], tuple[str, ...]]:
    """The databases that can be read, and what cannot: the runs of the others are shown all the same."""
    found, broken = [], []
    for workspace in every:
        try:
            broken += [f"run {run}: {why}" for run, why in workspace.refresh().unreadable.items()]
            found.append(workspace)
        except HermesError as error:
            broken.append(f"database {workspace.paths.alias}: {error.message}")
    return tuple(found), tuple(broken)


def by_commit(every: Sequence[Workspace], text: str) -> Iterator[Hit]:
    """The run that a commit belongs to; nothing when `text` is none."""
    for workspace in every:
        try:
            summary = workspace.summary(workspace.resolve(text))
        except HermesError:
            # No such commit, or the beginning of several: an empty list says it.
            continue
        yield Hit(workspace, summary, workspace.observe(summary))


def _newest(every: Sequence[Workspace], wanted: Wanted, most: int) -> _Listed:
    """Each database gives as many as are wanted: the newest of all may all be of one."""
    found = [(each, row.summary) for each in every for row in each.queue.list_indexed(wanted, limit=most)]
    return sorted(found, key=lambda pair: _place(pair[1]), reverse=True)[:most]


def _place(summary: RunSummary) -> tuple[str, str]:
    return summary.started_at or "", summary.run_id
