"""Whether a runner is there for a database: an answer that nobody goes on with looks as if it were lost."""

from __future__ import annotations

from ..doctor import split_of
from ..lives import is_healthy
from ..workspace import Workspace


def missing(workspace: Workspace) -> str:
    """What to do so that runs of this database go on; "" while a runner serves it."""
    if (split := split_of(workspace)) is not None:
        return f"{split.what}: {split.hint}"
    if any(is_healthy(row, workspace.clock) for row in workspace.queue.runners()):
        return ""
    return f"No runner is up for {workspace.paths.sqlite.name}: start one with hermes-workflows runner run"
