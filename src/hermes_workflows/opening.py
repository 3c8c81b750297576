"""Opening a workspace: its repository and its SQLite file, and what to say when one of them is not there."""

from __future__ import annotations

import secrets
from contextlib import closing
from functools import cached_property
from pathlib import Path

from .errors import HermesError, IntegrityError, NotFound, StoreFailure
from .loader import Loader
from .looking import LookingQueue, PeekingQueue
from .recorded import open_ledger
from .registry import DatabasePaths, Registry
from .store import index
from .store.fast_status import DatabaseGone, FastIndex
from .store.git_ledger import GitLedger
from .store.index import IndexQueue
from .store.memory_queue import MemoryQueue
from .store.sealing import Recall
from .store.sqlite_queue import SqliteQueue
from .workspace import Surroundings, Workspace

DEFAULT_LEASE_SECONDS = 30.0


def open_workspace(
    registry: Registry,
    paths: DatabasePaths,
    surroundings: Surroundings,
    *,
    create: bool = False,
    look: bool = False,
    committer: str = "hermes-workflows",
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
    loader: Loader | None = None,
) -> Workspace:
    """The workspace of one database. `create` makes it when nothing is there yet, `look` promises not to write:
    then a folder that takes no writing is no obstacle.

    `committer` is the name in its commits, `lease_seconds` how long its runners hold a call without a sign of life.
    Raises NotFound, IntegrityError (something else lies there, or half of it is gone), StoreFailure.
    """
    _refuse_half(paths, create)
    if create:
        paths.receipts.parent.mkdir(parents=True, exist_ok=True)
    clock = surroundings.clock
    bursts = registry.bursts and not look
    ledger = GitLedger.open(paths.receipts, create=create, clock=clock, committer=committer, bursts=bursts)
    ledger.ask(_recall(paths))
    queue = _queue(paths, ledger, surroundings, lease_seconds, look)
    return Workspace(registry, paths, ledger, queue, surroundings, loader)


def open_peeking(registry: Registry, paths: DatabasePaths, surroundings: Surroundings) -> Workspace:
    """The workspace for those who touch nothing, where the index may help to find a run.

    Raises NotFound, IntegrityError (something else lies there), StoreFailure.
    """
    ledger = open_ledger(paths, surroundings.clock)
    ledger.ask(_recall(paths))
    return Workspace(registry, paths, ledger, PeekingQueue(paths, surroundings.clock), surroundings)


def open_apart(registry: Registry, paths: DatabasePaths, surroundings: Surroundings) -> Workspace:
    """A workspace that shares nothing with others but the receipts: what is started in it is executed in it alone.

    Runners of the database see a run of somewhere else; only their code would decide otherwise.
    """
    clock = surroundings.clock
    ledger = _Apart.open(paths.receipts, create=False, clock=clock, committer="hermes-workflows")
    return Workspace(registry, paths, ledger, MemoryQueue(clock=clock, home=ledger.home), surroundings)


class _Apart(GitLedger):
    """The same repository, under a home that nobody else has."""

    @cached_property
    def home(self) -> str:
        return secrets.token_hex(8)


def _queue(
    paths: DatabasePaths, ledger: GitLedger, surroundings: Surroundings, lease_seconds: float, look: bool
) -> IndexQueue:
    clock = surroundings.clock
    try:
        return SqliteQueue.open(
            paths.sqlite,
            clock=clock,
            lease_seconds=lease_seconds,
            rebuild=lambda: index.all_indexed(ledger, surroundings.share),
            home=ledger.home,
        )
    except StoreFailure:
        if not look:
            raise
        return LookingQueue(paths, ledger, clock)


def _recall(paths: DatabasePaths) -> Recall:
    """Where the index remembers a sealed run to end. By a look of its own: the queue may just be asking the ledger."""

    def recall(run_id: str) -> str | None:
        try:
            with closing(FastIndex(paths.sqlite)) as known:
                row = known.indexed(run_id)
        except (DatabaseGone, HermesError):
            return None
        return row.tip if row else None

    return recall


def _refuse_half(paths: DatabasePaths, create: bool) -> None:
    if paths.receipts.exists():
        return
    if _holds_runs(paths.sqlite):
        # Making an empty repository here would turn the index empty too, and everything would look lost.
        raise IntegrityError(
            f"the receipts repository {paths.receipts} is gone, and its index {paths.sqlite} is still there",
            hint="restore the repository from a clone; to start afresh, remove the .sqlite file",
        )
    if not create:
        raise NotFound(
            f"no receipts at {paths.receipts}",
            hint="the first `hermes-workflows run` makes them; is --db the right one?",
        )


def _holds_runs(sqlite: Path) -> bool:
    return sqlite.is_file() and sqlite.stat().st_size > 0
