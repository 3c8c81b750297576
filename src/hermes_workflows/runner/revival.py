"""Stuck runs that can be moved after all: the code was mended, the right Python or an agent is here, somebody gave up.

A mark is a fact about a run and a version of the code. A runner whose code replays cleanly goes on and lifts it.
"""

from __future__ import annotations

from ..core.divergence import PYTHON
from ..core.summary import RunSummary
from ..errors import HermesError
from ..settings import Agents
from ..store.queue_port import PAUSED, Stuck, Work
from . import endings, timing
from .intents import NEEDS_DECISION
from .poison import POISON, POISON_CALL
from .records import Records
from .results import AGENT

# Nothing but other code can lift these: the same code would decide the same.
_BY_CODE = frozenset({"divergence", "deadlock", "blocked", POISON, POISON_CALL, "input", "secret"})
# The body replays; it can be told that it is cancelled, and clean up.
_BODY_IS_WELL = frozenset({"no-agent", "agent-not-started", NEEDS_DECISION, PAUSED, POISON_CALL, "child-id"})


class Reviver:
    """Looks at the stuck marks of a database and lifts those that are not true of this runner."""

    def __init__(self, records: Records, agents: Agents) -> None:
        self._records = records
        self._agents = agents
        self._tried: set[tuple[str, str, str, str]] = set()

    def look(self) -> None:
        """Raises StoreFailure and TemporarilyLocked when the ledger takes no end of a cancelled run now."""
        for mark in self._records.workspace.queue.stuck():
            indexed = self._records.workspace.queue.indexed(mark.run_id)
            if indexed is None or indexed.summary.home != self._records.workspace.ledger.home:
                continue
            if timing.is_overdue(self._records, indexed.summary):
                # The row that would say so is not claimable, being one of a stuck run.
                timing.overrun(self._records, mark.run_id)
            elif indexed.summary.cancel_requested is not None and mark.kind not in _BODY_IS_WELL:
                endings.end_stuck(self._records, mark)
            elif indexed.summary.cancel_requested is not None or self._may_move(mark, indexed.summary):
                self._records.pending.unstuck.append(mark.run_id)
                self._records.pending.offer.append(Work(mark.run_id, "workflow"))

    def _may_move(self, mark: Stuck, summary: RunSummary) -> bool:
        if mark.kind == PAUSED:
            return summary.paused is None
        if mark.kind == "no-agent":
            return self._agents.find(mark.code.removeprefix(AGENT)) is not None
        if mark.kind == "python":
            return mark.code != f"python-{PYTHON}"
        if mark.kind == NEEDS_DECISION:
            # A runner that everybody took for dead has left its result.
            return mark.key not in summary.open_intents
        return self._has_other_code(mark, summary) or (mark.kind not in _BY_CODE and self._is_first_try(mark))

    def _has_other_code(self, mark: Stuck, summary: RunSummary) -> bool:
        try:
            return self._records.workspace.loader.code_of(summary.workflow) != mark.code
        except HermesError:
            return False

    def _is_first_try(self, mark: Stuck) -> bool:
        """What may have been mended outside of the code is tried once by each runner that is started."""
        name = (mark.run_id, mark.kind, mark.key, mark.code)
        if name in self._tried:
            return False
        self._tried.add(name)
        return True
