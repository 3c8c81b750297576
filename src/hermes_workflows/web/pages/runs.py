"""`/runs`: all runs, the newest first, narrowed by state, workflow, where they come from, and words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.state_rules import STATES
from ...store.wanted import Wanted
from ..live import live
from ..rendering import opened, page
from ..run_rows import Row, row_of
from ..searching import Page, by_commit, find_runs, readable

# Rows on one page.
_PAGE: Final = 50


@dataclass(frozen=True)
class Filter:
    """What a reader asks for; `after` is the run that the page before has ended with, as time and id."""

    state: str = ""
    workflow: str = ""
    source: str = ""
    find: str = ""
    after: str = ""

    @property
    def wanted(self) -> Wanted:
        started, _, run_id = self.after.partition(",")
        older = (started, run_id) if self.after else None
        return Wanted(workflow=self.workflow or None, source=self.source or None, text=self.find, older=older)

    def href(self, after: tuple[str, str] | None = None) -> str:
        given = {**asdict(self), "after": ",".join(after or ())}
        asked = urlencode({name: value for name, value in given.items() if value})
        return f"/runs?{asked}" if asked else "/runs"


@dataclass(frozen=True)
class Runs:
    """A page; `newest` and `older` are the addresses of others. `unreadable` runs are not shown right.

    `looked_at` counts the runs that were looked at for a page that is not full and not the last one.
    """

    rows: tuple[Row, ...]
    wanted: Filter
    newest: str
    older: str
    unreadable: tuple[str, ...]
    workflows: tuple[str, ...]
    looked_at: int = 0
    states: tuple[str, ...] = STATES


def runs_of(workflow: str) -> str:
    """The address of the list of a workflow's runs."""
    return Filter(workflow=workflow).href()


def show(request: Request) -> Response:
    given = {name: request.query_params.get(name, "").strip() for name in asdict(Filter())}
    wanted = Filter(**{**given, "state": given["state"] if given["state"] in STATES else ""})
    now = live(opened(request))
    every, broken = readable(opened(request).every)
    found = find_runs(every, wanted.wanted, wanted.state, _PAGE)
    if wanted == Filter(find=wanted.find) and wanted.find and not (found.hits or found.after):
        found = Page(tuple(by_commit(every, wanted.find)), None, 0)
    workflows = sorted({counts.workflow for each in every for counts in each.queue.counts()})
    view = Runs(
        rows=tuple(row_of(hit.summary, hit.state, hit.workspace.clock.now()) for hit in found.hits),
        wanted=wanted,
        newest=wanted.href() if wanted.after else "",
        older=wanted.href(found.after) if found.after else "",
        unreadable=broken,
        workflows=tuple(workflows),
        looked_at=found.looked_at if found.after and len(found.hits) < _PAGE else 0,
    )
    return page(request, "runs.html", view, live=now)


ROUTES: Final = (Route("/runs", show, name="runs"),)
