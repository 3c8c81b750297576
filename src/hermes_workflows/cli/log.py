"""`log`: what happened in a run, a receipt a line or as a tree; and all runs, ours and fetched.

Nothing is written, not even the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .completion import complete_moments
from .numbers import count
from .plain_git import git_line, revision, tell
from .scope import Scope, scoped
from .told import call_facts, call_line, clock_time, place_of, run_facts
from .writing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.outline import Branch, Line
    from ..core.summary import RunSummary
    from ..store.ports import Head
    from ..workspace import Workspace

_LOG = ("seq", "when", "who", "what", "status", "took", "cost")
_RUNS = ("commit", "run", "status", "workflow", "when", "receipts", "took", "cost")
_SHORT = 12
_PAGE = 50


@click.command("log")
@click.argument("run", required=False, metavar="[RUN[@KEY]]", shell_complete=complete_moments)
@click.option("--graph", is_flag=True, help="As a tree: scopes, and the calls in them.")
@click.option("--all", "every", is_flag=True, help="Runs instead of receipts, fetched ones as well.")
@click.option("--limit", type=count(1), help="So many of the newest; all receipts, or 50 runs, when left out.")
@scoped
def log(scope: Scope, run: str | None, graph: bool, every: bool, limit: int | None) -> None:
    """List the receipts of a run, oldest first; without RUN, the runs."""
    if run and every:
        raise click.UsageError("--all is about all runs: leave RUN out")
    if graph and not run:
        raise click.UsageError("the graph of which run? name it")
    if run is None:
        _log_runs(scope, limit or _PAGE)
    elif graph:
        _log_graph(scope, run)
    else:
        _log_run(scope, run, limit)


def _log_run(scope: Scope, run: str, limit: int | None) -> None:
    from ..core.outline import lines_of

    paths = scope.holding(run)
    with scope.peek(paths) as workspace:
        found = workspace.find(run)
    lines = lines_of(found.receipts)[-limit:] if limit else lines_of(found.receipts)
    # Up to a key there is none: one commit may hold several receipts.
    line = None if found.key else git_line(paths.receipts, "log", "--reverse", revision(found))
    document = {**place_of(found), "receipts": [vars(each) for each in lines], "git": line}
    scope.output.table(_LOG, [_row(each, found.run_id) for each in lines], document, "no receipts")
    tell(scope, line)


def _log_graph(scope: Scope, run: str) -> None:
    from ..core.outline import calls_of, tree_of

    paths = scope.holding(run)
    with scope.peek(paths) as workspace:
        found = workspace.find(run)
    tree = tree_of(calls_of(found.receipts))
    tree_name = f"{revision(found)}:{found.head.folder}"
    line = None if found.key else git_line(paths.receipts, "ls-tree", "-r", "--name-only", tree_name)
    document = {**place_of(found), "graph": _branch_document(tree)["parts"], "git": line}
    scope.output.data(document, lambda: "\n".join([found.run_id, *_branch_lines(tree)]))
    tell(scope, line)


def _log_runs(scope: Scope, limit: int) -> None:
    shown: list[dict[str, Any]] = []
    lines = []
    for paths in scope.every():
        with scope.peek(paths) as workspace:
            shown += _runs(workspace, limit)
        globs = ("--glob=refs/runs/*", "--glob=refs/remotes/*/runs/*")
        lines.append(git_line(paths.receipts, "log", "--no-walk", "--oneline", *globs))
    document = {"runs": shown, "git": lines[0] if len(lines) == 1 else lines}
    scope.output.table(_RUNS, [_run_row(each) for each in shown], document, "no runs")
    for line in lines:
        tell(scope, line)


def _runs(workspace: Workspace, limit: int) -> list[dict[str, Any]]:
    """Ours, newest first, then what was fetched: read from the receipts, at most `limit` of each."""
    from itertools import islice

    from ..errors import HermesError

    shown = []
    heads: list[tuple[str | None, Head]] = [(None, head) for head in islice(workspace.ledger.heads(), limit)]
    heads += islice(_of_others(workspace), limit)
    for remote, head in heads:
        try:
            shown.append(run_facts(head, remote, _summary(workspace, head)))
        except HermesError as error:
            shown.append({"workflow_id": head.run_id, "remote": remote, "commit": head.tip, "error": error.message})
    return shown


def _of_others(workspace: Workspace) -> Iterator[tuple[str, Head]]:
    """What was fetched, without what we have just like that: whoever pushes gets their own runs back."""
    for remote, head in workspace.ledger.fetched():
        ours = workspace.ledger.head(head.run_id)
        if ours is None or ours.tip != head.tip:
            yield remote, head


def _summary(workspace: Workspace, head: Head) -> RunSummary:
    """From the index when its row is of that very commit, else from the receipts."""
    from ..core.summary import summarize

    known = workspace.queue.indexed(head.run_id)
    if known is not None and known.tip == head.tip:
        return known.summary
    return summarize(head.run_id, workspace.ledger.at(head.tip)[1])


def _run_row(run: dict[str, Any]) -> tuple[str, ...]:
    from ..core.outline import cost

    name = f"{run['remote']}/{run['workflow_id']}" if run["remote"] else run["workflow_id"]
    if "error" in run:
        return run["commit"][:_SHORT], name, "unreadable", one_line(run["error"], 50), "", "", "", ""
    took = _took(run["started_at"], run["finished_at"])
    when = clock_time(run["updated_at"])
    facts = (run["status"], run["workflow"], when, str(run["receipts"]), took, cost(run["usage"]))
    return run["commit"][:_SHORT], name, *facts


def _took(since: str | None, until: str | None) -> str:
    from ..core.durations import duration
    from ..core.timestamps import parse_time

    if since is None or until is None:
        return ""
    return duration((parse_time(until) - parse_time(since)).total_seconds())


def _row(line: Line, run_id: str) -> tuple[str, ...]:
    from ..core.durations import duration
    from ..core.outline import cost, outcome

    what = line.key or run_id
    named = f"{line.kind} {one_line(line.what, 40)}".strip()
    label = what if line.kind in ("run", "result") else f"{what} ({named})"
    status = f"{outcome(line)}: {one_line(line.error, 60)}" if line.error else outcome(line)
    return str(line.seq), clock_time(line.when), line.who, label, status, duration(line.seconds), cost(line.usage)


def _branch_document(branch: Branch) -> dict[str, Any]:
    from ..core.outline import Ran

    parts = [call_facts(part) if isinstance(part, Ran) else _branch_document(part) for part in branch.parts]
    return {"scope": branch.name, "parts": parts}


def _branch_lines(branch: Branch, indent: str = "") -> list[str]:
    from ..core.outline import Ran

    lines: list[str] = []
    for number, part in enumerate(branch.parts, 1):
        last = number == len(branch.parts)
        stem, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(part, Ran):
            lines.append(f"{indent}{stem}{call_line(part)}")
        else:
            lines += [f"{indent}{stem}{part.name}/", *_branch_lines(part, indent + below)]
    return lines
