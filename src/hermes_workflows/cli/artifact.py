"""`artifact list|get`: the files that a run has kept."""

from __future__ import annotations

from pathlib import Path

import click

from .completion import complete_runs
from .scope import Scope, scoped
from .session import Session, debug_option

_COLUMNS = ("name", "size", "type", "sha256", "key", "kept")
_SHOWN = 12


@click.group("artifact")
def artifact() -> None:
    """Files that runs have kept."""


@artifact.command("list")
@click.argument("run", shell_complete=complete_runs)
@scoped
def list_artifacts(scope: Scope, run: str) -> None:
    """Show what a run has kept, oldest first."""
    with scope.look(scope.holding(run)) as workspace:
        kept = workspace.artifacts(run)
    rows = [
        (each.name, f"{each.size:,}", each.media_type, each.sha256[:_SHOWN], each.key, each.kept_at or "")
        for each in kept
    ]
    scope.output.table(_COLUMNS, rows, [vars(each) for each in kept], "no artifacts")


@artifact.command("get")
@click.argument("run", shell_complete=complete_runs)
@click.argument("name", metavar="NAME|SHA256")
@click.option("--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write it there.")
@click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out.")
@click.option("--db", metavar="ALIAS|PATH", help="The database; the registry's default one when left out.")
@debug_option
@click.pass_obj
def get(session: Session, /, run: str, name: str, file: Path | None, config: str | None, db: str | None) -> None:
    """Write one of them to standard output, byte for byte, or into a file."""
    scope = Scope(session, config, db)
    with scope.look(scope.holding(run)) as workspace:
        kept, data = workspace.artifact(run, name)
    if file is None:
        scope.output.raw(data, kept.name)
        return
    file.write_bytes(data)
    document = vars(kept) | {"output": str(file)}
    scope.output.data(document, lambda: f"{kept.name}: {kept.size:,} bytes in {file}")
