"""Runners and what waits for them: who is up, twice, deaf or on another database, and what nobody has in hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..facts import runnable
from ..lives import elsewhere, is_healthy, life_of, named, told, unable
from ..registry import DatabasePaths
from ..store.queue_port import PAUSED, RunnerRow, WorkRow
from ..workspace import Workspace
from .finding import Finding


def examine_runners(workspace: Workspace) -> list[Finding]:
    findings = list(_duplicates(workspace))
    if (split := split_of(workspace)) is not None:
        findings.append(split)
    findings += _unwell(workspace)
    healthy = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    due = runnable(workspace.queue.work(), workspace.queue.stuck(), workspace.clock)
    names = ", ".join(row.runner_id for row in healthy)
    if healthy:
        findings.append(Finding("ok", f"{_many(len(healthy), 'healthy runner', 'healthy runners')}: {names}"))
        findings += _untaken(healthy, due)
    elif due:
        what = f"{_many(len(due), 'command is', 'commands are')} queued and no healthy runner is to be seen"
        findings.append(Finding("warning", what, "hermes-workflows runner run"))
    else:
        findings.append(Finding("ok", "no runner is up, and nothing is due"))
    return [*findings, *_left(workspace, bool(healthy)), *_stuck(workspace)]


def _untaken(healthy: Sequence[RunnerRow], due: Iterable[WorkRow]) -> Iterator[Finding]:
    """Due work that none of the runners takes, healthy as they are: they drain, or execute other kinds."""
    kinds = Counter(row.work.kind for row in due)
    for kind, count in kinds.items():
        why = [unable(row, None, None, {kind}) for row in healthy]
        if None not in why:
            told = "; ".join(filter(None, why[:3]))
            what = f"{_many(count, f'{kind} command is', f'{kind} commands are')} queued that no healthy runner takes"
            yield Finding("warning", f"{what}: {told}", "hermes-workflows runner run")


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def split_of(workspace: Workspace) -> Finding | None:
    """Runners that live on another database than this one: approvals given here would look missing to them."""
    mine = workspace.paths
    here = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    for row in here:
        if row.database and row.database != str(mine.sqlite):
            return _split(mine, row.runner_id, row.database)
    found = elsewhere(here, workspace.registry.dbs.values(), mine.sqlite, workspace.clock)
    return next((_split(mine, row.runner_id, row.database) for row in found), None)


def _split(mine: DatabasePaths, runner: str, theirs: str) -> Finding:
    what = f"runner {runner} works on {theirs}, not on {mine.sqlite}"
    return Finding("problem", what, "start a runner for this database, or pass the other one with --db")


def _duplicates(workspace: Workspace) -> Iterator[Finding]:
    live = [row for row in workspace.queue.runners() if is_healthy(row, workspace.clock)]
    for runner_id, count in Counter(row.runner_id for row in live).items():
        if count > 1:
            what = f"{count} live runners call themselves {runner_id}"
            yield Finding("problem", what, "stop all but one, or give each its own --worker-id")


def _unwell(workspace: Workspace) -> Iterator[Finding]:
    for row in workspace.queue.runners():
        life = life_of(row, workspace.clock)
        what = f"{named(row)} {told(row, workspace.clock)}"
        if life == "deaf":
            yield Finding("problem", what, f"kill -ABRT {row.pid} shows where it hangs and ends it; start another one")
        elif life == "silent":
            yield Finding("warning", what, f"it is suspended, or on a machine that is not there: see pid {row.pid}")
        elif life == "gone":
            yield Finding(
                "warning", what, "what it had in hand is taken over; whoever supervises it has its last words"
            )


def _left(workspace: Workspace, healthy: bool) -> Iterator[Finding]:
    """Calls whose claimers died or no longer answer."""
    left = [row for row in workspace.queue.work() if row.status == "expired"]
    if left:
        names = ", ".join(f"{row.work.run_id} {row.work.key or 'the workflow'}" for row in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        what = f"runners that died or no longer answer have left {names}{more}"
        hint = "a living runner takes them over" if healthy else "hermes-workflows runner run"
        yield Finding("ok" if healthy else "warning", what, hint)


def _stuck(workspace: Workspace) -> Iterator[Finding]:
    for mark in workspace.queue.stuck():
        if mark.kind == PAUSED:
            yield Finding("ok", f"{mark.run_id} is {mark.reason}", mark.hint or None)
        else:
            yield Finding("warning", f"{mark.run_id} is stuck: {mark.reason}", mark.hint or None)
