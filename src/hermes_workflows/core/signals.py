"""Signals on their way into a body: the oldest wait for its name takes one, and an early one is kept for the next wait.

A wait that timed out or was given up takes none. All of it follows from the order of receipts, so a rebuilt body hands
the same signal to the same wait.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from .names import clean_key

if TYPE_CHECKING:
    from .calls import Call
    from .receipts import Receipt


class Signals:
    """What was sent and not waited for, and who waits, by name; names are compared as paths write them."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, deque[Receipt]] = defaultdict(deque)
        self._waits: defaultdict[str, deque[Call[Any]]] = defaultdict(deque)

    def waits(self, call: Call[Any]) -> Receipt | None:
        """The kept signal that a new wait gets at once; None when it has to wait."""
        name = clean_key(str(call.request["name"]))
        if self._kept[name]:
            return self._kept[name].popleft()
        self._waits[name].append(call)
        return None

    def arrived(self, receipt: Receipt) -> Call[Any] | None:
        """The wait that a signal ends; without one it is kept."""
        name = clean_key(receipt.key)
        waits = self._waits[name]
        while waits:
            call = waits.popleft()
            if call.outcome is None and not call.cancelled:
                return call
        self._kept[name].append(receipt)
        return None
