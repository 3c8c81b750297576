"""`push`, `fetch`, `sync`, `export` and `import`: runs between workspaces, by a remote or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.names import run_component
from ..errors import Conflict, InvalidInput
from .completion import complete_remotes, complete_runs
from .plain_git import git_line, tell
from .publish import answers_document, answers_text
from .scope import Scope, scoped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..exchange import Fetched, Pushed
    from ..finding import Found
    from ..registry import DatabasePaths
    from ..review.imported import Imported
    from ..workspace import Workspace

_SHOWN = 20


@click.command("push")
@click.argument("remote", required=False, shell_complete=complete_remotes)
@scoped
def push(scope: Scope, remote: str | None) -> int:
    """Send own runs, the ledger and main to a remote, forwards only."""
    from .. import exchange

    paths = scope.paths()
    with scope.open(paths) as workspace:
        done = exchange.push(workspace, remote)
        line = _push_line(paths, done, workspace.ledger.home)
    document = _pushed(done) | {"git": line}
    scope.output.data(document, lambda: _push_text(done))
    tell(scope, line)
    return _exit(done)


@click.command("fetch")
@click.argument("remote", required=False, shell_complete=complete_remotes)
@click.option("--prune", is_flag=True, help="Forget what is gone there.")
@scoped
def fetch(scope: Scope, remote: str | None, prune: bool) -> None:
    """Bring other workspaces' runs, ledgers and branches here, to be looked at."""
    from .. import exchange

    paths = scope.paths()
    with scope.open(paths) as workspace:
        done = exchange.fetch(workspace, remote, prune=prune)
        answers = _answers(workspace)
    line = _fetch_line(paths, done)
    document = _fetched(done) | {"answers": answers_document(answers)["answers"], "git": line}
    scope.output.data(document, lambda: _with_answers(_fetch_text(done), answers))
    tell(scope, line)


@click.command("sync")
@click.argument("remote", required=False, shell_complete=complete_remotes)
@scoped
def sync(scope: Scope, remote: str | None) -> int:
    """Fetch, then push."""
    from .. import exchange

    paths = scope.paths()
    with scope.open(paths) as workspace:
        came = exchange.fetch(workspace, remote)
        answers = _answers(workspace)
        went = exchange.push(workspace, remote)
        lines = [_fetch_line(paths, came), _push_line(paths, went, workspace.ledger.home)]
    fetched = _fetched(came) | {"answers": answers_document(answers)["answers"]}
    document = {"fetch": fetched, "push": _pushed(went), "git": lines}
    scope.output.data(document, lambda: f"{_with_answers(_fetch_text(came), answers)}\n{_push_text(went)}")
    for line in lines:
        tell(scope, line)
    return _exit(went)


@click.command("export")
@click.argument("run", shell_complete=complete_runs)
@click.option("--bundle", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="With its history.")
@click.option("--tar", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Its files alone.")
@scoped
def export(scope: Scope, run: str, bundle: Path | None, tar: Path | None) -> None:
    """Write a run into one file: a git bundle, or a tar archive of what it recorded."""
    from .. import exchange

    if (bundle is None) == (tar is None):
        raise InvalidInput("an export is one file", hint="name it by --bundle FILE or by --tar FILE")
    paths = scope.holding(run)
    with scope.look(paths) as workspace:
        found = workspace.find(run)
        if bundle is not None:
            exchange.export_bundle(workspace, found, bundle)
        elif tar is not None:
            exchange.export_tar(workspace, found, tar)
    file = bundle or tar
    assert file is not None  # one of both was given
    line = _bundle_line(paths, found, file) if bundle else _tar_line(paths, found, file)
    size = file.stat().st_size
    document = {"workflow_id": found.run_id, "commit": found.head.tip, "file": str(file), "bytes": size, "git": line}
    scope.output.data(document, lambda: f"{found.run_id}: {size:,} bytes in {file}")
    if line:
        tell(scope, line)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@scoped
def import_(scope: Scope, file: Path) -> None:
    """Take the runs of a git bundle in; they are shown, verified, replayed and forked here, never executed."""
    from .. import exchange

    paths = scope.paths()
    with scope.open(paths, create=True) as workspace:
        arrived = exchange.import_bundle(workspace, file)
    # Beside ours, not among them: git does not ask what it brings.
    line = git_line(paths.receipts, "fetch", str(file.absolute()), "refs/runs/*:refs/remotes/file/runs/*")
    runs = [
        {"workflow_id": one.head.run_id, "commit": one.head.tip, "home": one.home, "new": one.new} for one in arrived
    ]
    lines = [f"{one.head.run_id}: {'taken in' if one.new else 'here already'}" for one in arrived]
    scope.output.data({"runs": runs, "git": line}, lambda: "\n".join(lines))
    tell(scope, line)


def _answers(workspace: Workspace) -> list[Imported]:
    """The answers among what has just come; those that are known from before are no news."""
    from ..review.commits import import_commits

    return [one for one in import_commits(workspace) if one.outcome != "known"]


def _with_answers(text: str, answers: Sequence[Imported]) -> str:
    return f"{text}\n{answers_text(answers)}" if answers else text


def _exit(done: Pushed) -> int:
    return Conflict.exit_code if done.of("refused") else 0


def _pushed(done: Pushed) -> dict[str, Any]:
    return {
        "remote": done.remote.name,
        "url": done.remote.shown,
        "sent": [{"ref": one.ref, "there": one.there, "commit": one.commit} for one in done.of("sent")],
        "unchanged": len(done.of("unchanged")),
        "behind": [one.ref for one in done.of("behind")],
        "refused": [{"ref": one.ref, "there": one.there, "reason": one.reason} for one in done.of("refused")],
    }


def _push_text(done: Pushed) -> str:
    head = f"{done.remote.name}: {len(done.of('sent'))} sent, {len(done.of('unchanged'))} there already"
    lines = [f"  {_short(one.ref)}" for one in done.of("sent")[:_SHOWN]]
    lines += ["  …"] if len(done.of("sent")) > _SHOWN else []
    lines += [f"  {_short(one.ref)} has more there, which `fetch` brings" for one in done.of("behind")]
    lines += [f"  {_short(one.ref)} refused: {one.reason}" for one in done.of("refused")]
    return "\n".join([head, *lines])


def _fetched(done: Fetched) -> dict[str, Any]:
    return {
        "remote": done.remote.name,
        "url": done.remote.shown,
        "new": list(done.new),
        "moved": list(done.moved),
        "gone": list(done.gone),
        "no_runs": dict(done.no_runs),
    }


def _fetch_text(done: Fetched) -> str:
    lines = [f"{done.remote.name}: {len(done.new)} new, {len(done.moved)} moved, {len(done.gone)} gone"]
    for mark, names in (("new  ", done.new), ("moved", done.moved), ("gone ", done.gone)):
        lines += [f"  {mark} {done.remote.name}/{name.removeprefix('runs/')}" for name in names[:_SHOWN]]
        lines += ["  …"] if len(names) > _SHOWN else []
    lines += [f"  {name} is no run: {why}" for name, why in done.no_runs.items()]
    return "\n".join(lines)


def _short(ref: str) -> str:
    return ref.removeprefix("refs/").removeprefix("heads/")


def _fetch_line(paths: DatabasePaths, done: Fetched) -> str:
    refspecs = (f"+refs/{there}/*:refs/remotes/{done.remote.name}/{here}*" for there, here in _KEPT)
    return git_line(paths.receipts, "fetch", "--no-tags", done.remote.name, *refspecs)


_KEPT = (("heads", ""), ("runs", "runs/"))


def _push_line(paths: DatabasePaths, done: Pushed, home: str) -> str:
    ledger = [f"ledger:ledger/{home}"] if any(one.ref == "refs/heads/ledger" for one in done.refs) else []
    return git_line(paths.receipts, "push", done.remote.name, "main", *ledger, "refs/runs/*:refs/runs/*")


def _bundle_line(paths: DatabasePaths, found: Found, file: Path) -> str | None:
    if found.commit or found.remote or found.head.sealed:
        # A bundle of git's wants a ref, and there is none of this run alone.
        return None
    ref = f"refs/runs/{run_component(found.run_id)}"
    return git_line(paths.receipts, "bundle", "create", str(file.absolute()), ref)


def _tar_line(paths: DatabasePaths, found: Found, file: Path) -> str:
    prefix = f"--prefix={run_component(found.run_id)}/"
    tree = f"{found.head.tip[:12]}:{found.head.folder}"
    return git_line(paths.receipts, "archive", "--format=tar", prefix, "-o", str(file.absolute()), tree)
