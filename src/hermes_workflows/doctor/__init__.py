"""The doctor: what may be wrong with a workspace, what to do about it, and the repairs that lose nothing.

It looks at files first, since some damage keeps a workspace from being opened, and then at what they mean.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial

from ..core.clock import Clock
from ..registry import DatabasePaths, Registry
from ..store import peek
from ..store.mending import Mender
from ..workspace import Workspace
from .code import examine_registry
from .finding import Finding, Level, looked, mend
from .index import examine_database, examine_index, examine_receipts
from .machine import examine_files, examine_machine
from .repository import examine_repository
from .runners import examine_runners, split_of

__all__ = [
    "Finding",
    "Level",
    "examine",
    "examine_machine",
    "examine_registry",
    "examine_runners",
    "files_of",
    "looked",
    "split_of",
]


def files_of(
    registry: Registry, paths: DatabasePaths, clock: Clock, *, fix: bool = False
) -> tuple[list[Finding], list[str]]:
    """What is to be seen of a database before it is opened, and with `fix` what was repaired."""
    found = looked("files", partial(examine_files, registry, paths, clock))
    if peek.workspace(paths.receipts) is None:
        # Nothing is there, or something that is not ours to mend; opening it says which.
        return found, []
    with closing(Mender(paths.receipts)) as mender:
        found += looked("repository", partial(examine_repository, paths, mender, clock))
        found += looked("index", partial(examine_database, paths))
        return found, mend(found) if fix else []


def examine(workspace: Workspace, *, fix: bool = False) -> tuple[list[Finding], list[str]]:
    """An open workspace: index, receipts of unfinished runs, runners; with `fix`, what was repaired as well."""
    sections = (("index", examine_index), ("receipts", examine_receipts), ("runners", examine_runners))
    found = [finding for part, section in sections for finding in looked(part, partial(section, workspace))]
    return found, mend(found) if fix else []
