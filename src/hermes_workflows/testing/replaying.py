"""Whether a recorded run is decided again as it was, from its receipts alone, end included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..authoring.workflow import Workflow
from ..core.history import History, fold
from ..runner.ends import other_end
from ..runner.slices import Decider
from .failures import HIDDEN, ReplayMismatch
from .results import RunResult
from .traces import Replayed, Scene

__tracebackhide__ = HIDDEN


@dataclass(frozen=True)
class ReplayedRun:
    """A run and what the present code made of its receipts."""

    result: RunResult[Any]
    replayed: Replayed


def replay_here(result: RunResult[Any], decider: Decider) -> list[ReplayedRun]:
    """Replay a run and its children. Raises ReplayMismatch."""
    history = fold(result.receipts)
    replayed = replay(result.scene, result.run_id, result.workflow, history, decider)
    children = [each for child in result.children.values() for each in replay_here(child, decider)]
    return [ReplayedRun(result, replayed), *children]


def replay(scene: Scene, run_id: str, workflow: Workflow[Any], history: History, decider: Decider) -> Replayed:
    replayed = decider.run(lambda: scene.replay(run_id, workflow, history))
    waits = ", ".join(each.shown for each in replayed.open) or replayed.stuck or "nothing"
    if (said := other_end(history.ended, replayed.end, waits)) is not None:
        raise ReplayMismatch(f"{run_id} is not decided as it was recorded: {said}")
    return replayed
