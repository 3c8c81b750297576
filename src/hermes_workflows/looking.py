"""A workspace that can only be looked at: its folder, or its disk, takes no writing.

The index is made again in memory from the receipts, which are the truth anyway. What only SQLite knows (leases,
heartbeats, why a runner found a run stuck) is read from the file when it can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .core.clock import Clock
from .errors import HermesError
from .registry import DatabasePaths
from .store import index
from .store.fast_status import DatabaseGone, FastIndex
from .store.memory_queue import MemoryQueue
from .store.ports import Ledger
from .store.queue_port import Indexed, RunnerRow, Stuck, WorkRow

T = TypeVar("T")


class LookingQueue(MemoryQueue):
    """An index in memory beside the observations of the file nobody may write."""

    def __init__(self, paths: DatabasePaths, ledger: Ledger, clock: Clock) -> None:
        super().__init__(clock=clock, rebuild=lambda: index.all_indexed(ledger), home=ledger.home)
        self._observed_by = clock
        self._file = _opened(paths)

    def runners(self) -> list[RunnerRow]:
        return self._file.runners() if self._file else super().runners()

    def stuck(self, run_id: str | None = None) -> list[Stuck]:
        return self._file.stuck(run_id) if self._file else super().stuck(run_id)

    def work(self, run_id: str | None = None) -> list[WorkRow]:
        return self._file.work(run_id, clock=self._observed_by) if self._file else super().work(run_id)

    def close(self) -> None:
        if self._file:
            self._file.close()
        super().close()


class PeekingQueue(MemoryQueue):
    """No index of its own, for who reads receipts and writes nothing: what the file knows helps to find runs faster."""

    def __init__(self, paths: DatabasePaths, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._file = _opened(paths)

    def indexed(self, run_id: str) -> Indexed | None:
        return self._asked(lambda file: file.indexed(run_id), None)

    def matching(self, prefix: str, limit: int = 10) -> list[str]:
        return self._asked(lambda file: file.matching(prefix, limit), [])

    def started_from(self, run_id: str) -> list[str]:
        return self._asked(lambda file: file.started_from(run_id), [])

    def stamp(self) -> str:
        return self._asked(FastIndex.stamp, "")

    def close(self) -> None:
        if self._file:
            self._file.close()
        super().close()

    def _asked(self, question: Callable[[FastIndex], T], nothing: T) -> T:
        try:
            return question(self._file) if self._file else nothing
        except (DatabaseGone, HermesError):
            return nothing


def _opened(paths: DatabasePaths) -> FastIndex | None:
    try:
        return FastIndex(paths.sqlite)
    except (DatabaseGone, HermesError):
        return None
