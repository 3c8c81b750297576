"""The threads that execute calls. Daemons, since one that is left behind by a deadline must not keep the process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Pool:
    """`size` threads at most, started when there is work for them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def submit(self, work: Work) -> None:
        """Run `work` as soon as a thread is free; it must not raise."""
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._size:
            thread = threading.Thread(target=self._serve, name=f"hermes-executor-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            self._idle.release()

    def one_more(self) -> None:
        """Instead of a thread that may never come back."""
        self._size += 1

    def close(self) -> None:
        for _ in self._threads:
            self._work.put(None)
