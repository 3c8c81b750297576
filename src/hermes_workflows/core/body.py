"""The tasks of one run: the body itself, what it leaves running, and its async generators.

It ends as under `asyncio.run`: leftover tasks are cancelled in creation order and awaited, their `finally` calls are
durable, then async generators are closed in order; only then is it over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .loop import BodyLoop
from .sites import Site, waiting_site


class Body:
    def __init__(self, loop: BodyLoop) -> None:
        self._loop = loop
        self._main: asyncio.Future[Any] | None = None
        self.winding_down = False

    def start(self, coro: Coroutine[Any, Any, Any]) -> None:
        self._main = self._loop.spawn(coro, self._loop.root)

    @property
    def done(self) -> bool:
        return self._main is not None and self._main.done()

    @property
    def error(self) -> BaseException | None:
        """What ended the body; None when it returned."""
        # SystemExit and KeyboardInterrupt, in whichever task, end everything.
        if self._loop.escaped is not None:
            return self._loop.escaped
        assert self._main is not None
        return asyncio.CancelledError("the body cancelled itself") if self._main.cancelled() else self._main.exception()

    @property
    def result(self) -> Any:
        assert self._main is not None
        return self._main.result()

    def cancel(self) -> None:
        """Tell it to stop: a CancelledError where it stands, or where what it left behind stands."""
        if self._main is not None and not self._main.done():
            self._main.cancel("the run was cancelled")
        else:
            self._cancel_leftovers()

    def step(self) -> bool:
        """Run until nothing is ready; says whether the body has returned or failed."""
        self._loop.drain()
        return self.done or self._loop.escaped is not None

    def wind_down(self) -> bool:
        """Once the body is done: go on ending what it left behind; says whether all is over."""
        if not self.winding_down:
            self.winding_down = True
            self._cancel_leftovers()
            self._loop.drain()
        while not self._loop.open_tasks() and self._loop.generators:
            # One after the other, like their creation: closing one may need a call, and the next one waits for it.
            self._loop.spawn(_close(self._loop.generators.pop(0)), self._loop.root)
            self._loop.drain()
        return not self._loop.open_tasks()

    def _cancel_leftovers(self) -> None:
        for task in self._loop.open_tasks():
            task.cancel()

    def waiting_sites(self) -> list[Site]:
        """Where its tasks are suspended, in creation order."""
        sites = (waiting_site(task) for task in self._loop.open_tasks())
        return list(dict.fromkeys(site for site in sites if site is not None))


async def _close(agen: Any) -> None:
    await agen.aclose()
