"""`/runners`: who is alive and doing what, and what waits in the queue of each database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.durations import lasting
from ...facts import last_line, runnable, seconds_in_hand, waiting_since
from ...lives import life_of, named, told
from ...store.queue_port import RunnerRow, WorkRow
from ...workspace import Workspace
from ..attendance import missing
from ..rendering import opened, page, segment, since


@dataclass(frozen=True)
class InHand:
    """A row that a runner has claimed, and the last line that was printed of it."""

    run_id: str
    href: str
    what: str
    age: str
    said: str


@dataclass(frozen=True)
class RunnerView:
    """`life` is for looks, `told` for readers; `age` is how long ago its last heartbeat was."""

    name: str
    life: str
    told: str
    facts: tuple[str, ...]
    heartbeat: str
    age: str
    hands: tuple[InHand, ...]


@dataclass(frozen=True)
class Queue:
    """One database: `missing` says what to do when nobody serves it, `waits` how many rows of each kind are due."""

    database: str
    missing: str
    runners: tuple[RunnerView, ...]
    waits: tuple[str, ...]
    oldest: str


@dataclass(frozen=True)
class Runners:
    queues: tuple[Queue, ...]


def show(request: Request) -> Response:
    return page(request, "runners.html", Runners(tuple(map(_queue, opened(request).every))))


def _queue(workspace: Workspace) -> Queue:
    queue, clock = workspace.queue, workspace.clock
    work, runners = queue.work(), queue.runners()
    due, now = runnable(work, queue.stuck(), clock), clock.now().timestamp()
    kinds = Counter(row.work.kind for row in due)
    return Queue(
        database=str(workspace.paths.sqlite),
        missing=missing(workspace),
        runners=tuple(_runner(workspace, row, work, runners) for row in runners),
        waits=tuple(f"{count:,} {kind}" for kind, count in sorted(kinds.items())),
        oldest=lasting(max(now - waiting_since(row) for row in due)) if due else "",
    )


def _runner(workspace: Workspace, row: RunnerRow, work: Iterable[WorkRow], runners: list[RunnerRow]) -> RunnerView:
    clock = workspace.clock
    facts = (
        f"Python {row.python}" if row.python else "",
        f"{row.concurrency} at once",
        f"only {', '.join(row.only)}" if row.only else "",
        "takes nothing new" if row.draining else "",
    )
    now = clock.now().timestamp()
    return RunnerView(
        name=named(row),
        life=life_of(row, clock),
        told=told(row, clock),
        facts=tuple(filter(None, facts)),
        heartbeat=row.heartbeat_at,
        age=since(row.heartbeat_at, clock.now()),
        hands=tuple(_hand(each, runners, now) for each in work if each.runner == row.runner_id and each.claimed_at),
    )


def _hand(row: WorkRow, runners: list[RunnerRow], now: float) -> InHand:
    work = row.work
    what = " ".join(filter(None, (work.kind, work.name, work.key)))
    age = lasting(seconds_in_hand(row, now))
    return InHand(work.run_id, f"/runs/{segment(work.run_id)}", what, age, last_line(row, runners))


ROUTES: Final = (Route("/runners", show, name="runners"),)
