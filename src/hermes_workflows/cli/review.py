"""`review list|show|respond`: questions for people, from the command line.

Recorded as `human` only when a person types in a terminal; from a script it is `manual`, or `--kind test`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from .completion import complete_reviews, complete_runs
from .output import readable
from .publish import import_reviews
from .run import warn_of_split
from .scope import Scope, scoped
from .session import debug_option
from .show import review_document, review_row
from .writing import columns, one_line, pretty

if TYPE_CHECKING:
    from ..core.encoding import Plain
    from ..core.receipts import Provenance
    from ..review.answer import Review
    from ..review.evidence import Shown
    from ..review.forms import Form
    from ..store.queue_port import ReviewRow
    from ..workspace import Workspace

_COLUMNS = ("run", "key", "status", "who", "asked", "question")


@click.group("review")
def review() -> None:
    """Questions for people."""


review.add_command(import_reviews)


@review.command("list")
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="Only this run's questions.")
@click.option("--all", "every", is_flag=True, help="Answered, expired and withdrawn ones too.")
@scoped
def list_reviews(scope: Scope, run: str | None, every: bool) -> None:
    """Show what waits for an answer, oldest first."""
    rows: list[ReviewRow] = []
    for paths in [scope.holding(run)] if run else scope.every():
        with scope.look(paths) as workspace:
            name = workspace.resolve(run) if run else None
            rows += workspace.reviews(run_id=name, status=None if every else "open")
    shown = [review_row(row) for row in rows]
    scope.output.table(_COLUMNS, shown, [review_document(row) for row in rows], "nothing waits for an answer")


@review.command("show")
@click.argument("run", shell_complete=complete_runs)
@click.argument("key", shell_complete=complete_reviews)
@scoped
def show(scope: Scope, run: str, key: str) -> None:
    """Show one question: its evidence, the form of its answer, and the answer."""
    with scope.look(scope.holding(run)) as workspace:
        found = workspace.review(run, key)
    scope.output.data(question_document(found), lambda: _text(found))


@review.command("respond")
@click.argument("run", shell_complete=complete_runs)
@click.argument("key", shell_complete=complete_reviews)
@click.option("--json", "text", metavar="JSON|@FILE|-", help="The whole answer.")
@click.option("--action", help="The answer's field `action`, or the answer itself when it has no fields.")
@click.option("--feedback", help="The answer's field `feedback`.")
@click.option("--field", "fields", metavar="NAME=VALUE", multiple=True, help="Any field of the answer; repeatable.")
@click.option("--by", metavar="NAME", help="Who answers; your login name when left out.")
@click.option("--channel", default="cli", show_default=True, help="What the answer came through.")
@click.option("--message-id", metavar="ID", help="Names the message: sending it again records nothing new.")
@click.option("--kind", type=click.Choice(["human", "manual", "test"]), help="What kind of answer this is.")
@click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out.")
@click.option("--db", metavar="ALIAS|PATH", help="The database; the registry's default one when left out.")
@debug_option
@click.pass_obj
def respond(session: Any, /, run: str, key: str, config: str | None, db: str | None, **given: Any) -> None:
    """Answer a question.

    Without an answer on the command line a terminal is asked, field by field.
    """
    from .people import provenance

    scope = Scope(session, config, db)
    person = provenance(given["by"], given["kind"], given["channel"], given["message_id"])
    with scope.open(scope.holding(run)) as workspace:
        name = workspace.resolve(run)
        question = workspace.review(name, key)
        answered = _answer(workspace, question, person, given)
        warn_of_split(scope, workspace)
        state = workspace.state(name)
    scope.output.data(
        question_document(answered) | {"state": state.state, "next_action": state.next_action},
        lambda: f"{_recorded(answered)}\nnext: {state.next_action}",
    )


def _recorded(answered: Review) -> str:
    """What stands in the receipt: an answer sent twice keeps the provenance of the first time."""
    assert answered.response is not None
    assert answered.response.execution.provenance is not None
    person = answered.response.execution.provenance
    return f"recorded as {person.kind}, by {one_line(person.by)} through {one_line(person.channel)}"


def _answer(workspace: Workspace, question: Review, person: Provenance, given: Mapping[str, Any]) -> Review:
    from ..review.answer import InvalidAnswer
    from ..review.forms import form_of
    from .people import interactive
    from .prompts import ask_for

    assert question.request.request is not None  # a request receipt always holds its question
    form = form_of(question.request.request.returns)
    payload = _payload(form, given)
    if payload is not _NOTHING or question.response is not None or not interactive():
        if payload is _NOTHING and question.response is None:
            raise InvalidInput("no answer was given", hint="pass --json, or --action and --field, or use a terminal")
        said = None if payload is _NOTHING else payload
        return workspace.answer(question.run_id, question.request.key, said, person)
    click.echo(readable(_text(question)), err=True)
    while True:
        try:
            return workspace.answer(question.run_id, question.request.key, ask_for(form), person)
        except InvalidAnswer as error:
            # Nothing was recorded, and the person is still here.
            click.echo(readable(error.message), err=True)


# No answer on the command line: None is one.
_NOTHING: Any = object()


def _payload(form: Form, given: Mapping[str, Any]) -> Plain:
    """The answer as the flags say it; `_NOTHING` when they say nothing."""
    from ..review.forms import read
    from .inputs import read_json

    flags = {name: given[name] for name in ("action", "feedback") if given[name] is not None}
    for pair in given["fields"]:
        name, sign, text = pair.partition("=")
        if not sign:
            raise InvalidInput(f"--field {pair} names no value", hint="--field NAME=VALUE")
        flags[name] = text
    if given["text"] is not None:
        if flags:
            raise InvalidInput("the answer is given twice", hint="pass --json, or its fields, not both")
        return read_json(given["text"], "--json")
    if list(flags) == ["action"] and not form.is_object:
        return read(form.fields[0], flags["action"])
    if not flags:
        return _NOTHING  # type: ignore[no-any-return]
    return form.assemble({name: read(form.field(name), text) for name, text in flags.items()})


def question_document(found: Review) -> dict[str, Any]:
    from ..review.evidence import evidence_of

    request, response = found.request, found.response
    document = {
        "workflow_id": found.run_id,
        "key": request.key,
        "status": "open" if response is None else response.status,
        "request": request.request.model_dump() if request.request else None,
        "evidence": [vars(each) for each in evidence_of(request)],
        "requested_at": request.model_dump()["execution"]["started_at"],
        "answer": None,
        "provenance": None,
    }
    if response is not None:
        execution = response.model_dump()["execution"]
        document |= {
            "answer": response.output,
            "answered_at": execution["finished_at"],
            "provenance": execution["provenance"],
        }
    return document


def _evidence(shown: Shown) -> str:
    if shown.missing is not None:
        return f"({shown.path} is missing: {shown.missing})"
    return shown.value.rstrip("\n") if isinstance(shown.value, str) else pretty(shown.value)


def _beside(text: str) -> str:
    """Text of others stands a little aside: at the edge is only what we say."""
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))


def _text(found: Review) -> str:
    from ..review.evidence import evidence_of
    from ..review.forms import form_of, shown

    question = found.request.request
    assert question is not None  # a request receipt always holds its question
    lines = [f"{found.run_id} asks ({found.request.key}):", "", _beside(question.prompt), ""]
    if question.input is not None:
        lines += ["evidence:", _beside(pretty(question.input)), ""]
    for each in evidence_of(found.request):
        lines += [f"{one_line(each.title)}:", _beside(_evidence(each)), ""]
    rows = [
        (
            field.name or "answer",
            " | ".join(map(shown, field.choices)) or field.kind + ("" if field.required else ", may be left out"),
        )
        for field in form_of(question.returns).fields
    ]
    lines.append(columns(rows))
    if found.response is not None:
        person = found.response.execution.provenance
        who = f" by {one_line(person.by)} ({person.kind}, {one_line(person.channel)})" if person else ""
        lines += ["", f"{found.response.status}{who}: {one_line(pretty(found.response.output), 500)}"]
    return "\n".join(lines)
