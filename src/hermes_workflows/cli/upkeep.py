"""`verify` and `index rebuild`: whether receipts add up, and making the disposable parts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import IntegrityError, InvalidInput
from .completion import complete_runs
from .scope import Scope, scoped
from .told import counted

if TYPE_CHECKING:
    from ..store.ports import Problem


@click.command("verify")
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--all", "every", is_flag=True, help="Every run and every seal; the same as naming none.")
@scoped
def verify(scope: Scope, run: str | None, every: bool) -> int:
    """Check receipts: history, names, schemas, fingerprints, order, provenance, artifacts, seals and refs.

    RUN is an id, the beginning of one, a commit, or a fetched run as REMOTE/RUN. Changes nothing.
    """
    from ..finding import split
    from .plain_git import git_line, tell

    if run and every:
        raise click.UsageError("--all is about all runs: leave RUN out")
    key = split(run)[1] if run else None
    if key is not None:
        raise InvalidInput("a run is verified whole", hint=f"leave out @{key}; a commit of it is verified as it was")
    paths = scope.holding(run) if run else None
    with scope.look(paths) as workspace:
        checked = workspace.verify(run)
        line = git_line(workspace.paths.receipts, "fsck", "--full")
    problems = [problem for found in checked.values() for problem in found]
    runs = sum(1 for run_id in checked if run_id)
    document = {"runs": runs, "problems": [_problem(one) for one in problems], "git": line}
    if first := next((one.commit for one in problems if one.commit), None):
        document["first_bad_commit"] = first
    lines = [_problem_line(one) for one in problems]
    scope.output.data(
        document, lambda: "\n".join([*lines, f"{counted(runs, 'run')} checked, {counted(len(problems), 'problem')}"])
    )
    tell(scope, line)
    return IntegrityError.exit_code if problems else 0


def _problem(one: Problem) -> dict[str, str]:
    said = {"workflow_id": one.run_id, "commit": one.commit, "path": one.path, "message": one.message}
    return said | ({"hint": one.hint} if one.hint else {})


def _problem_line(one: Problem) -> str:
    where = " ".join(filter(None, (one.run_id, one.commit[:12], one.path)))
    return f"{where}: {one.message}" + (f"\n      {one.hint}" if one.hint else "")


@click.group("index")
def index() -> None:
    """The status index and the queue: made from the receipts, disposable."""


@index.command("rebuild")
@scoped
def rebuild_index(scope: Scope) -> int:
    """Read every run again into the index and queue what is unfinished."""
    from .garbage import left_lying

    with left_lying(scope.session):
        from ..runner.hands import several
        from ..store.index import rebuild

        with scope.stores() as (ledger, queue):
            done = rebuild(ledger, queue, several)
    lines = [f"{run_id}: {reason}" for run_id, reason in done.unreadable.items()]
    document = {"runs": done.changed, "unreadable": dict(done.unreadable)}
    scope.output.data(document, lambda: "\n".join([*lines, f"{counted(done.changed, 'run')} read again"]))
    return IntegrityError.exit_code if done.unreadable else 0
