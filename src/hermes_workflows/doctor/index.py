"""The index and the receipts of an open workspace: whether they agree, and whether the receipts add up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..core.plain import git_line
from ..core.timestamps import parse_time
from ..errors import HermesError
from ..looking import LookingQueue
from ..registry import DatabasePaths
from ..store import index
from ..store.database import damage_of, set_aside
from ..store.wanted import LIVING, Wanted
from ..workspace import Workspace
from .finding import Finding
from .machine import ahead

# How many runs are read whole: unfinished ones, which alone can still be moved, and the newest.
_LOOKED_AT = 50
# A receipt is read in 0.1 ms.
_RECEIPTS_READ = 20_000


def examine_database(paths: DatabasePaths) -> Iterator[Finding]:
    """The SQLite file by itself, before anybody opens it and makes it new."""
    if paths.sqlite.is_file() and (wrong := damage_of(paths.sqlite)):
        what = f"the index {paths.sqlite} is damaged: {wrong}"
        hint = "`doctor --fix` moves it away; it is made again from the receipts, and nothing is lost"
        yield Finding("problem", what, hint, repair=partial(_set_aside, paths))
    damaged = paths.sqlite.with_name(paths.sqlite.name + ".damaged")
    if damaged.exists():
        yield Finding("ok", f"{damaged} is a damaged index that was replaced", "remove it when you have looked at it")


def _set_aside(paths: DatabasePaths) -> str | None:
    done = set_aside(paths.sqlite)
    return f"moved {paths.sqlite} to {paths.sqlite.name}.damaged; the next command makes a new one" if done else None


def examine_index(workspace: Workspace) -> Iterator[Finding]:
    sqlite = workspace.paths.sqlite
    if isinstance(workspace.queue, LookingQueue):
        yield Finding("warning", f"{sqlite} takes no writing", "runs can be shown here, not started")
    # Without a stamp: every row is compared. One that is behind is no fault, as whoever looks next reads it again.
    done = index.refresh_all(workspace.ledger, workspace.queue)
    for run_id, reason in done.unreadable.items():
        yield Finding("problem", f"{run_id} has no row: {reason}", f"hermes-workflows verify {run_id}")
    if wrong := list(_wrong_rows(workspace)):
        what = f"the index {sqlite} says something else than the receipts of {', '.join(wrong[:5])}"
        hint = "`doctor --fix`, or `hermes-workflows index rebuild`, reads them again"
        yield Finding("problem", what, hint, repair=lambda: _rebuilt(workspace))
    elif not done.unreadable:
        yield Finding("ok", f"the index {sqlite} agrees with the receipts")
    yield from _forgotten(workspace)
    newest = next((row.summary.updated_at for row in workspace.queue.list_indexed(limit=1)), None)
    if late := ahead(parse_time(newest) if newest else None, workspace.clock):
        yield late


def _wrong_rows(workspace: Workspace) -> Iterator[str]:
    """Of the newest runs, those whose rows name the right commit and say something else than it holds."""
    left = _RECEIPTS_READ
    for row in workspace.queue.list_indexed(limit=_LOOKED_AT):
        left -= row.summary.receipts
        if left < 0:
            return
        try:
            head, receipts = workspace.ledger.read(row.summary.run_id)
        except HermesError:
            continue  # `verify` tells of it
        # A run that has just moved on is no fault of its row.
        if head.tip == row.tip and index.whole(head, receipts).summary.to_json() != row.summary.to_json():
            yield row.summary.run_id


def _rebuilt(workspace: Workspace) -> str:
    workspace.rebuild_index()
    return f"made the rows of {workspace.paths.sqlite} again from the receipts"


def _forgotten(workspace: Workspace) -> Iterator[Finding]:
    """Runs that nothing would ever move: nobody is asked, nothing is queued, nobody says why."""
    for row in workspace.queue.list_indexed(Wanted(("running",)), limit=_LOOKED_AT):
        run_id, state = row.summary.run_id, workspace.observe(row.summary)
        if state.state != "stuck" or workspace.queue.work(run_id) or workspace.queue.stuck(run_id):
            continue
        again = workspace.queue.indexed(run_id)
        if again is not None and again.tip == row.tip:  # it has not moved on while we looked
            what = f"{run_id} is unfinished, and {state.reason}"
            hint = "`doctor --fix`, or `hermes-workflows index rebuild`, queues it"
            yield Finding("problem", what, hint, repair=partial(_woken, workspace, run_id))


def _woken(workspace: Workspace, run_id: str) -> str:
    workspace.wake(run_id)
    return f"queued {run_id}"


def examine_receipts(workspace: Workspace) -> Iterator[Finding]:
    unfinished = [row.summary.run_id for row in workspace.queue.list_indexed(Wanted(LIVING), limit=2 * _LOOKED_AT)]
    problems = [problem for run_id in unfinished for problem in _problems(workspace, run_id)]
    for problem in problems:
        yield Finding("problem", problem, "hermes-workflows verify")
    if not problems:
        yield Finding("ok", f"the receipts of {len(unfinished)} unfinished run{'s' * (len(unfinished) != 1)} add up")
    receipts = workspace.paths.receipts
    for each in workspace.ledger.rejected():
        what = f"somebody had moved the ref of {each.run_id} to {each.commit[:12]}; it was put back"
        yield Finding("warning", what, f"see {each.ref}, then `{git_line(receipts, 'update-ref', '-d', each.ref)}`")


def _problems(workspace: Workspace, run_id: str) -> list[str]:
    try:
        return [f"{run_id} {problem.path}: {problem.message}" for problem in workspace.ledger.verify(run_id)]
    except HermesError as error:
        return [f"{run_id} cannot be read: {error.message}"]
