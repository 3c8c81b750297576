"""`status` without opening the workspace: one SQLite file and one ref, and neither pydantic, dulwich nor click.

Whatever is in doubt (an unknown id, a ref the index has not seen, any error, any option not named here) is left to
the command itself, which opens the workspace and asks the receipts.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..clock import SystemClock
from ..core.names import run_component
from ..errors import HermesError
from ..facts import Observed, observed_in
from ..registry import choose
from ..store import peek
from ..store.fast_status import DatabaseGone, FastIndex
from .seen import Shown, shown_of
from .show import status_document
from .writing import as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.clock import Clock
    from ..core.summary import RunSummary
    from ..registry import DatabasePaths, Registry

_OPTIONS = ("--id", "--db", "--config")


def status(arguments: Sequence[str]) -> bytes | None:
    """The document of `status RUN`, when it is wanted as JSON and the index is fresh."""
    given = _parsed(arguments)
    if given is None or (sys.stdout.isatty() and "--json" not in arguments):
        return None
    here = Path.cwd()
    try:
        registry = choose(given.get("--config"), given.get("--db"), here)
        paths = registry.database(given.get("--db"), here)
    except HermesError:
        return None
    shown = None if registry.warnings else fresh_status(registry, paths, given["--id"], SystemClock())
    return None if shown is None else as_json(status_document(shown))


def fresh_status(registry: Registry, paths: DatabasePaths, run_id: str, clock: Clock) -> Shown | None:
    """A run as its row says, when the row names the commit that the run's ref names."""
    try:
        index = FastIndex(paths.sqlite)
        try:
            summary = _fresh(index, paths, run_id)
            if summary is None:
                return None
            seen = observed(index, summary, clock, registry, paths)
        finally:
            index.close()
    except (DatabaseGone, HermesError):
        return None
    return shown_of(seen, registry.operator, clock, paths)


def observed(index: FastIndex, summary: RunSummary, clock: Clock, registry: Registry, paths: DatabasePaths) -> Observed:
    """A run and the child runs it waits for, as the index knows them; DatabaseGone when it is behind with a child."""
    child = partial(_fresh, index, paths)
    return observed_in(index, partial(index.work, clock=clock), child, summary, registry, paths, clock)


def _fresh(index: FastIndex, paths: DatabasePaths, run_id: str) -> RunSummary | None:
    """What a run's row says; None when there is neither row nor ref, DatabaseGone when they differ."""
    row = index.indexed(run_id)
    tip = peek.read_ref(paths.receipts, peek.RUNS + run_component(run_id))
    if peek.is_ahead(paths.receipts):
        raise DatabaseGone("git is about to have more than it shows")
    # A sealed run has ended, and its ref may have been dropped.
    if tip == (row.tip if row else None) or (tip is None and row and row.sealed):
        return row.summary if row else None
    raise DatabaseGone(f"the index is behind with {run_id}")


def _parsed(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options of a plain `status`, the run as `--id`; None for anything that click should look at."""
    if not arguments or arguments[0] != "status":
        return None
    given: dict[str, str] = {}
    rest = iter(arguments[1:])
    for word in rest:
        if word == "--json":
            continue
        name, value = (word, next(rest, "")) if word in _OPTIONS else ("--id", word)
        if not value or value.startswith("-") or name in given:
            return None
        given[name] = value
    return given if "--id" in given else None
