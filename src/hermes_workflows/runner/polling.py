"""Answers that nobody tells a runner of: pushed to a branch here, or given in a pull request (SEMANTICS §8).

Pushed ones cost a look into one folder. Pull requests are asked for by a thread of its own, since a forge may take
its time, and only while a question waits. Several runners may look at once: the same review is recorded once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..core.messages import one_line
from ..core.names import run_component
from ..errors import HermesError
from ..publishing import address_of
from ..review.commits import import_commits
from ..review.forge import BRANCH, import_reviews
from ..review.imported import Imported
from ..settings import PullRequests
from .about import about
from .gh import Gh
from .records import log
from .results import SHUTDOWN

if TYPE_CHECKING:
    from ..workspace import Workspace

_FOLDER = "refs/heads/answer"
# In seconds: a `gh` that was told to stop is gone by then.
_LEAVE = 10.0


class Polling:
    """One database's answers from elsewhere. `look` and `close` belong to the runner's loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._settings = workspace.registry.pull_requests
        self._next = 0.0
        self._thread: threading.Thread | None = None
        self._gh: Gh | None = None
        # What was refused is told once, and looked at again all the same: access may be given later.
        self._told: set[tuple[str, tuple[str, ...]]] = set()

    @property
    def busy(self) -> bool:
        """Whether a forge is being asked: an answer may come of it in a moment."""
        return self._thread is not None and self._thread.is_alive()

    def look(self) -> None:
        try:
            if self._pushed():
                self._tell(import_commits(self._workspace, fetched=False))
        except HermesError as error:
            log.warning("answers that were pushed could not be read: %s", error.message)
        if self._settings is not None and not self.busy and self._workspace.clock.elapsed() >= self._next:
            self._next = self._workspace.clock.elapsed() + self._settings.every
            self._ask(self._settings)

    def close(self) -> None:
        if self._gh is not None:
            self._gh.stop.set(SHUTDOWN)
        if self._thread is not None:
            self._thread.join(_LEAVE)

    def _pushed(self) -> bool:
        # A push makes a file of its own here; what `git pack-refs` has tidied away waits for `review import`.
        try:
            return any(not name.endswith(".lock") for name in os.listdir(self._workspace.paths.receipts / _FOLDER))
        except OSError:
            return False

    def _ask(self, settings: PullRequests) -> None:
        workspace = self._workspace
        runs = dict.fromkeys(row.run_id for row in workspace.queue.reviews(run_id=None, status="open"))
        if not runs:
            return
        if not Gh.is_there(workspace.environment):
            self._tell_once("gh is not there", "pull requests are not looked at: there is no program gh")
            return
        address = address_of(settings.repository)
        self._gh = Gh(address, workspace.root, workspace.environment, workspace.redactor, workspace.clock)
        self._thread = threading.Thread(
            target=self._poll, args=(self._gh, list(runs)), name="hermes-polling", daemon=True
        )
        self._thread.start()

    def _poll(self, gh: Gh, runs: Iterable[str]) -> None:
        try:
            for run_id in runs:
                for pull in gh.of_branch(BRANCH + run_component(run_id)):
                    if not gh.stop.is_set():
                        self._tell(import_reviews(self._workspace, gh, pull, run_id))
        except HermesError as error:
            if not gh.stop.is_set():
                log.warning("pull requests could not be read: %s", error.message)
        except Exception:
            # A thread that dies would end all looking, silently.
            log.exception("pull requests could not be read")

    def _tell(self, answers: Iterable[Imported]) -> None:
        for one in answers:
            if one.outcome == "recorded":
                with about(one.run_id, one.key):
                    log.info("%s answered %s (%s)", one_line(one.by), one.key, one.kind)
            elif one.outcome == "refused" and (one.source, one.reasons) not in self._told:
                self._told.add((one.source, one.reasons))
                # Whoever wrote the review may have written anything into it.
                why = one_line("; ".join(one.reasons))
                with about(one.run_id, one.key or ""):
                    log.warning("no answer from %s (%s): %s", one_line(one.by), one.source, why)

    def _tell_once(self, what: str, message: str) -> None:
        if (what, ()) not in self._told:
            self._told.add((what, ()))
            log.warning(message)
