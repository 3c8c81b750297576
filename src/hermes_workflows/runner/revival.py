"""Stuck runs that this runner may be able to move: the code was mended, the right Python or an agent is here."""

from __future__ import annotations

import platform

from ..errors import HermesError
from ..store.queue_port import Stuck, Work
from .records import Records

# Marks that other code may lift, and those that nothing a runner has can lift.
_BY_CODE = frozenset({"divergence", "deadlock", "blocked", "poison", "input", "import", "not_found", "invalid_input"})


class Reviver:
    """Looks at the stuck marks of a database and lifts those that are not true of this runner.

    A mark is a fact about a run and a version of the code; a runner whose code replays cleanly goes on.
    """

    def __init__(self, records: Records, has_agent: bool) -> None:
        self._records = records
        self._has_agent = has_agent
        self._tried: dict[tuple[str, str], str] = {}

    def look(self) -> None:
        for mark in self._records.workspace.queue.stuck():
            if self._may_move(mark):
                self._records.pending.unstuck.append(mark.run_id)
                self._records.pending.offer.append(Work(mark.run_id, "workflow"))

    def _may_move(self, mark: Stuck) -> bool:
        if mark.kind == "no-agent":
            return self._has_agent
        if mark.kind == "python":
            here = ".".join(platform.python_version_tuple()[:2])
            return mark.code != f"python-{here}"
        return mark.kind in _BY_CODE and self._has_other_code(mark)

    def _has_other_code(self, mark: Stuck) -> bool:
        """Whether the workflow loads here as another version than the mark is about, not tried by us yet."""
        workspace = self._records.workspace
        indexed = workspace.queue.indexed(mark.run_id)
        if indexed is None:
            return False
        try:
            code = workspace.loader.load(indexed.summary.workflow).code
        except HermesError:
            return False
        if code == mark.code or self._tried.get((mark.run_id, mark.kind)) == code:
            return False
        self._tried[mark.run_id, mark.kind] = code
        return True
