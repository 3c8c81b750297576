"""`dashboard export`: the pages as files, for a site, an archive, or somebody without a workspace."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .completion import complete_runs
from .scope import Scope, scoped

if TYPE_CHECKING:
    from ..web.export.writing import Written


@click.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, shell_complete=complete_runs, help="Only this run; repeatable."
)
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the newest N runs.")
@click.option("--compare", nargs=2, metavar="RUN RUN", multiple=True, help="Two runs side by side, too; repeatable.")
@scoped
def export(
    scope: Scope, folder: Path, runs: Sequence[str], last: int | None, compare: Sequence[tuple[str, str]]
) -> int:
    """Write the pages of runs, calls and questions into DIR, as files that need no server.

    DIR is new, empty, or of an earlier export, which is replaced.
    """
    from .dashboard import check_extra
    from .guard import guarded

    check_extra()
    from ..web.export.chosen import Asked
    from ..web.export.then import Then
    from ..web.export.writing import write
    from ..web.opened import Opened
    from ..web.settings import WebSettings
    from ..workspace import Surroundings

    clock = Then(scope.clock)
    around = Surroundings(clock, scope.session.environment)
    settings = WebSettings(scope.registry, tuple(scope.every()), around, token=secrets.token_urlsafe(32))
    opened = Opened.open(settings, look=True)
    try:
        asked = Asked(tuple(runs), last, tuple(compare))
        with guarded(lambda: [each.redactor for each in opened.every], own_process=scope.session.own_process):
            done = write(settings, opened, clock, folder, asked, lambda count: scope.output.talk(f"{count:,} files"))
    finally:
        opened.close()
    start = (folder / "index.html").resolve()
    scope.output.data(asdict(done) | {"folder": str(folder), "open": start.as_uri()}, lambda: _told(done, folder))
    for each in done.left_out:
        scope.output.talk(f"warning: {each}")
    return 0


def _told(done: Written, folder: Path) -> str:
    return f"{done.files:,} files of {done.runs:,} runs; open {folder / 'index.html'}"
