"""`init` and `registry list|show|doctor|discover`: the workspace and what it knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.spelling import suggestion
from ..errors import Conflict, HermesError, NotFound
from ..registry import DEFAULT_DB, DEFAULT_SQLITE, FILE, FOLDER, Registry
from ..sources import workflows_in
from .completion import complete_workflows
from .doctor import registry_doctor
from .scope import Scope, scoped
from .session import Session, output_options
from .writing import columns

if TYPE_CHECKING:
    from ..loader import LoadedWorkflow
    from ..registry import WorkflowEntry

_SKIPPED = {"node_modules", "site-packages", "dist-packages", "__pycache__", "build", "dist"}


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@output_options
@click.pass_obj
def init(session: Session, folder: Path) -> None:
    """Make a registry and its database in FOLDER, here when it is left out."""
    import json

    home = (folder / FOLDER).resolve()
    path = home / FILE
    if path.exists():
        raise Conflict(f"{path} exists", hint="`hermes-workflows registry list` shows what is in it")
    home.mkdir(parents=True, exist_ok=True)
    registry = {"dbs": {DEFAULT_DB: DEFAULT_SQLITE}, "workflows": {}}
    path.write_text(json.dumps(registry, indent=2) + "\n", encoding="utf-8")
    ignored = home / ".gitignore"
    if not ignored.exists():
        # The receipts are a repository of their own; a project's commits hold the registry only.
        ignored.write_text("*.sqlite*\n*.git/\n", encoding="utf-8")
    with Scope(session, str(path), None).open(create=True) as workspace:
        document = {
            "registry": str(path),
            "database": str(workspace.paths.sqlite),
            "receipts": str(workspace.paths.receipts),
        }
    session.output.data(document, lambda: f"made {path}\nnext: hermes-workflows registry discover")


@click.group("registry")
def registry() -> None:
    """What the workspace knows."""


@registry.command("list")
@click.option("--inputs", is_flag=True, help="Load each one, too: what its input looks like, or why it does not load.")
@scoped
def list_workflows(scope: Scope, inputs: bool) -> None:
    """Show aliases, what they mean, and the databases."""
    known = scope.registry
    document = {
        "path": str(known.path) if known.path else None,
        "root": str(known.root),
        "operator": known.operator,
        "dbs": {
            alias: {"path": str(paths.sqlite), "receipts": str(paths.receipts)} for alias, paths in known.dbs.items()
        },
        "workflows": {
            alias: {"workflow_ref": entry.ref, "db": entry.db, "description": entry.description}
            | (_input_of(scope, alias) if inputs else {})
            for alias, entry in known.workflows.items()
        },
    }
    rows = [(entry.alias, entry.ref, entry.db, entry.description) for entry in known.workflows.values()]
    scope.output.table(("alias", "workflow", "db", "description"), rows, document, "no workflows yet")


def _input_of(scope: Scope, alias: str) -> dict[str, Any]:
    """The JSON Schema of the input, None when there is none; what its author says of it, when the registry does not."""
    from ..loader import Loader
    from .guard import guarded

    try:
        with guarded(lambda: [scope.redactor], own_process=scope.session.own_process):
            return _shown(Loader(scope.registry).load(alias), scope.registry.workflows[alias])
    except HermesError as error:
        return {"error": error.message, "hint": error.hint}


def _shown(loaded: LoadedWorkflow, entry: WorkflowEntry) -> dict[str, Any]:
    from ..importing import said_where

    with said_where(loaded.ref):
        codec = loaded.definition.input_codec
    about = entry.description or (loaded.definition.__doc__ or "").strip()
    return {"description": about, "input": None if codec is None else codec.json_schema}


@registry.command("show")
@click.argument("alias", shell_complete=complete_workflows)
@scoped
def show_workflow(scope: Scope, alias: str) -> None:
    """Load the workflow ALIAS, and show what its input looks like; as JSON, its sources too."""
    from ..loader import Loader
    from .guard import guarded
    from .writing import pretty

    entry = scope.registry.workflows.get(alias)
    if entry is None:
        hint = suggestion(alias, list(scope.registry.workflows), "aliases")
        raise NotFound(f"the registry has no workflow {alias!r}", hint=hint)
    with guarded(lambda: [scope.redactor], own_process=scope.session.own_process):
        loaded = Loader(scope.registry).load(alias)
    shown = _shown(loaded, entry)
    sources = {path: data.decode("utf-8", "replace") for path, data in sorted(loaded.sources.items())}
    # By the name that runs record, as the list has what the registry says.
    document = {"workflow_ref": loaded.ref, "db": entry.db, "name": loaded.definition.name, "code": loaded.code}
    takes = "takes no input" if shown["input"] is None else f"takes {pretty(shown['input'])}"
    lines = [f"{alias}: {loaded.ref}", shown["description"], takes, f"code {loaded.code}: {', '.join(sources)}"]
    scope.output.data(document | shown | {"sources": sources}, lambda: "\n".join(filter(None, lines)))


registry.add_command(registry_doctor)


@registry.command("discover")
@scoped
def discover(scope: Scope) -> None:
    """Show the workflows in the workspace's files, whether or not they have an alias. Imports nothing."""
    known = {entry.ref for entry in scope.registry.workflows.values()}
    found = [{"workflow_ref": ref, "registered": ref in known} for ref in _workflows_in(scope.registry)]
    rows = [(str(one["workflow_ref"]), "registered" if one["registered"] else "") for one in found]
    empty = f"no @workflow function in {scope.registry.root}"
    scope.output.data(found, lambda: columns(rows) or empty)


def _workflows_in(known: Registry) -> Iterator[str]:
    for path in _python_files(known.root):
        try:
            names = workflows_in(path.read_bytes(), str(path))
        except (OSError, SyntaxError, ValueError):
            continue
        yield from (f"{path.relative_to(known.root).as_posix()}:{name}" for name in names)


def _python_files(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith(".") or path.name in _SKIPPED or path.is_symlink():
            continue
        if path.is_dir():
            if not (path / "pyvenv.cfg").exists():
                yield from _python_files(path)
        elif path.suffix == ".py":
            yield path
