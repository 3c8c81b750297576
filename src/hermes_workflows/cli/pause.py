"""`pause` and `resume`: a run that decides and starts nothing for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .completion import complete_runs
from .run import warn_of_split
from .scope import Scope, scoped
from .seen import Shown
from .show import run_document, status_text

if TYPE_CHECKING:
    from ..review.controls import Verb


@click.command("pause")
@click.argument("run", shell_complete=complete_runs)
@click.option("--reason", default="", help="Why; shown with the run.")
@click.option("--by", metavar="NAME", help="Who asks; your login name when left out.")
@scoped
def pause(scope: Scope, run: str, reason: str, by: str | None) -> None:
    """Let a run start and decide nothing more until it is resumed; what is executing finishes."""
    _control(scope, run, "pause", reason, by)


@click.command("resume")
@click.argument("run", shell_complete=complete_runs)
@click.option("--reason", default="", help="Why; kept with the run.")
@click.option("--by", metavar="NAME", help="Who asks; your login name when left out.")
@scoped
def resume(scope: Scope, run: str, reason: str, by: str | None) -> None:
    """Let a paused run go on."""
    _control(scope, run, "resume", reason, by)


def _control(scope: Scope, run: str, verb: Verb, reason: str, by: str | None) -> None:
    from .people import provenance

    with scope.open(scope.holding(run)) as workspace:
        summary = workspace.control(workspace.resolve(run), verb, reason=reason, by=provenance(by))
        warn_of_split(scope, workspace)
        state = workspace.observe(summary)
        scope.output.data(run_document(summary), lambda: status_text(Shown(summary, state)))
