"""`always_replay` for every run that a test makes in its own process, whatever the test is about.

Beside each body that a runner holds another one is built from its receipts at every await, and compared. The test is
not disturbed: what differs is noted, and fails it when it is over.
"""

from __future__ import annotations

from collections.abc import Callable

from hermes_workflows.core.receipts import Receipt
from hermes_workflows.runner.bodies import Held
from hermes_workflows.runner.slices import Decider, SliceStopped
from hermes_workflows.testing.failures import Halt
from hermes_workflows.testing.traces import Scene
from hermes_workflows.testing.watching import WatchedBodies
from hermes_workflows.workspace import Workspace

NOTED: list[str] = []
"""What differed since somebody looked."""


class NotedBodies(WatchedBodies):
    """A runner's bodies, compared like those of `run_workflow(…, always_replay=True)`."""

    def __init__(self, workspace: Workspace, decider: Decider, on_refusal: Callable[[str], None]) -> None:
        scene = Scene(workspace.declared, str(workspace.root), workspace.secret)
        super().__init__(workspace, decider, on_refusal, scene)
        self._newest = 0

    def _decide_again(self, held: Held) -> None:
        self._newest = held.summary.seq
        try:
            super()._decide_again(held)
        except Halt as halt:
            NOTED.append(str(halt.failure))
        except SliceStopped as stopped:
            NOTED.append(f"{held.run_id} could not be decided again: {stopped}")

    def _read(self, run_id: str) -> list[Receipt]:
        """What the living body has seen: other runners may have written more by now."""
        return [receipt for receipt in super()._read(run_id) if receipt.seq <= self._newest]
