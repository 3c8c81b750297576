"""What a test gets to look at: how a run ended, and every receipt that led there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from ..authoring.workflow import Workflow
from ..core.layout import Role
from ..core.receipts import Failure, Receipt
from ..core.spelling import suggestion
from ..core.summary import Status, summarize
from ..core.timestamps import parse_time
from .traces import Scene

T = TypeVar("T")


@dataclass(frozen=True)
class RunResult(Generic[T]):
    """A run that has ended, waits for an answer nobody gave, or is stuck.

    `result` is the body's return value, None unless `status` is completed. `error` says why it failed, `stuck` why it
    cannot move. `waiting_on` are the keys of open questions and waits. `children` are child runs, by the parent's key.
    """

    run_id: str
    status: Status
    result: T | None
    error: Failure | None
    stuck: str | None
    waiting_on: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    children: Mapping[str, RunResult[Any]]
    workflow: Workflow[T]
    scene: Scene = field(repr=False, compare=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The calls of the run, in the order of their first receipt."""
        return tuple(dict.fromkeys(each.key for each in self.receipts if each.kind not in _NO_CALLS))

    @property
    def took(self) -> timedelta:
        """How much of the run's own time has passed, from its start to its newest receipt."""
        summary = summarize(self.run_id, self.receipts)
        if summary.started_at is None or summary.updated_at is None:
            return timedelta(0)
        return parse_time(summary.updated_at) - parse_time(summary.started_at)

    def receipt(self, key: str) -> Receipt:
        """The result of the call `key`. Raises KeyError, with the nearest key there is."""
        results = {each.key: each for each in self.receipts if each.role is Role.RESULT and each.kind not in _NO_CALLS}
        if key not in results:
            raise KeyError(f"no call {key!r} has a result; {suggestion(key, list(results), 'calls')}")
        return results[key]

    def __repr__(self) -> str:
        parts = [self.run_id, self.status]
        if self.status == "completed":
            parts.append(f"result={self.result!r}")
        if self.error:
            parts.append(f"error={self.error.type}: {self.error.message}")
        if self.stuck:
            parts.append(f"stuck={self.stuck}")
        if self.waiting_on:
            parts.append(f"waiting_on={', '.join(self.waiting_on)}")
        return f"<RunResult {' '.join(parts)} keys={', '.join(self.keys)}>"


_NO_CALLS = frozenset({"run", "result", "control"})
