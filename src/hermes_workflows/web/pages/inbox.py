"""`/`: what waits for people, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import HermesError
from ...store.queue_port import ReviewRow
from ...workspace import Workspace
from ..live import live
from ..rendering import opened, page, segment, since, until

_LINE: Final = 160
# Rows on one page.
_PAGE: Final = 100


@dataclass(frozen=True)
class Waiting:
    """One question. `age` is how long ago it was asked, `left` how long it can be answered still."""

    href: str
    run_id: str
    key: str
    prompt: str
    workflow: str
    assignee: str
    status: str
    asked: str
    age: str
    expires: str
    left: str


@dataclass(frozen=True)
class Filter:
    workflow: str = ""
    person: str = ""
    state: str = "open"

    def href(self, number: int) -> str:
        return f"/?{urlencode({**asdict(self), 'page': number})}"

    def takes(self, row: Waiting) -> bool:
        return self.workflow in ("", row.workflow) and self.person in ("", row.assignee)


@dataclass(frozen=True)
class Inbox:
    """One page of the list; `total` are all that are wanted, `before` and `after` the addresses of its neighbours.

    `unread` says which runs or databases are not in it, and why.
    """

    rows: tuple[Waiting, ...]
    total: int
    before: str
    after: str
    unread: tuple[str, ...]
    wanted: Filter
    workflows: tuple[str, ...]
    people: tuple[str, ...]


def show(request: Request) -> Response:
    given, now = request.query_params, live(opened(request))
    wanted = Filter(given.get("workflow", ""), given.get("person", ""), given.get("state", "open"))
    rows: list[Waiting] = []
    unread: list[str] = []
    for workspace in opened(request).every:
        try:
            rows += _rows(workspace, wanted.state)
            unread += [f"run {run}: {why}" for run, why in workspace.refresh().unreadable.items()]
        except HermesError as error:
            # The questions of the other databases wait all the same.
            unread.append(f"database {workspace.paths.alias}: {error.message}")
    rows.sort(key=lambda row: (row.asked, row.run_id, row.key))
    text = given.get("page", "1")
    number = int(text) if text.isdecimal() and 0 < len(text) < 7 else 1
    return page(request, "inbox.html", _view(rows, wanted, max(number, 1), unread), live=now)


def _view(rows: list[Waiting], wanted: Filter, number: int, unread: list[str]) -> Inbox:
    taken = [row for row in rows if wanted.takes(row)]
    end = number * _PAGE
    return Inbox(
        rows=tuple(taken[end - _PAGE : end]),
        total=len(taken),
        before=wanted.href(number - 1) if number > 1 else "",
        after=wanted.href(number + 1) if end < len(taken) else "",
        unread=tuple(unread),
        wanted=wanted,
        workflows=tuple(sorted({row.workflow for row in rows})),
        people=tuple(sorted({row.assignee for row in rows if row.assignee})),
    )


def _rows(workspace: Workspace, state: str) -> Iterator[Waiting]:
    names: dict[str, str] = {}
    for row in workspace.reviews(status=None if state == "all" else state):
        if row.run_id not in names:
            names[row.run_id] = workspace.summary(row.run_id).workflow
        yield _row(workspace, row, names[row.run_id])


def _row(workspace: Workspace, row: ReviewRow, workflow: str) -> Waiting:
    now = workspace.clock.now()
    prompt = " ".join(row.prompt.split())
    return Waiting(
        href=f"/reviews/{segment(row.run_id)}/{segment(row.key)}",
        run_id=row.run_id,
        key=row.key,
        prompt=prompt if len(prompt) <= _LINE else f"{prompt[:_LINE]}…",
        workflow=workflow,
        assignee=row.assignee or "",
        status=row.status,
        asked=row.requested_at or "",
        age=since(row.requested_at, now),
        expires=row.expires_at or "",
        left=until(row.expires_at, now) if row.status == "open" else "",
    )


ROUTES: Final = (Route("/", show, name="inbox"),)
