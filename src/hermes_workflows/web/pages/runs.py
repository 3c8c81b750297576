"""`/runs`: all runs, the newest first, narrowed by status, or by how an id or a commit begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.summary import RunSummary
from ...core.usages import told
from ...errors import HermesError
from ...workspace import Workspace
from ..live import live
from ..rendering import opened, page, segment, since, took

STATUSES: Final = ("running", "waiting", "completed", "failed", "cancelled")
# Rows on one page, and runs that a search shows.
_PAGE: Final = 50


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


@dataclass(frozen=True)
class Filter:
    status: str = ""
    find: str = ""

    def href(self, number: int) -> str:
        return f"/runs?{urlencode({**asdict(self), 'page': number})}"


@dataclass(frozen=True)
class Runs:
    """A page; `before` and `after` are the addresses of its neighbours, `unreadable` runs are not shown right."""

    rows: tuple[Row, ...]
    wanted: Filter
    before: str
    after: str
    unreadable: tuple[str, ...]
    statuses: tuple[str, ...] = STATUSES


def show(request: Request) -> Response:
    given = request.query_params
    status, text = given.get("status", ""), given.get("page", "1")
    wanted = Filter(status if status in STATUSES else "", given.get("find", "").strip())
    number = max(int(text), 1) if text.isdecimal() and len(text) < 7 else 1
    now = live(opened(request))
    every, broken = _readable(opened(request).every)
    found = _searched(every, wanted) if wanted.find else _listed(every, wanted.status, (number - 1) * _PAGE)
    rows = tuple(_row(workspace, summary) for workspace, summary in found[:_PAGE])
    before = wanted.href(number - 1) if number > 1 and not wanted.find else ""
    after = wanted.href(number + 1) if len(found) > _PAGE and not wanted.find else ""
    return page(request, "runs.html", Runs(rows, wanted, before, after, broken), live=now)


def _readable(every: tuple[Workspace, ...]) -> tuple[tuple[Workspace, ...], tuple[str, ...]]:
    """The databases that can be read, and what cannot: the runs of the others are shown all the same."""
    readable, broken = [], []
    for workspace in every:
        try:
            broken += [f"run {run}: {why}" for run, why in workspace.refresh().unreadable.items()]
            readable.append(workspace)
        except HermesError as error:
            broken.append(f"database {workspace.paths.alias}: {error.message}")
    return tuple(readable), tuple(broken)


Listed = list[tuple[Workspace, RunSummary]]


def _listed(every: tuple[Workspace, ...], status: str, offset: int) -> Listed:
    """The runs from `offset` on, and one more than fit on a page."""
    if len(every) == 1:
        return [(every[0], run) for run in every[0].runs(status=status or None, limit=_PAGE + 1, offset=offset)]
    most = offset + _PAGE + 1
    found = [(each, run) for each in every for run in each.runs(status=status or None, limit=most)]
    return _newest_first(found)[offset:]


def _searched(every: tuple[Workspace, ...], wanted: Filter) -> Listed:
    found = [pair for each in every for pair in _matching(each, wanted.find)]
    return _newest_first([pair for pair in found if wanted.status in ("", pair[1].status)])


def _matching(workspace: Workspace, text: str) -> Iterator[tuple[Workspace, RunSummary]]:
    names = workspace.queue.matching(text, _PAGE)
    if not names:
        try:
            names = [workspace.resolve(text)]
        except HermesError:
            # Nothing that begins so; an empty list says it.
            return
    for name in names:
        yield workspace, workspace.summary(name)


def _newest_first(found: Listed) -> Listed:
    return sorted(found, key=lambda pair: (pair[1].started_at or "", pair[1].run_id), reverse=True)


def _row(workspace: Workspace, summary: RunSummary) -> Row:
    now, state = workspace.clock.now(), workspace.observe(summary)
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


ROUTES: Final = (Route("/runs", show, name="runs"),)
