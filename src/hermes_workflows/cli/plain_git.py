"""The plain git command that does the same as one of ours: printed beside it, so that nobody depends on us to look."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core import plain
from ..core.names import run_component

if TYPE_CHECKING:
    from pathlib import Path

    from ..finding import Found
    from .scope import Scope

_SHORT = 12


def git_line(receipts: Path, *arguments: str) -> str:
    """`git -C <receipts repository> …`, to be pasted into a shell in the current folder."""
    return plain.git_line(_near(receipts), *arguments)


def revision(found: Found) -> str:
    """What plain git calls the commit of a run: its ref while that is there, else the beginning of its id."""
    if found.commit or found.remote or found.head.sealed:
        return found.head.tip[:_SHORT]
    return f"runs/{run_component(found.run_id)}"


def tell(scope: Scope, line: str | None) -> None:
    """On a terminal, beside the data; a program finds it in the document as `git`. None: plain git cannot do it."""
    if line and not scope.output.json:
        scope.output.talk(f"git: {line}")


def _near(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
