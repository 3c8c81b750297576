"""`maintenance run`: what runners do when they are idle, now and in the foreground."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .scope import Scope, scoped

if TYPE_CHECKING:
    from ..store.maintenance import Maintained, Size


@click.group("maintenance")
def maintenance() -> None:
    """Keep the receipts repository small. Runners do it by themselves when they are idle."""


@maintenance.command("run")
@click.option("--full", is_flag=True, help="Pack everything anew by `git gc`, instead of what is new.")
@scoped
def run(scope: Scope, full: bool) -> int:
    """Seal finished runs, drop the refs of old ones, and pack objects and refs; runners may go on working."""
    from ..store.maintenance import FULL, TASKS
    from .plain_git import git_line, tell

    with scope.open() as workspace:
        done = workspace.maintain(full=full)
        line = " && ".join(git_line(workspace.paths.receipts, *task) for task in (FULL if full else TASKS))
    scope.output.data(asdict(done) | {"git": line}, lambda: _told(done))
    tell(scope, line)
    return 0


def _told(done: Maintained) -> str:
    lines = [f"{done.sealed} runs sealed", f"before  {_size(done.before)}", f"after   {_size(done.after)}"]
    return "\n".join([*lines, *(f"left for the next time: {failed}" for failed in done.failed)])


def _size(size: Size) -> str:
    return f"{size.size:,} bytes: {size.loose:,} loose objects, {size.packed:,} in {size.packs} packs"
