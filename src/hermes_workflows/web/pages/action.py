"""`/actions/<verb>/<run>`: what an action does, the command that does it too, and a button that does it.

Nothing happens on a GET. Asked twice it happens once: requests to a run are recorded once, and an id is taken once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.encoding import parse
from ...core.receipts import Provenance
from ...errors import HermesError, InvalidInput
from ...finding import split
from ...runner.forking import Wish, retry_id
from ...workspace import Workspace
from ..actions import Action, action_of, command
from ..errors import status_of
from ..links import redirect
from ..rendering import code, opened, page, segment
from ..review_view import Notice
from ..security import Form
from ..settings import WebSettings


@dataclass(frozen=True)
class Wanted:
    """What the form says: why, whether at once, the id of the new run, and another input for it, as JSON."""

    reason: str = ""
    now: bool = False
    new: str = ""
    given: str = ""


@dataclass(frozen=True)
class ActionView:
    action: Action
    run: str
    wanted: Wanted
    notice: Notice | None = None

    @property
    def href(self) -> str:
        return f"/actions/{self.action.verb}/{segment(self.run)}"

    @property
    def run_href(self) -> str:
        return f"/runs/{segment(self.run)}"

    @property
    def command(self) -> str:
        return command(self.action.verb, self.run, self.wanted.new, self.wanted.reason)


def show(request: Request) -> Response:
    action, run = action_of(request.path_params["verb"]), request.path_params["run"]
    workspace = opened(request).of_run(split(run)[0])
    # Of a key that nobody knows, it says the nearest right one.
    found = workspace.find(run)
    new = _free_id(workspace, found.run_id, action) if action.new else ""
    return page(request, "action.html", ActionView(action, run, Wanted(new=new)))


def act(request: Request) -> Response:
    action, run = action_of(request.path_params["verb"]), request.path_params["run"]
    workspace, wanted = opened(request).of_run(split(run)[0]), _wanted(request.state.form)
    try:
        done = _done(request, workspace, action, run, wanted)
    except HermesError as error:
        notice = Notice("bad", f"{error.message}.", error.hint or "")
        view = replace(ActionView(action, run, wanted), notice=notice)
        return page(request, "action.html", view, status=status_of(error))
    return redirect(request, f"/runs/{segment(done)}?done={action.verb}")


def _done(request: Request, workspace: Workspace, action: Action, run: str, wanted: Wanted) -> str:
    """Do it; returns the run to look at now."""
    by = _person(request)
    if action.verb == "fork" or action.verb == "retry":
        found = workspace.find(run)
        new = wanted.new or _free_id(workspace, found.run_id, action)
        return code(request).again(workspace, action.verb, Wish(found, new, by, _input(wanted.given)))
    return workspace.control(workspace.resolve(run), action.verb, reason=wanted.reason, by=by, now=wanted.now).run_id


def _input(text: str) -> tuple[Any, ...]:
    """Another input, in a tuple of one; nothing when the old one stays."""
    if not text.strip():
        return ()
    try:
        return (parse(text.encode()),)
    except InvalidInput as error:
        raise InvalidInput(f"the input is no JSON: {error.message}") from error


def _free_id(workspace: Workspace, run: str, action: Action) -> str:
    return retry_id(workspace, run) if action.verb == "retry" else fork_id(workspace, run)


def fork_id(workspace: Workspace, run: str) -> str:
    number = 1
    while workspace.ledger.head(name := f"{run}-fork-{number}") is not None:
        number += 1
    return name


def _wanted(form: Form) -> Wanted:
    def one(name: str) -> str:
        return form.get(name, [""])[-1].strip()

    return Wanted(one("reason"), bool(one("now")), one("new"), one("given"))


def _person(request: Request) -> Provenance:
    """Stamped by the server, whatever the browser sends."""
    settings: WebSettings = request.app.state.settings
    return Provenance(kind=settings.kind, by=settings.by, channel=settings.channel, verified="session-token")


ROUTES: Final = (
    Route("/actions/{verb}/{run:path}", show, name="action"),
    Route("/actions/{verb}/{run:path}", act, methods=["POST"], name="act"),
)
