"""What has changed since a page was made: a short text that is another one as soon as the page would be.

It is made of receipts and of the queue alone, so it means the same after a restart: who comes back with the last one
is told at once whether anything was missed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool

from ..errors import HermesError
from ..facts import last_line
from ..workspace import Workspace
from .opened import Opened

# The newest runs, of which a list shows the change.
_NEWEST: Final = 50
# Topics beyond that are looked at anew.
_TOPICS: Final = 1000
# Milliseconds after which a browser comes back.
_RETRY: Final = 2000

Look = Callable[[str], str]


@dataclass(frozen=True)
class Live:
    """What a page goes on from: `run` is its subject, "" for lists; `version` is what it was made of."""

    run: str
    version: str

    @property
    def href(self) -> str:
        return f"/events?{urlencode({'run': self.run, 'since': self.version})}"


def live(every: Opened, run: str = "") -> Live:
    """Ask for it *before* the page is made: what changes in between is told then, and never missed."""
    return Live(run, version_of(every, run))


def version_of(every: Opened, run: str) -> str:
    """Another text whenever the page of `run`, or with "" a list, would say something else."""
    try:
        seen = [_of_run(every.of_run(run), run)] if run else list(map(_of_all, every.every))
    except HermesError as error:
        seen = [error.code]
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _of_run(workspace: Workspace, run: str) -> object:
    summary = workspace.summary(workspace.resolve(run))
    state = workspace.observe(summary)
    # Not the reason: it says for how long, and would be new with every look.
    rows, runners = workspace.queue.work(summary.run_id), workspace.queue.runners()
    work = sorted((row.work.key, row.status, row.claims, last_line(row, runners)) for row in rows)
    return summary.seq, state.state, state.label, work


def _of_all(workspace: Workspace) -> object:
    runs = [(run.run_id, run.seq) for run in workspace.runs(limit=_NEWEST)]
    return runs, workspace.queue.open_questions()


class Looks:
    """However many tabs are open, each topic is looked at once in so many `seconds`."""

    def __init__(self, look: Look, seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._known: dict[str, tuple[float, str]] = {}

    async def at(self, topic: str, *, fresh: bool = False) -> str:
        """The version now, or the one that somebody was told less than `seconds` ago unless it must be `fresh`."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(topic)
        if known is not None and not fresh and now - known[0] < self._seconds:
            return known[1]
        found = await run_in_threadpool(self._look, topic)
        if len(self._known) > _TOPICS:
            self._known.clear()
        self._known[topic] = (now, found)
        return found


async def ticks(seconds: float, lasting: float, ending: asyncio.Event) -> AsyncIterator[None]:
    """Now, and again every `seconds`; it ends after `lasting`, since a browser comes back by itself, and when all is
    `ending`: nobody waits for it then."""
    until = asyncio.get_running_loop().time() + lasting
    while True:
        yield
        if ending.is_set() or asyncio.get_running_loop().time() + seconds > until:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), seconds)


async def stream(looks: Looks, topic: str, last: str, beats: AsyncIterator[None]) -> AsyncIterator[str]:
    """Server-sent events: one `changed` for every version that is another one than the reader had last."""
    yield f"retry: {_RETRY}\n\n"
    fresh = True
    async for _ in beats:
        # The first time not what others were told: the page may be younger than that.
        version = await looks.at(topic, fresh=fresh)
        fresh = False
        if version != last:
            last = version
            yield f"id: {version}\nevent: changed\ndata: {version}\n\n"
        else:
            # Who has gone is noticed by what is sent to nobody.
            yield ": nothing new\n\n"
