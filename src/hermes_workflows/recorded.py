"""A workspace as its repository alone tells of it: for those who find runs and decide them again, and change nothing.

It has no queue and no index, and is there in half the time: what changes runs and shows them is not even imported.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from . import finding
from .core.clock import Clock
from .core.encoding import Limits
from .core.redaction import Redactor
from .finding import Found
from .loader import Loader
from .registry import DatabasePaths, Registry
from .store.git_ledger import GitLedger
from .store.ports import Ledger


class Recorded:
    """One database of a registry: its ledger, and the code of its workflows. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        paths: DatabasePaths,
        ledger: Ledger,
        clock: Clock,
        environment: Mapping[str, str],
        loader: Loader | None = None,
    ) -> None:
        self.registry = registry
        self.paths = paths
        self.ledger = ledger
        self.clock = clock
        self.environment = environment
        self.loader = loader or Loader(registry)
        self.limits = Limits()
        self.declared = Redactor.declared(registry.redact, self.environment)
        self._redactor = self.declared
        self._learned: set[str] = set()
        self._learning = threading.Lock()

    @property
    def root(self) -> Path:
        """The folder that commands start in and that file refs are relative to."""
        return self.registry.root

    @property
    def redactor(self) -> Redactor:
        """What takes secrets out of everything that is recorded or shown now.

        It knows what `declared` knows, by the registry and the environment, and what workflows have named since.
        """
        return self._redactor

    def secret(self, name: str) -> str | None:
        """The value of a variable that a workflow names a secret; it is one from now on, in every run."""
        self._learn([name])
        return self.environment.get(name)

    def find(self, text: str) -> Found:
        """The run that is meant, with its receipts, ours or fetched; see `finding` for what `text` may be.

        It writes nothing. Raises NotFound, Conflict, IntegrityError.
        """
        return finding.find(self.ledger, text, self._matching)

    def close(self) -> None:
        self.ledger.close()

    def _learn(self, names: Iterable[str]) -> None:
        with self._learning:
            new = {name: self.environment.get(name) for name in names if name not in self._learned}
            self._learned.update(new)
            if found := {name: value for name, value in new.items() if value}:
                self._redactor = self._redactor.extended(found)

    def _matching(self, prefix: str, limit: int) -> list[str]:
        """Ids of ours that begin so, as many as `limit`."""
        matches = (head.run_id for head in self.ledger.heads() if head.run_id.startswith(prefix))
        return sorted(islice(matches, limit))


def open_receipts(registry: Registry, paths: DatabasePaths, clock: Clock, environment: Mapping[str, str]) -> Recorded:
    """The database by its receipts: SQLite is not touched.

    Raises NotFound, IntegrityError (something else lies there), StoreFailure.
    """
    return Recorded(registry, paths, open_ledger(paths, clock), clock, environment)


def open_ledger(paths: DatabasePaths, clock: Clock) -> GitLedger:
    """The ledger for those who do not write into it. Raises what `open_receipts` raises."""
    return GitLedger.open(paths.receipts, create=False, clock=clock, committer="hermes-workflows")
