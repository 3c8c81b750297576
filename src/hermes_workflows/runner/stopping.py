"""The wish that something end: told once, heard at once by whoever executes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StopSignal:
    """Tells an executing call to stop, from any thread. It is set once; the first reason stays."""

    def __init__(self) -> None:
        # Re-entrant, so that a signal handler may set it whatever its thread is doing here.
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], None]] = []
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        return self._reason

    def is_set(self) -> bool:
        return self._reason is not None

    def set(self, reason: str) -> None:
        """`reason` is for people: "cancelled by ana", "the runner is stopping"."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` (short, from another thread) when the signal is set; at once if it is set already."""
        with self._lock:
            self._listeners.append(listener)
            late = self.is_set()
        try:
            if late:
                listener()
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
