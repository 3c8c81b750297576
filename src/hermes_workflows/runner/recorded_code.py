"""The code that a run was recorded with, in a place of its own, for `reproduce --at-recorded-code`.

The project's git has the commit; what had not been committed then, the run's own receipts have. The result must be,
byte for byte, the code whose identity the run recorded. Runs of other workspaces are refused: what they brought along
is never executed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import layout
from ..core.receipts import RunStarted
from ..errors import Conflict, HermesError, IntegrityError, InvalidInput
from ..loader import Loader
from ..store.project import checked_out, top_of
from .found_code import is_ours

if TYPE_CHECKING:
    from ..finding import Found
    from ..registry import Registry
    from ..workspace import Workspace


@contextmanager
def at_recorded_code(workspace: Workspace, source: Found) -> Iterator[Registry]:
    """The workspace's registry with the project as it was when `source` started.

    Raises Conflict for a run of another workspace, InvalidInput for one that names no commit, NotFound for a commit
    that is gone, and IntegrityError when the recorded code cannot be put together.
    """
    started = next(each for each in source.receipts if isinstance(each, RunStarted))
    if not is_ours(workspace, source):
        raise Conflict(
            f"{source.run_id} was recorded elsewhere, and code of others is not executed",
            hint="check out its code yourself, look at it, and reproduce the run there without --at-recorded-code",
        )
    if started.execution.commit is None:
        raise InvalidInput(
            f"{source.run_id} names no commit: it was started outside of a git work tree",
            hint=f"its workflow's sources are in source/{started.execution.code} of its folder",
        )
    with checked_out(workspace.root, started.execution.commit) as root, _imported_from(workspace.root, root):
        registry = workspace.registry._replace(root=root)
        _restore(workspace, registry, source, started)
        yield registry


def _restore(workspace: Workspace, registry: Registry, source: Found, started: RunStarted) -> None:
    """Put in what had not been committed, and check that nothing is missing."""
    ref, code = started.request.workflow, started.execution.code
    if _code_of(registry, ref) == code:
        return
    prefix = layout.source(str(code), "")
    for path in workspace.ledger.paths(source.head.tip):
        if path.startswith(prefix) and (data := workspace.ledger.content(source.head.tip, path)) is not None:
            _put(registry.root, path.removeprefix(prefix), data)
    if (found := _code_of(registry, ref)) != code:
        raise IntegrityError(
            f"commit {str(started.execution.commit)[:12]} and the recorded sources make code {found}, not {code}",
            hint="a module of the workflow lies outside of the project and has changed",
        )


def _put(root: Path, name: str, data: bytes) -> None:
    path = (root / name).resolve()
    # An installed module is recorded under its name; beside the project's files it would hide what it is part of.
    if path.is_relative_to(root.resolve()) and (path.exists() or path.parent.is_dir()):
        path.write_bytes(data)


def _code_of(registry: Registry, ref: str) -> str | None:
    try:
        return Loader(registry).code_of(ref)
    except HermesError:
        return None


@contextmanager
def _imported_from(there: Path, here: Path) -> Iterator[None]:
    """Folders of the project on the import path are those of the checkout, and none of the project as it is now."""
    # The workspace may be a folder below the project's top, and import what lies beside it.
    tops = [(top_of(folder) or folder).resolve() for folder in (there, here)]
    before = list(sys.path)
    sys.path[:] = [_moved(entry, *tops) for entry in before]
    try:
        yield
    finally:
        sys.path[:] = before


def _moved(entry: str, there: Path, here: Path) -> str:
    path = Path(entry).resolve()
    inside = path.is_relative_to(there) and not {"site-packages", "dist-packages"}.intersection(path.parts)
    return str(here / path.relative_to(there)) if inside else entry
