"""Opening a workspace: as commands and runners work in it, or for those who only look, or apart from all others."""

from __future__ import annotations

import secrets
from functools import cached_property

from .loader import Loader
from .looking import PeekingQueue
from .recorded import open_ledger
from .registry import DatabasePaths, Registry
from .store.git_ledger import GitLedger
from .store.memory_queue import MemoryQueue
from .stores import DEFAULT_LEASE_SECONDS, open_stores, recalled_by
from .workspace import Surroundings, Workspace


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
    ledger, queue = open_stores(
        paths,
        surroundings.clock,
        surroundings.share,
        bursts=registry.bursts,
        create=create,
        look=look,
        committer=committer,
        lease_seconds=lease_seconds,
    )
    return Workspace(registry, paths, ledger, queue, surroundings, loader)


def open_peeking(registry: Registry, paths: DatabasePaths, surroundings: Surroundings) -> Workspace:
    """The workspace for those who touch nothing, where the index may help to find a run.

    Raises NotFound, IntegrityError (something else lies there), StoreFailure.
    """
    ledger = open_ledger(paths, surroundings.clock)
    ledger.ask(recalled_by(paths))
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
