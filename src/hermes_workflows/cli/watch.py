"""`watch`: runs and runners as they move, on a terminal; piped, one JSON document a line for each change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ..lives import life_of
from ..store.wanted import Wanted
from .completion import complete_runs
from .numbers import Seconds
from .output import readable
from .scope import Scope, scoped
from .seen import Shown, runner_document, runner_lines, shown_of
from .show import event_line, status_document, status_text
from .writing import as_json, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..store.queue_port import RunnerRow
    from ..workspace import Workspace

# How many runs that have not ended are shown, and how many of the newest that have.
_OPEN = 30
_ENDED = 5


@click.command("watch")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--interval", type=Seconds(0.05), default=0.5, help="How long between two looks.")
@scoped
def watch(scope: Scope, run: str | None, interval: float) -> None:
    """Show a run until it has ended, or all runs and runners until you stop it.

    Piped, it prints a line of JSON for each change.
    """
    looks = _run(scope, run) if run else _all(scope)
    if scope.output.json:
        _print(looks, interval)
    else:
        _live(looks, interval)


class _Look:
    """What is to be seen at one moment: a document for programs, something for a terminal."""

    def __init__(self, runs: list[Shown], runners: list[tuple[RunnerRow, Workspace]], run: Shown | None = None) -> None:
        self._runs, self._runners, self._run = runs, runners, run

    def document(self) -> dict[str, Any]:
        if self._run is not None:
            return status_document(self._run)
        rows = [runner_document(row, life_of(row, workspace.clock)) for row, workspace in self._runners]
        return {"runs": [status_document(each) for each in self._runs], "runners": rows}

    def screen(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        if self._run is not None:
            events = "\n".join(f"  {event_line(event)}" for event in self._run.summary.recent)
            return Text(readable(f"{status_text(self._run)}\n\n{events}"))
        lines = [line for row, workspace in self._runners for line in runner_lines(row, workspace.clock)]
        below = Text(readable("\n".join(["", *(lines or ["no runners"])])))
        return Group(_table(self._runs) if self._runs else Text("no runs"), below)


def _table(runs: list[Shown]) -> RenderableType:
    """As wide as the terminal: what does not fit goes on in the next line, and is never cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "state", "why"):
        table.add_column(name, overflow="fold")
    for shown in runs:
        cells = (shown.summary.run_id, shown.state.label, one_line(shown.state.reason, 200))
        table.add_row(*(Text(readable(cell)) for cell in cells))
    return table


def _run(scope: Scope, name: str) -> Iterator[_Look]:
    """One look after the other; the last one is the end of the run."""
    paths = scope.holding(name)
    with scope.look(paths) as workspace:
        run_id = workspace.resolve(name)
        while True:
            shown = _shown(scope, workspace, run_id)
            yield _Look([], [], shown)
            if shown.summary.ended:
                return


def _shown(scope: Scope, workspace: Workspace, run_id: str) -> Shown:
    seen = workspace.observed(workspace.summary(run_id))
    return shown_of(seen, scope.registry.operator, scope.clock, workspace.paths)


def _all(scope: Scope) -> Iterator[_Look]:
    with ExitStack() as opened:
        workspaces = [opened.enter_context(scope.look(paths)) for paths in scope.every()]
        while True:
            runs = [_shown(scope, each, run_id) for each in workspaces for run_id in _chosen(each)]
            yield _Look(runs, [(row, each) for each in workspaces for row in each.queue.runners()])


def _chosen(workspace: Workspace) -> list[str]:
    """The runs that have not ended, and the newest that have."""
    still = [run for status in ("waiting", "running") for run in workspace.runs(Wanted((status,)), limit=_OPEN)]
    newest = [run for run in workspace.runs(limit=_OPEN) if run.ended][:_ENDED]
    return [run.run_id for run in (*still, *newest)]


def _print(looks: Iterator[_Look], interval: float) -> None:
    told: Any = None
    for look in looks:
        document = look.document()
        if (now := _lasting(document)) != told:
            told = now
            click.echo(as_json(document))
        time.sleep(interval)


def _lasting(document: Any) -> Any:
    """A document without what changes although nothing happens: how long something has been going on."""
    if isinstance(document, list):
        return [_lasting(each) for each in document]
    if not isinstance(document, dict):
        return document
    passing = ("reason", "heartbeat_at", "elapsed")
    return {name: _lasting(value) for name, value in document.items() if name not in passing}


def _live(looks: Iterator[_Look], interval: float) -> None:
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        for look in looks:
            live.update(look.screen(), refresh=True)
            time.sleep(interval)
