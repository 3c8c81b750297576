"""The calls of one body: written, requested, given up. All that a decision says comes from here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import KeyClash
from .calls import AnyCall
from .sites import Site


class Written(Protocol):
    """Something to be awaited: a call or a composition of calls."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def site(self) -> Site: ...
    @property
    def task(self) -> asyncio.Task[Any] | None:
        """The task that evaluated it."""


class OpenCalls:
    """`outstanding` wait for a result; `withdrawn` were given up by the body and may still get one.

    `requested` and `dropped` are what happened since the last receipt.
    """

    def __init__(self) -> None:
        self.outstanding: dict[str, AnyCall] = {}
        self.withdrawn: dict[str, AnyCall] = {}
        self.requested: dict[str, AnyCall] = {}
        self.dropped: list[AnyCall] = []
        self._claimed: dict[str, Site] = {}
        self._sites: dict[tuple[str, int], Site] = {}
        self._unawaited: dict[int, Written] = {}

    def next_decision(self) -> None:
        self.requested = {}
        self.dropped = []

    def claim(self, key: str, site: Site, root: str | None) -> None:
        """Raises KeyClash when another call has the key: two calls never share a result."""
        other = self._claimed.get(key)
        if other is not None:
            raise KeyClash(
                f"two calls claim the key {key!r}: {other.within(root)} and {site.within(root)}",
                hint="give one of them another key=, name= or key_by=",
            )
        # One object a line: a loop of 10,000 steps has few lines, and what is kept of each step should be little.
        self._claimed[key] = self._sites.setdefault((site.code.co_filename, site.line), site)

    def written(self, item: Written) -> None:
        self._unawaited[item.number] = item

    def looked_after(self, item: object) -> None:
        """It is awaited, or was handed to what awaits it: nothing that the author forgot, if it is a call at all."""
        number: int = getattr(item, "number", 0)
        if self._unawaited.get(number) is item:
            del self._unawaited[number]

    def request(self, call: AnyCall, after: int) -> None:
        call.requested_after = after
        self.outstanding[call.key] = call
        self.requested[call.key] = call

    def withdraw(self, call: AnyCall) -> None:
        """The body gave up a call; one that was requested in this very decision has never been heard of."""
        call.cancelled = True
        self.outstanding.pop(call.key, None)
        if self.requested.pop(call.key, None) is None:
            self.withdrawn[call.key] = call
            self.dropped.append(call)

    def withdraw_all(self) -> None:
        for call in list(self.outstanding.values()):
            self.withdraw(call)

    def forgotten(self) -> Iterator[Written]:
        """What a body that has returned wrote and never awaited.

        Not what an open task holds, which may be on its way to its await, and not what a failure or a cancellation
        of its task jumped over.
        """
        return (item for item in self._unawaited.values() if item.task is None or _returned(item.task))


def _returned(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
