"""`/`: what waits for people, the oldest first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...store.queue_port import ReviewRow
from ...store.wanted import WantedReviews
from ...workspace import Workspace
from ..live import live
from ..rendering import opened, page, segment, since, until
from ..searching import readable

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

    @property
    def reviews(self) -> WantedReviews:
        return WantedReviews(None if self.state == "all" else self.state, self.workflow or None, self.person or None)


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
    text = given.get("page", "1")
    number = max(int(text) if text.isdecimal() and 0 < len(text) < 7 else 1, 1)
    every, unread = readable(opened(request).every)
    # Of several databases each one may have all that a page shows.
    offset = (number - 1) * _PAGE if len(every) == 1 else 0
    found = [each.queue.inbox(wanted.reviews, limit=number * _PAGE - offset, offset=offset) for each in every]
    rows = [_row(each, *row) for each, its in zip(every, found, strict=True) for row in its.rows]
    rows.sort(key=lambda row: (row.asked, row.run_id, row.key))
    total = sum(each.total for each in found)
    view = Inbox(
        rows=tuple(rows[(number - 1) * _PAGE - offset :][:_PAGE]),
        total=total,
        before=wanted.href(number - 1) if number > 1 else "",
        after=wanted.href(number + 1) if number * _PAGE < total else "",
        unread=unread,
        wanted=wanted,
        workflows=tuple(sorted({name for each in found for name in each.workflows})),
        people=tuple(sorted({name for each in found for name in each.people})),
    )
    return page(request, "inbox.html", view, live=now)


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
