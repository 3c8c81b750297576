"""Which run and which call a log line is about: said once by whoever works on it, read by every handler.

A line that a workflow or a step writes with Python's `logging` carries them as well as ours do.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar

_ABOUT: ContextVar[tuple[str, str]] = ContextVar("hermes_workflows_about", default=("", ""))


class about:  # noqa: N801  # it is used like a function, and made of one it would take three times as long
    """What is logged meanwhile, in this thread and in the tasks it starts, is about this run."""

    __slots__ = ("_before", "_named")

    def __init__(self, run_id: str, key: str = "") -> None:
        self._named = run_id, key

    def __enter__(self) -> None:
        self._before = _ABOUT.set(self._named)

    def __exit__(self, *error: object) -> None:
        _ABOUT.reset(self._before)


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
