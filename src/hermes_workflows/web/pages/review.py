"""`/reviews/<run>/<key>`: one question, its evidence, and a form that answers it exactly once.

The form carries the commit it was made from, and a mark that binds it to run, key and that commit: it answers what
its reader saw, or nothing. Sent twice it is one message, which the store knows again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...core.changes import changes
from ...core.encoding import parse
from ...core.outline import calls_of
from ...core.receipts import Provenance, ReviewReceipt
from ...core.values import check_schema
from ...errors import Conflict, HermesError, InvalidInput, NotFound
from ...finding import Found
from ...review.answer import InvalidAnswer, Review, find_review
from ...review.earlier import earlier_of, shown_of
from ...workspace import Workspace
from ..attendance import missing
from ..evidence import changed, pieces_of, said_before
from ..forms import form_view, without_field
from ..links import redirect
from ..posted import MISSING, Draft, Errors, Form, Raw, edited, read
from ..rendering import opened, page, pretty, segment
from ..review_view import Answered, Before, Notice, ReviewView, asked_of, kept_of
from ..sessions import Sessions
from ..settings import WebSettings

_UNPROCESSABLE: Final = 422
# Buttons that change how the answer is written, with what has been written so far.
_AS_JSON: Final = {"write as JSON": True, "write in fields": False}


@dataclass(frozen=True)
class Question:
    """A question as it stands now, with the run it is in."""

    workspace: Workspace
    found: Found
    review: Review

    @property
    def key(self) -> str:
        return self.review.request.key

    @property
    def schema(self) -> Mapping[str, Any]:
        assert self.review.request.request is not None  # a request receipt always holds its question
        return self.review.request.request.returns


def show(request: Request) -> Response:
    question = _question(request)
    known = question.review.response is not None and "recorded" in request.query_params
    notice = Notice("good", "The answer is recorded.", missing(question.workspace)) if known else None
    draft = Draft(_proposed(question))
    return _page(request, question, draft, notice=notice)


def respond(request: Request) -> Response:
    question, form = _question(request), request.state.form
    draft = _draft(question, form)
    if wish := _one(form, "_do"):
        return _page(request, question, edited(draft, wish), as_json=_AS_JSON.get(wish))
    if (stale := _stale(request, question, form)) is not None:
        return _page(request, question, draft, notice=stale, status=409)
    errors = draft.check(question.schema)
    if "_check" in form and not _one(form, "_json"):
        errors = _but_the_button(question, errors)
    if errors or "_check" in form:
        fits = Notice("good", "This answer fits. It is not recorded yet.")
        status = _UNPROCESSABLE if errors else 200
        return _page(request, question, draft, errors, notice=None if errors else fits, status=status)
    return _recorded(request, question, draft, form)


def check(request: Request) -> Response:
    """What is wrong with an answer that is being typed; nothing is recorded."""
    question, form = _question(request), request.state.form
    errors = _draft(question, form).check(question.schema)
    return JSONResponse([{"field": pointer, "reason": reason} for pointer, reason in errors])


def _but_the_button(question: Question, errors: Errors) -> Errors:
    """Without what the button says that sends an answer: who only checks has pressed none."""
    actions = form_view(question.schema).actions
    return [each for each in errors if actions is None or each[0] != actions.pointer]


def _question(request: Request) -> Question:
    run, key = request.path_params["run"], request.path_params["key"]
    workspace = opened(request).of_run(run)
    # As it is now, also when a commit was given: whoever answers must see who was faster.
    found = workspace.find(workspace.find(run).run_id)
    return Question(workspace, found, find_review(found.run_id, key, found.receipts))


def _draft(question: Question, form: Form) -> Draft:
    text = _one(form, "_json")
    if not text:
        return read(question.schema, form)
    try:
        return Draft(parse(text.encode()))
    except InvalidInput as error:
        return Draft(Raw(text), [("", f"is {error.message}")])


def _proposed(question: Question) -> Any:
    """The input, where it is an answer by itself: an output to be edited."""
    asked = question.review.request.request
    given = asked.input if asked else None
    try:
        json.dumps(given)
        return given if given is not None and not check_schema(given, question.schema) else MISSING
    except (InvalidInput, TypeError):
        # A schema that is none, or bytes, which no form can hold: the question is shown all the same.
        return MISSING


def _stale(request: Request, question: Question, form: Form) -> Notice | None:
    """Why the form is not about what is asked now."""
    sessions: Sessions = request.app.state.sessions
    commit, nonce = _one(form, "_request"), _one(form, "_form")
    if not sessions.is_signed(_one(form, "_mark"), "form", nonce, question.found.run_id, question.key, commit):
        return Notice("bad", "This form was not made by this dashboard, or for another question. Nothing was recorded.")
    try:
        _, receipts = question.workspace.ledger.at(commit)
        before = find_review(question.found.run_id, question.key, receipts).request
    except NotFound:
        return Notice(
            "bad", "The question that this form was made for is gone. Nothing was recorded; this is the new one."
        )
    if _what(before) == _what(question.review.request):
        return None
    differences = tuple(map(changed, changes(shown_of(before), shown_of(question.review.request))))
    said = "The question has changed since this form was made. Nothing was recorded; read what is asked now."
    return Notice("bad", said, pieces=differences)


def _what(asked: ReviewReceipt) -> Any:
    return asked.fingerprint, asked.request, asked.execution.evidence


def _recorded(request: Request, question: Question, draft: Draft, form: Form) -> Response:
    settings: WebSettings = request.app.state.settings
    # Stamped here, whatever a browser sends.
    person = Provenance(
        kind=settings.kind,
        by=settings.by,
        channel=settings.channel,
        message_id=_one(form, "_form"),
        verified="session-token",
    )
    try:
        question.workspace.answer(question.found.run_id, question.key, draft.payload, person)
    except InvalidAnswer as error:
        return _page(request, question, draft, list(error.errors), status=_UNPROCESSABLE)
    except Conflict as error:
        return _refused(request, draft, error)
    return redirect(request, f"{_href(question.found.run_id, question.key)}?recorded")


def _refused(request: Request, draft: Draft, error: HermesError) -> Response:
    """Somebody was faster, or the question has ended: what was typed is shown once more, to be copied."""
    notice = Notice("bad", f"{error.message}.", error.hint or "", typed=pretty(draft.value))
    return _page(request, _question(request), draft, notice=notice, status=409)


def _page(
    request: Request,
    question: Question,
    draft: Draft,
    errors: Errors | None = None,
    *,
    notice: Notice | None = None,
    status: int = 200,
    as_json: bool | None = None,
) -> Response:
    """`as_json` says how the answer is to be written from now on; None leaves that as it is."""
    view = _view(request, question, notice)
    if view.answered is None:
        if as_json is None:
            as_json = "json" in request.query_params or bool(_one(getattr(request.state, "form", {}), "_json"))
        # What is no JSON yet fits no field.
        as_json = as_json or isinstance(draft.value, Raw)
        wrong = [*(errors or draft.errors)]
        form = form_view(question.schema, draft.value, wrong)
        if as_json:
            form = replace(form, errors=without_field(wrong))
        view = replace(view, form=form, text=_text(draft.value) if as_json else None)
    return page(request, "review.html", view, status=status)


def _text(value: Any) -> str:
    """An answer, or a part of one, as JSON to be edited."""
    if value is MISSING:
        return ""
    return str(value) if isinstance(value, Raw) else json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def _view(request: Request, question: Question, notice: Notice | None) -> ReviewView:
    workspace, found, asked = question.workspace, question.found, question.review.request
    sessions: Sessions = request.app.state.sessions
    run, key, nonce = found.run_id, question.key, secrets.token_urlsafe(16)
    older = earlier_of(workspace, run, asked, found.receipts) if found.remote is None else []
    return ReviewView(
        run_id=run,
        key=key,
        href=_href(run, key),
        commit=found.head.tip,
        form_id=nonce,
        mark=sessions.sign("form", nonce, run, key, found.head.tip),
        asked=asked_of(workspace, run, asked),
        pieces=pieces_of(asked),
        before=tuple(Before(each.run_id, each.question.key, tuple(map(changed, each.changes))) for each in older),
        said=said_before(calls_of(found.receipts), asked.seq),
        kept=kept_of(workspace, run, found.receipts),
        answered=None if question.review.response is None else Answered.of(question.review.response),
        notice=notice,
    )


def _href(run: str, key: str) -> str:
    return f"/reviews/{segment(run)}/{segment(key)}"


def _one(form: Form, name: str) -> str:
    given = form.get(name)
    return given[-1] if given else ""


ROUTES: Final = (
    Route("/reviews/{run}/{key:path}", show, name="review"),
    Route("/reviews/{run}/{key:path}", respond, methods=["POST"], name="respond"),
    Route("/check/{run}/{key:path}", check, methods=["POST"], name="check"),
)
