"""Which workspace a command means: `--config`, `--db`, or whatever is found upwards from the current folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import Conflict, HermesError
from ..registry import DatabasePaths, Registry, choose
from .session import Session, output_options

if TYPE_CHECKING:
    from ..core.redaction import Redactor
    from ..stores import Stores
    from ..workspace import Workspace


class Scope:
    """A command's workspace: the registry at once, ledger and queue only when it needs them."""

    def __init__(self, session: Session, config: str | None, db: str | None) -> None:
        self.session = session
        self.output = session.output
        self.clock = session.clock
        self.config = config
        self.db = db

    @cached_property
    def start(self) -> Path:
        """The folder relative names are seen from."""
        return Path.cwd()

    @cached_property
    def registry(self) -> Registry:
        registry = choose(self.config, self.db, self.start)
        for warning in registry.warnings:
            self.output.talk(f"warning: {warning}")
        self.session.redactors.append(lambda: self.redactor)
        return registry

    @property
    def redactor(self) -> Redactor:
        """What is known to be secret before a database is open."""
        from ..core.redaction import Redactor

        environment = self.session.environment
        named = {name: value for name in self.registry.redact if (value := environment.get(name))}
        return Redactor(named, environment)

    def paths(self, default: str | None = None) -> DatabasePaths:
        """The database that `--db` names, else `default` (an alias), else the registry's own default."""
        return self.registry.database(self.db or default, self.start)

    def every(self) -> list[DatabasePaths]:
        """The databases a listing is about: the one `--db` names, else all that have something in them."""
        return self.registry.databases(self.db, self.start)

    def holding(self, run: str) -> DatabasePaths:
        """The database a run is in: runners serve all of them, so nobody should have to remember which.

        `run` is anything that `Workspace.find` takes.
        """
        databases = self.every()
        if len(databases) == 1:
            return databases[0]
        name = run.rpartition("@")[0] or run
        if (known := _indexed(databases, name)) is not None:
            return known
        return next((paths for paths in databases if self._finds(paths, name)), self.paths())

    def _finds(self, paths: DatabasePaths, run: str) -> bool:
        """By its receipts: a commit, or a run that was fetched."""
        try:
            with self.peek(paths) as workspace:
                return bool(workspace.find(run))
        except Conflict:
            return True
        except HermesError:
            return False

    def look(self, paths: DatabasePaths | None = None) -> AbstractContextManager[Workspace]:
        """The workspace for a command that changes nothing; it may lie on a disk that takes no writing."""
        return self.open(paths, look=True)

    @contextmanager
    def peek(self, paths: DatabasePaths) -> Iterator[Workspace]:
        """The workspace for a command that only reads receipts: nothing at all is written, not even a lost index."""
        from ..opening import open_peeking
        from ..workspace import Surroundings

        workspace = open_peeking(self.registry, paths, Surroundings(self.clock, self.session.environment))
        try:
            yield workspace
        finally:
            workspace.close()

    @contextmanager
    def open(self, paths: DatabasePaths | None = None, *, create: bool = False, **options: Any) -> Iterator[Workspace]:
        """The opened workspace. Raises NotFound, IntegrityError, StoreFailure, TemporarilyLocked."""
        # Here and not above: `status` answers without any of it when the index is fresh.
        from ..opening import open_workspace
        from ..runner.hands import several
        from ..workspace import Surroundings

        surroundings = Surroundings(self.clock, self.session.environment, several)
        workspace = open_workspace(self.registry, paths or self.paths(), surroundings, create=create, **options)
        self.session.redactors.append(lambda: workspace.redactor)
        try:
            yield workspace
        finally:
            workspace.close()

    @contextmanager
    def stores(self) -> Iterator[Stores]:
        """The ledger and the index by themselves, for who needs no code of workflows. Raises the same."""
        from ..core.redaction import Redactor
        from ..runner.hands import several
        from ..stores import open_stores

        redactor = Redactor.declared(self.registry.redact, self.session.environment)
        self.session.redactors.append(lambda: redactor)
        ledger, queue = opened = open_stores(self.paths(), self.clock, several, bursts=self.registry.bursts)
        try:
            yield opened
        finally:
            queue.close()
            ledger.close()


def _indexed(databases: Sequence[DatabasePaths], run: str) -> DatabasePaths | None:
    """The first database whose index has a run of that id, else the first that has one whose id begins so."""
    from ..store.fast_status import DatabaseGone, FastIndex

    for known_as in (FastIndex.indexed, FastIndex.matching):
        for paths in databases:
            try:
                with closing(FastIndex(paths.sqlite)) as index:
                    if known_as(index, run):
                        return paths
            except (DatabaseGone, HermesError):
                continue
    return None


def scoped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--config`, `--db` and the output options, and its `Scope` as first argument."""

    @click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out.")
    @click.option("--db", metavar="ALIAS|PATH", help="The database; the registry's default one when left out.")
    @output_options
    @click.pass_obj
    @wraps(command)
    def wrapped(session: Session, /, *args: Any, config: str | None, db: str | None, **kwargs: Any) -> Any:
        return command(Scope(session, config, db), *args, **kwargs)

    return wrapped
