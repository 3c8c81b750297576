"""`reproduce`: the same input once more, and what came of it otherwise than before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..core.plain import command_line
from .completion import complete_runs
from .plain_git import git_line, revision, tell
from .scope import Scope, scoped

if TYPE_CHECKING:
    from ..core.comparison import Comparison
    from ..finding import Found
    from ..workspace import Workspace

# How it ends when the new run has not ended, by its status: there is nothing to compare yet.
_OPEN = {"waiting": 3, "running": 75}


@click.command("reproduce")
@click.argument("run", metavar="RUN|COMMIT", shell_complete=complete_runs)
@click.option("--id", "run_id", metavar="NEW", required=True, help="The new run's id.")
@click.option("--reuse", default="", metavar="KINDS", help="Take over recorded results: agent,ask,bash,step.")
@click.option("--at-recorded-code", is_flag=True, help="Run the code of then, in a temporary git work tree.")
@scoped
def reproduce(scope: Scope, run: str, run_id: str, reuse: str, at_recorded_code: bool) -> int:
    """Run once more what a run was given, from the start, and show what differs; exit code 1 when anything does.

    It is executed here until it ends or waits. With --reuse, results of these kinds are taken over by key and request,
    and the rest runs again.
    """
    from .hashseed import fix_hash_seed

    fix_hash_seed(scope.session)
    from ..core.comparison import compare
    from ..runner.reproducing import Reproduction
    from ..runner.reproducing import reproduce as begin
    from .guard import guarded
    from .runner import drain

    with scope.open(scope.holding(run)) as workspace:
        found = workspace.find(run)
        wish = Reproduction(found, run_id, tuple(filter(None, reuse.split(","))), at_recorded_code)
        with _place(scope, workspace, found, apart=at_recorded_code) as there:
            with guarded(lambda: [there.redactor], own_process=scope.session.own_process):
                begin(there, wish)
            drain(scope.session, there)
            state = there.state(run_id)
        new = workspace.find(run_id)
        status = workspace.summary(run_id).status
        comparison = compare(found.receipts, new.receipts)
    line = _git_diff(workspace, found, new)
    further = _further(found, new, gone=at_recorded_code) if status in _OPEN else None
    document = _document(found, new, comparison) | {"status": status, "state": state.state, "git": line}
    document["next_action"] = further
    scope.output.data(document, lambda: _text(found, new, comparison, state.state, further))
    tell(scope, line)
    return _OPEN.get(status, 0 if comparison.equal else 1)


@contextmanager
def _place(scope: Scope, workspace: Workspace, found: Found, *, apart: bool) -> Iterator[Workspace]:
    """Where the new run is executed: here, or in a checkout of the project as it was."""
    if not apart:
        yield workspace
        return
    from ..opening import open_apart
    from ..runner.recorded_code import at_recorded_code
    from ..workspace import Surroundings

    surroundings = Surroundings(scope.clock, scope.session.environment)
    with (
        at_recorded_code(workspace, found) as registry,
        closing(open_apart(registry, workspace.paths, surroundings)) as there,
    ):
        yield there


def _git_diff(workspace: Workspace, found: Found, new: Found) -> str:
    trees = [f"{revision(each)}:{each.head.folder}" for each in (found, new)]
    return git_line(workspace.paths.receipts, "diff", *trees, "--", ":!*README.md")


def _document(found: Found, new: Found, comparison: Comparison) -> dict[str, Any]:
    from .differences import comparison_document

    reproduces = {"workflow_id": found.run_id, "commit": found.head.tip, "remote": found.remote}
    return {"workflow_id": new.run_id, "reproduces": reproduces, **comparison_document(comparison)}


def _further(found: Found, new: Found, *, gone: bool) -> str:
    """What to do with a run that has not ended; `gone` is the code of one that ran in a checkout."""
    if gone:
        return (
            f"hermes-workflows fork {new.run_id} --id NEW goes on with the present code; or reproduce with --reuse ask"
        )
    return f"once it has ended: {command_line('diff', _name(found), new.run_id)}"


def _text(found: Found, new: Found, comparison: Comparison, state: str, further: str | None) -> str:
    from .differences import comparison_text

    if further is None:
        return comparison_text(_name(found), new.run_id, comparison)
    if further.startswith("once"):
        return f"{new.run_id} is {state}; {further}"
    return f"{new.run_id} is {state}, and cannot go on: the recorded code is no longer checked out\nnext: {further}"


def _name(found: Found) -> str:
    return f"{found.remote}/{found.run_id}" if found.remote else found.run_id
