"""What `run --wait` and `run --drain` show while they wait, and what they end with (DESIGN §5)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import Divergence, TemporarilyLocked
from ..facts import facts_of
from .writing import one_line

if TYPE_CHECKING:
    from ..core.states import OperationalState
    from ..core.summary import RunSummary
    from ..workspace import Workspace
    from .scope import Scope

# How the two end, by what became of the run.
_EXIT = {"completed": 0, "failed": 1, "cancelled": 1, "waiting": 3}
# Marks that say that the receipts and the present code do not fit, or that the receipts do not add up.
_INTEGRITY = frozenset({"divergence", "integrity", "newer_schema"})
_LOOK_SECONDS = 0.2


def exit_code(workspace: Workspace, summary: RunSummary, state: OperationalState) -> int:
    """Zero for a completed run; a stuck one is a matter of integrity, or of trying again later."""
    # A question that a child asks is one of the run's own: nothing moves until somebody answers.
    became = "waiting" if state.state == "waiting" else summary.status
    if state.state == "stuck" and any(mark.kind in _INTEGRITY for mark in workspace.queue.stuck(summary.run_id)):
        return Divergence.exit_code
    return _EXIT.get(became, TemporarilyLocked.exit_code)


@contextmanager
def progress(scope: Scope, workspace: Workspace, run_id: str) -> Iterator[None]:
    """A line on a terminal's stderr whenever the run does something else, for as long as the block lasts.

    Plain lines: what redraws itself would have to share locks with everything else that speaks there meanwhile.
    """
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def look() -> None:
        told: object = None
        while True:
            now, line = _seen(workspace, run_id)
            if now != told:
                told = now
                scope.output.talk(line)
            if ended.wait(_LOOK_SECONDS):
                return

    thread = threading.Thread(target=look, name="hermes-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _seen(workspace: Workspace, run_id: str) -> tuple[object, str]:
    """What is going on and the line that says so, from the index alone: whoever works on the run keeps it fresh."""
    known = workspace.queue.indexed(run_id)
    if known is None:
        return None, run_id
    seen = workspace.observed(known.summary)
    facts = facts_of(seen, workspace.registry.operator, workspace.clock)
    state, done = workspace.observe(known.summary), sum(known.summary.calls.values())
    told = f"{run_id}: {state.label}, {done} calls done; {one_line(state.reason, 100)}"
    return (state.label, done, facts.executing), told
