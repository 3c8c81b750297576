"""`/workflows`: what can be started here; `/workflows/<alias>`: its code as it is now, and a form that starts it.

Only what the registry names is started: no address has a file or a module in it. The form carries the id of the run
that it begins, so sent twice it begins one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...core.spelling import suggestion
from ...errors import HermesError, InvalidInput, NotFound
from ...registry import WorkflowEntry
from ...starting import new_run_id
from ...workspace import Workspace
from ..catalog import Record, record_of, records_of
from ..code import Described
from ..errors import status_of
from ..forms import FormView, form_view
from ..links import redirect
from ..opened import Opened
from ..posted import Draft, edited, read
from ..rendering import code, opened, page, segment
from ..review_view import Notice
from ..searching import readable
from ..security import Form
from .runs import runs_of

_form = partial(form_view, name="Input")


@dataclass(frozen=True)
class Listed:
    """A workflow of the registry, or without `href` one that runs name and the registry does not."""

    name: str
    href: str
    ref: str
    about: str
    runs: int
    runs_href: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Catalog:
    workflows: tuple[Listed, ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True)
class WorkflowView:
    """`form` is None for a workflow that takes no input; `files` are its sources by path."""

    listed: Listed
    run_id: str
    form: FormView | None
    files: tuple[tuple[str, str], ...]
    notice: Notice | None = None


@dataclass(frozen=True)
class Known:
    """A workflow of the registry as it is on disk, and the database that its runs are in."""

    entry: WorkflowEntry
    workspace: Workspace
    described: Described

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return self.described.schema


def index(request: Request) -> Response:
    every = opened(request)
    databases, broken = readable(every.every)
    records, known = records_of(databases), every.registry.workflows
    named = [_listed(entry, records.get(entry.ref, Record())) for entry in known.values()]
    refs = {entry.ref for entry in known.values()}
    others = [_unnamed(name, record) for name, record in sorted(records.items()) if name not in refs]
    return page(request, "workflows.html", Catalog((*named, *others), broken))


def show(request: Request) -> Response:
    known = _known(request)
    form = None if known.schema is None else _form(known.schema)
    return page(request, "workflow.html", _view(known, _new_id(known), form))


def start(request: Request) -> Response:
    known, form = _known(request), request.state.form
    run_id = _one(form, "_id") or _new_id(known)
    schema, draft = known.schema, Draft(None)
    if schema is not None:
        draft = read(schema, form)
        if wish := _one(form, "_do"):
            return page(request, "workflow.html", _view(known, run_id, _form(schema, edited(draft, wish).value)))
        errors, checks = draft.check(schema), "_check" in form
        if checks and (button := _form(schema).actions) is not None:
            # Who only checks has pressed none of the buttons that say something.
            errors = [each for each in errors if each[0] != button.pointer]
        if errors or checks:
            fits = None if errors else Notice("good", "This input fits. Nothing is started yet.")
            view = _view(known, run_id, _form(schema, draft.value, errors), fits)
            return page(request, "workflow.html", view, status=422 if errors else 200)
    try:
        begun = code(request).start(known.workspace, known.entry.alias, draft.payload, run_id)
    except HermesError as error:
        notice = Notice("bad", f"{error.message}.", error.hint or "")
        shown = None if schema is None else _form(schema, draft.value)
        return page(request, "workflow.html", _view(known, run_id, shown, notice), status=status_of(error))
    return redirect(request, f"/runs/{segment(begun)}?done=start")


def check(request: Request) -> Response:
    """What is wrong with an input that is being typed; nothing is started."""
    schema = _known(request).schema
    errors = [] if schema is None else read(schema, request.state.form).check(schema)
    return JSONResponse([{"field": pointer, "reason": reason} for pointer, reason in errors])


def _known(request: Request) -> Known:
    every, alias = opened(request), request.path_params["alias"]
    entry = every.registry.workflows.get(alias)
    if entry is None:
        raise NotFound(
            f"the registry has no workflow {alias!r}", hint=suggestion(alias, list(every.registry.workflows), "aliases")
        )
    workspace = _workspace(every, entry)
    return Known(entry, workspace, code(request).describe(workspace, alias))


def _workspace(every: Opened, entry: WorkflowEntry) -> Workspace:
    paths = every.registry.dbs.get(entry.db)
    for workspace in every.every:
        if workspace.paths == paths:
            return workspace
    raise InvalidInput(f"the runs of {entry.alias} are in the database {entry.db}, which is not served here")


def _view(known: Known, run_id: str, form: FormView | None, notice: Notice | None = None) -> WorkflowView:
    known.workspace.refresh()
    listed = _listed(known.entry, record_of([known.workspace], known.described.ref))
    listed = replace(listed, about=listed.about or known.described.about)
    return WorkflowView(listed, run_id, form, tuple(known.described.files.items()), notice)


def _listed(entry: WorkflowEntry, record: Record) -> Listed:
    href, runs = f"/workflows/{segment(entry.alias)}", runs_of(entry.ref)
    return Listed(entry.alias, href, entry.ref, entry.description, record.runs, runs, record.facts)


def _unnamed(name: str, record: Record) -> Listed:
    return Listed(name, "", name, "", record.runs, runs_of(name), record.facts)


def _new_id(known: Known) -> str:
    return new_run_id(known.described.name, known.workspace.clock.now())


def _one(form: Form, name: str) -> str:
    return form.get(name, [""])[-1].strip()


ROUTES: Final = (
    Route("/workflows", index, name="workflows"),
    Route("/workflows/{alias}", show, name="workflow"),
    Route("/workflows/{alias}", start, methods=["POST"], name="start"),
    Route("/workflows/{alias}/check", check, methods=["POST"], name="check-input"),
)
