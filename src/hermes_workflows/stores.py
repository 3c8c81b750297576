"""The two stores of a database opened together: its repository and its SQLite file; what to say when one is missing.

Light on purpose: who only brings the index up to date imports this and nothing that knows of workflows' code.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from .core.clock import Clock
from .errors import HermesError, IntegrityError, NotFound, StoreFailure
from .looking import LookingQueue
from .registry import DatabasePaths
from .store import index
from .store.fast_status import DatabaseGone, FastIndex
from .store.git_ledger import GitLedger
from .store.index import IndexQueue, Share
from .store.sealing import Recall
from .store.sqlite_queue import SqliteQueue

DEFAULT_LEASE_SECONDS = 30.0


class Stores(NamedTuple):
    ledger: GitLedger
    queue: IndexQueue


def open_stores(
    paths: DatabasePaths,
    clock: Clock,
    share: Share,
    *,
    bursts: bool,
    create: bool = False,
    look: bool = False,
    committer: str = "hermes-workflows",
    lease_seconds: float = DEFAULT_LEASE_SECONDS,
) -> Stores:
    """See `opening.open_workspace`; `share` helps where an index must be made of all receipts."""
    _refuse_half(paths, create)
    if create:
        paths.receipts.parent.mkdir(parents=True, exist_ok=True)
    ledger = GitLedger.open(paths.receipts, create=create, clock=clock, committer=committer, bursts=bursts and not look)
    ledger.ask(recalled_by(paths))
    try:
        queue: IndexQueue = SqliteQueue.open(
            paths.sqlite,
            clock=clock,
            lease_seconds=lease_seconds,
            rebuild=lambda: index.all_indexed(ledger, share),
            home=ledger.home,
        )
    except StoreFailure:
        if not look:
            raise
        queue = LookingQueue(paths, ledger, clock)
    return Stores(ledger, queue)


def recalled_by(paths: DatabasePaths) -> Recall:
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
