"""`assert_replays`: the present code decides as it was recorded. Nothing is executed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..authoring.workflow import Workflow
from ..clock import SystemClock
from ..core.history import fold
from ..core.receipts import Receipt
from ..core.redaction import Redactor
from ..errors import Conflict, NotFound
from ..loader import Loader
from ..registry import Registry, choose, find, load
from ..runner.slices import Decider
from ..store.git_ledger import GitLedger
from .definitions import Origin
from .elsewhere import ask
from .failures import HIDDEN, ReplayMismatch, ReplayWarning
from .replaying import replay, replay_here
from .results import RunResult
from .second_process import RecordedRun, Request, Verdict
from .traces import Scene, quiet_decider

__tracebackhide__ = HIDDEN

_RUNNERS_SEED = "0"


def assert_replays(
    run: RunResult[Any] | str | Path, run_id: str | None = None, *, workflow: Workflow[Any] | None = None
) -> None:
    """Fail unless the present code decides as it is recorded, up to each run's newest receipt.

    `run` is what `run_workflow` returned; or the id of a run of the workspace that is found from the current folder
    upwards; or the path of a receipts repository, with the id of one of its runs, or all of them without one.
    The workflow is loaded as the run names it, unless `workflow` is given.

    Raises ReplayMismatch with key, requests and line; NotFound, CannotLoad.
    """
    decider = quiet_decider()
    try:
        if isinstance(run, RunResult):
            replay_here(run, decider)
        else:
            _replay_recorded(run, run_id, workflow, decider)
    finally:
        decider.close()


@dataclass(frozen=True)
class _Book:
    """A receipts repository and the code of its workspace."""

    ledger: GitLedger
    registry: Registry

    def matching(self, run_id: str) -> list[str]:
        """The run of that id, else those that begin so."""
        ids = [head.run_id for head in self.ledger.heads()]
        return [run_id] if run_id in ids else [each for each in ids if each.startswith(run_id)]

    def replay(self, run_id: str, workflow: Workflow[Any] | None, decider: Decider) -> None:
        receipts = self.ledger.read(run_id)[1]
        history = fold(receipts)
        definition = workflow or Loader(self.registry).load(history.started.request.workflow).definition
        named = {name: value for name in self.registry.redact if (value := os.environ.get(name))}
        scene = Scene(Redactor(named, os.environ), str(self.registry.root), os.environ.get)
        try:
            replay(scene, run_id, definition, history, decider)
        except ReplayMismatch:
            if not self._replays_as_a_runner_does(run_id, definition, receipts):
                raise
            warnings.warn(
                f"{run_id} replays with PYTHONHASHSEED=0 only, which runners have and this process has not: "
                f"{definition.name} depends on the order of a set",
                ReplayWarning,
                stacklevel=4,
            )

    def _replays_as_a_runner_does(self, run_id: str, definition: Workflow[Any], receipts: list[Receipt]) -> bool:
        origin = Origin.of(definition)
        if origin is None:
            return False
        run = RecordedRun.of(run_id, origin, receipts)
        request = Request([run], str(self.registry.root), dict(os.environ), list(self.registry.redact))
        return ask(request, _RUNNERS_SEED) == Verdict()


def _replay_recorded(run: str | Path, run_id: str | None, workflow: Workflow[Any] | None, decider: Decider) -> None:
    if _is_path(run):
        with _opened(Path(run), _registry_of(Path(run))) as book:
            ids = book.matching(run_id) if run_id is not None else [head.run_id for head in book.ledger.heads()]
            for each in _checked(ids, run_id, str(run)):
                book.replay(each, workflow, decider)
        return
    registry = choose(None, None, Path.cwd())
    for paths in registry.dbs.values():
        if paths.receipts.is_dir():
            with _opened(paths.receipts, registry) as book:
                if ids := book.matching(str(run)):
                    book.replay(_checked(ids, str(run), str(paths.receipts))[0], workflow, decider)
                    return
    raise NotFound(f"no run {run!r} in the databases of {registry.path}")


def _is_path(run: str | Path) -> bool:
    return isinstance(run, Path) or "/" in run or run.endswith(".git")


def _checked(ids: list[str], wanted: str | None, where: str) -> list[str]:
    """Raises NotFound for none, Conflict for several that could be meant."""
    if not ids:
        raise NotFound(f"no run {wanted!r} in {where}" if wanted else f"no runs in {where}")
    if wanted is not None and len(ids) > 1:
        raise Conflict(f"several runs in {where} begin with {wanted!r}: {', '.join(ids[:5])}")
    return ids


def _registry_of(repository: Path) -> Registry:
    """That of the repository's workspace; without one, workflows are looked up from the current folder."""
    beside = find(repository.resolve().parent)
    return load(beside) if beside else Registry(root=Path.cwd(), path=None, dbs={})


@contextmanager
def _opened(repository: Path, registry: Registry) -> Iterator[_Book]:
    ledger = GitLedger.open(repository, create=False, clock=SystemClock(), committer="hermes-workflows")
    try:
        yield _Book(ledger, registry)
    finally:
        ledger.close()
