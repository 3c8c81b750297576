"""Which run and which call a log line is about: said once by whoever works on it, read by every handler.

A line that a workflow or a step writes with Python's `logging` carries them as well as ours do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[tuple[str, str]] = ContextVar("hermes_workflows_about", default=("", ""))


@contextmanager
def about(run_id: str, key: str = "") -> Iterator[None]:
    """What is logged meanwhile, in this thread and in the tasks it starts, is about this run."""
    before = _ABOUT.set((run_id, key))
    try:
        yield
    finally:
        _ABOUT.reset(before)


def now_about(run_id: str, key: str = "") -> None:
    """The same until another one is named: for a thread that does nothing else."""
    _ABOUT.set((run_id, key))


class About(logging.Filter):
    """Gives each record `run` and `key` (empty where it is about none), and `runner`."""

    def __init__(self, runner: str = "") -> None:
        super().__init__()
        self._runner = runner

    def filter(self, record: logging.LogRecord) -> bool:
        record.run, record.key = _ABOUT.get()
        record.runner = self._runner
        return True
