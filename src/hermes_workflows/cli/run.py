"""`run` records the start of a workflow and queues it; `cancel` asks for the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ..errors import TemporarilyLocked
from ..lives import is_healthy
from .completion import complete_runs, complete_workflows
from .numbers import Seconds
from .progress import exit_code, progress
from .scope import Scope, scoped
from .seen import Shown
from .show import run_document, status_text

if TYPE_CHECKING:
    from ..core.summary import RunSummary
    from ..workspace import Workspace

_LOOK_SECONDS = 0.05
# What one runner gives up another one may take up: for so long, in seconds, that may be on its way.
_GIVEN_UP_SECONDS = 3.0


@click.command("run")
@click.argument("workflow", metavar="ALIAS|MODULE:FUNCTION|FILE.PY", shell_complete=complete_workflows)
@click.option("--id", "run_id", metavar="RUN", help="The run's id; a new one each time when left out.")
@click.option("--input-json", "text", metavar="JSON|@FILE|-", help="The workflow's input.")
@click.option("--deadline", metavar="SECONDS|TIME", help="When the run is cancelled if it has not ended.")
@click.option("--wait", is_flag=True, help="Wait until other runners have brought it to an end or a question.")
@click.option("--drain", is_flag=True, help="Execute it here until it ends, waits or has nothing to do.")
@click.option("--timeout", type=Seconds(), help="How long --wait waits at most.")
@scoped
def run(
    scope: Scope,
    workflow: str,
    run_id: str | None,
    text: str | None,
    deadline: str | None,
    wait: bool,
    drain: bool,
    timeout: float | None,
) -> int:
    """Record the start of a workflow and queue it.

    An id that exists shows its state when the input is the same, and is a conflict when it is not.
    """
    if drain:
        from .hashseed import fix_hash_seed

        fix_hash_seed(scope.session)
    from ..loader import Loader
    from ..starting import check_deadline, check_start
    from .guard import guarded
    from .inputs import read_json
    from .times import deadline_of

    entry = scope.registry.workflows.get(workflow)
    paths = scope.paths(entry.db if entry else None)
    given = None if text is None else read_json(text, "--input-json")
    loader = Loader(scope.registry)
    # Before anything is made on disk: a mistake leaves no trace.
    with guarded(lambda: [scope.redactor], own_process=scope.session.own_process):
        loaded = loader.load(workflow, scope.start)
    check_start(loaded, given, run_id)
    until = deadline_of(deadline, entry, scope.clock.now())
    if not paths.receipts.exists():
        check_deadline(until, scope.clock.now())
    with scope.open(paths, create=True, loader=loader) as workspace:
        summary = workspace.start(loaded.ref, given, run_id=run_id, deadline=until)
        warn_of_split(scope, workspace)
        if drain or wait:
            with progress(scope, workspace, summary.run_id):
                summary = (
                    _drain(scope, workspace, summary.run_id)
                    if drain
                    else _wait(scope, workspace, summary.run_id, timeout)
                )
        state = workspace.observe(summary)
        scope.output.data(run_document(summary), lambda: status_text(Shown(summary, state)))
        return exit_code(workspace, summary, state) if wait or drain else 0


@click.command("cancel")
@click.argument("run", shell_complete=complete_runs)
@click.option("--reason", default="", help="Why; shown with the run.")
@click.option("--by", metavar="NAME", help="Who asks; your login name when left out.")
@click.option("--now", is_flag=True, help="Skip its cleanup, and that of its children.")
@click.option("--superseded-by", metavar="RUN", shell_complete=complete_runs, help="Which run takes its place.")
@click.option("--wait", is_flag=True, help="Wait for the end.")
@click.option("--timeout", type=Seconds(), help="How long --wait waits at most.")
@scoped
def cancel(
    scope: Scope,
    run: str,
    reason: str,
    by: str | None,
    now: bool,
    superseded_by: str | None,
    wait: bool,
    timeout: float | None,
) -> int:
    """Ask a run to end; a runner delivers the request, stops what executes and lets the workflow clean up.

    With --now, also for a run that is cleaning up already, what is left of the cleanup is skipped.
    """
    from .people import provenance

    with scope.open(scope.holding(run)) as workspace:
        name = workspace.resolve(run)
        instead = workspace.resolve(superseded_by) if superseded_by else None
        summary = workspace.control(name, "cancel", reason=reason, by=provenance(by), now=now, superseded_by=instead)
        warn_of_split(scope, workspace)
        if wait:
            with progress(scope, workspace, name):
                summary = _wait(scope, workspace, name, timeout, ends_only=True)
        document = run_document(summary) | {"cancel": "cancelled" if summary.ended else "requested"}
        state = workspace.observe(summary)
        scope.output.data(document, lambda: f"cancel: {document['cancel']}\n{status_text(Shown(summary, state))}")
        return TemporarilyLocked.exit_code if wait and not summary.ended else 0


def warn_of_split(scope: Scope, workspace: Workspace) -> None:
    """Say so when runners live, but on another database than the one just written to."""
    from ..doctor import split_of

    if (finding := split_of(workspace)) is not None:
        scope.output.talk(f"warning: {finding.what}; {finding.hint}")


def _drain(scope: Scope, workspace: Workspace, run_id: str) -> RunSummary:
    from .runner import drain

    drain(scope.session, workspace)
    return workspace.summary(run_id)


def _wait(
    scope: Scope, workspace: Workspace, run_id: str, timeout: float | None, *, ends_only: bool = False
) -> RunSummary:
    """Look until the run has ended or, unless `ends_only`, waits for a person: to answer, or to mend something."""
    clock = workspace.clock
    deadline = None if timeout is None else clock.elapsed() + timeout
    given_up: float | None = None
    if not any(is_healthy(row, clock) for row in workspace.queue.runners()):
        scope.output.talk("no runner is up here: hermes-workflows runner run")
    while True:
        summary = workspace.summary(run_id)
        if summary.ended or (not ends_only and workspace.observe(summary).state == "waiting"):
            return summary
        now = clock.elapsed()
        given_up = (given_up or now) if not ends_only and workspace.queue.stuck(run_id) else None
        late = deadline is not None and now >= deadline
        if late or (given_up is not None and now - given_up >= _GIVEN_UP_SECONDS):
            return summary
        time.sleep(_LOOK_SECONDS)
