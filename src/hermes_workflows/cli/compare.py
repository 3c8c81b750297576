"""`diff` shows what two runs did differently, `replay` whether the present code decides as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import Divergence
from .completion import complete_moments, complete_workflows
from .numbers import count
from .plain_git import git_line, revision, tell
from .scope import Scope, scoped
from .session import Session
from .told import place_of

if TYPE_CHECKING:
    from ..finding import Found
    from ..recorded import Recorded
    from ..runner.replaying import Replay, Wanted
    from ..runner.slices import Decider


@click.command("diff")
@click.argument("before", metavar="A", shell_complete=complete_moments)
@click.argument("after", metavar="B", shell_complete=complete_moments)
@click.option("--usage", is_flag=True, help="Compare tokens and costs, too.")
@click.option("--execution", is_flag=True, help="Compare times, attempts, models and runners, too.")
@scoped
def diff(scope: Scope, before: str, after: str, usage: bool, execution: bool) -> int:
    """Show what two runs did differently; exit code 1 when anything.

    A and B are runs (RUN, RUN@KEY, REMOTE/RUN, a commit). Calls are paired by key, then by request, then by name.
    """
    from ..core.comparison import Asked, compare
    from .differences import comparison_document, comparison_text

    one, repository = _found(scope, before)
    other, second = _found(scope, after)
    found = compare(one.receipts, other.receipts, Asked(execution, usage))
    git = _git_diff(repository, one, other) if repository == second else None
    document = {"a": place_of(one), "b": place_of(other)} | comparison_document(found) | {"git": git}
    scope.output.data(document, lambda: comparison_text(before, after, found))
    tell(scope, git)
    return 0 if found.equal else 1


@click.command("replay")
@click.argument("runs", metavar="[RUN|COMMIT]...", nargs=-1, shell_complete=complete_moments)
@click.option("--all", "every", is_flag=True, help="Every run of the workspace.")
@click.option("--workflow", metavar="NAME", shell_complete=complete_workflows, help="The runs of one workflow.")
@click.option("--last", type=count(1), metavar="N", help="Only the newest N of them.")
@click.option("--fetched", is_flag=True, help="Runs that were fetched, too.")
@click.option(
    "--summary", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Add a summary in Markdown."
)
@scoped
def replay(
    scope: Scope,
    runs: Sequence[str],
    every: bool,
    workflow: str | None,
    last: int | None,
    fetched: bool,
    summary: Path | None,
) -> int:
    """Prove that the present code still decides as it was recorded.

    Nothing is executed and nothing is written. Exit code 6 when a run would be decided otherwise.
    """
    from .hashseed import fix_hash_seed

    _check(runs, every or workflow is not None or last is not None or fetched)
    fix_hash_seed(scope.session)
    from .garbage import left_lying

    with left_lying(scope.session):
        from ..runner.replaying import Wanted
        from .replays import replays_document, replays_text

        done = _replayed(scope, Wanted(runs, workflow, last, fetched))
        if summary is not None:
            from .replay_summary import replays_markdown

            with summary.open("a", encoding="utf-8") as file:
                file.write(replays_markdown(done))
        scope.output.data(replays_document(done), lambda: replays_text(done))
    return Divergence.exit_code if any(each.error for each in done) else 0


def _check(runs: Sequence[str], many: bool) -> None:
    if runs and many:
        raise click.UsageError("name runs, or choose them by --all, --workflow, --last and --fetched")
    if not runs and not many:
        raise click.UsageError("which runs? name them, or pass --all")


def _replayed(scope: Scope, wanted: Wanted) -> list[Replay]:
    from ..runner.replaying import replay_all
    from .guard import guarded

    with _receipts(scope) as workspaces, _decider(scope.session) as decider:
        redactors = lambda: [each.redactor for each in workspaces]  # noqa: E731  # asked for at each line
        with guarded(redactors, own_process=scope.session.own_process):
            return list(replay_all(workspaces, wanted, decider))


def _found(scope: Scope, text: str) -> tuple[Found, Path]:
    with scope.look(scope.holding(text)) as workspace:
        return workspace.find(text), workspace.paths.receipts


def _git_diff(repository: Path, one: Found, other: Found) -> str | None:
    """The plain git command that shows the same; there is none for a moment inside a run."""
    if one.key or other.key:
        return None
    trees = [f"{revision(each)}:{each.head.folder}" for each in (one, other)]
    return git_line(repository, "diff", *trees, "--", ":!*README.md")


@contextmanager
def _receipts(scope: Scope) -> Iterator[list[Recorded]]:
    """The workspaces of a replay, of which only the repositories are opened."""
    from ..recorded import open_receipts

    with ExitStack() as opened:
        workspaces = []
        for paths in scope.every():
            workspaces.append(open_receipts(scope.registry, paths, scope.clock, scope.session.environment))
            opened.callback(workspaces[-1].close)
        yield workspaces


@contextmanager
def _decider(session: Session) -> Iterator[Decider]:
    from ..runner.slices import Decider, SliceLimits

    # A body that holds the interpreter ends the process, if that is nothing but this command.
    decider = Decider(SliceLimits() if session.own_process else SliceLimits(dead_man=None))
    try:
        yield decider
    finally:
        decider.close()
