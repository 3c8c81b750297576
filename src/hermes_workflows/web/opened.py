"""The workspaces of a registry, held open while the dashboard runs; which of them a run is in."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Conflict, NotFound
from ..opening import open_workspace
from ..registry import Registry
from ..workspace import Workspace
from .remembering import remembering
from .settings import WebSettings


class Opened:
    """All databases that are served. Every method may block: handlers call them in a thread."""

    def __init__(self, registry: Registry, workspaces: Sequence[Workspace]) -> None:
        self.registry = registry
        self.every = tuple(workspaces)

    @classmethod
    def open(cls, settings: WebSettings, *, look: bool = False) -> Opened:
        """`look` promises not to write. Raises NotFound, IntegrityError, StoreFailure; then nothing stays open."""
        workspaces: list[Workspace] = []
        try:
            for paths in settings.databases:
                made = open_workspace(settings.registry, paths, settings.surroundings, look=look)
                made.ledger = remembering(made.ledger)
                workspaces.append(made)
        except BaseException:
            _close(workspaces)
            raise
        return cls(settings.registry, workspaces)

    def of_run(self, run: str) -> Workspace:
        """The workspace that knows `run`: anything that `Workspace.find` takes.

        Raises NotFound, and Conflict for a run that several databases have: nobody may answer the other one's question.
        """
        if len(self.every) == 1:
            return self.every[0]
        knowing, unknown = [], NotFound(f"no run {run!r}: no database is open")
        for workspace in self.every:
            try:
                workspace.find(run)
            except NotFound as error:
                unknown = error
            else:
                knowing.append(workspace)
        if len(knowing) > 1:
            names = [workspace.paths.alias for workspace in knowing]
            hint = f"start the dashboard with --db {names[0]}, or with another of them"
            raise Conflict(f"the databases {', '.join(names)} each have a run {run}", hint=hint)
        if not knowing:
            raise unknown
        return knowing[0]

    def close(self) -> None:
        _close(self.every)


def _close(workspaces: Sequence[Workspace]) -> None:
    for workspace in workspaces:
        workspace.close()
