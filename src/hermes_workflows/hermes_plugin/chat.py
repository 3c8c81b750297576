"""`/workflow` in a conversation: list, start, status, review, answer; what it says is text for a person.

A command is typed by a person, never called by the model. Who that person is Hermes says in its own terminal only:
there an answer is recorded as one given in a terminal is. From a chat platform an answer needs a token of ours, which
`gateway.py` takes before any command is looked at; here it is refused.
Words of agents and users are shown as inert text: they name nobody, link nowhere and end no block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Never

from ..cli.output import readable
from ..cli.people import provenance
from ..core.encoding import Plain
from ..core.inert import inert
from ..core.markdown import code_span, fence
from ..core.receipts import Provenance
from ..errors import HermesError, InvalidInput
from ..review.forms import form_of, read
from ..review.tokens import options_of
from .offers import COMMANDS_HINT
from .service import Service, read_json, service, start, workflows

CHANNEL: Final = "hermes-cli"
HELP: Final = """/workflow list                     what can be started
/workflow start NAME [INPUT]       start one; its input is JSON
/workflow status [RUN]             the newest runs, or where one stands
/workflow review [RUN KEY]         what waits for an answer, or one question with its evidence
/workflow answer RUN KEY ANSWER    ANSWER is JSON, or an action and what you have to say"""

_ELSEWHERE: Final = (
    "answer with a line of a notice, in Hermes' dashboard under Workflows, or with `hermes-workflows review respond`"
)
_LINE: Final = 160
_TEXT: Final = 3_000
_JSON: Final = tuple('{["-0123456789')


def command(ctx: Any, raw: str) -> str:
    """What Hermes shows for `/workflow raw`."""
    verb, _, rest = raw.strip().partition(" ")
    try:
        said = _VERBS.get(verb.lower() or "help", _unknown)(ctx, rest.strip())
    except HermesError as error:
        said = f"{inert(error.message)}" + (f"\n{inert(error.hint)}" if error.hint else "")
    return readable(said)


def _help(ctx: Any, rest: str) -> str:
    return HELP


def _unknown(ctx: Any, rest: str) -> Never:
    raise InvalidInput("there is no such command", hint=f"what there is: /workflow {COMMANDS_HINT}")


def _list(ctx: Any, rest: str) -> str:
    found: Any = workflows()
    lines = [f"{each['workflow']}{_takes(each.get('input'))}: {_said(_about(each))}" for each in found]
    return "\n".join(lines) or "the registry has no workflows"


def _start(ctx: Any, rest: str) -> str:
    name, _, text = rest.partition(" ")
    if not name:
        raise InvalidInput("which workflow?", hint="see /workflow list")
    try:
        return _run(start(name, text.strip() or None, None))
    except InvalidInput as error:
        raise InvalidInput(error.message, hint="what it takes is in /workflow list") from None


def _takes(schema: Any) -> str:
    """How its input is written: all fields, and what kind each one is; `?` says that it may be left out."""
    if schema is None:
        return ""
    fields, required = schema.get("properties"), schema.get("required", ())
    if not isinstance(fields, Mapping):
        return " " + _said(schema.get("type") or "JSON")
    wanted = sorted(fields, key=lambda name: name not in required)
    told = (f'"{name}"{"" if name in required else "?"}: {_kind(fields[name])}' for name in wanted)
    return " " + _said("{" + ", ".join(told) + "}")


def _kind(schema: Any) -> str:
    named = schema.get("enum") if isinstance(schema, Mapping) else None
    if named:
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in named)
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, str) else "JSON"


def _about(listed: Any) -> Any:
    return listed.get("error") or listed["description"]


def _status(ctx: Any, rest: str) -> str:
    with service() as here:
        if rest:
            return _run(here.status(rest))
        found: Any = here.newest()
    return "\n".join(f"{each['workflow_id']}: {each['label']}, {_said(each['reason'])}" for each in found) or "no runs"


def _review(ctx: Any, rest: str) -> str:
    run, _, key = rest.partition(" ")
    with service() as here:
        if run and key.strip():
            return _question(ctx, here.question(run, key.strip()))
        rows: Any = here.reviews(run or None)
    lines = [f"{each['workflow_id']} {each['key']}: {_said(each['prompt'])}" for each in rows]
    return "\n".join(lines) or "nothing waits for an answer"


def _answer(ctx: Any, rest: str) -> str:
    run, key, text = [*rest.split(maxsplit=2), "", "", ""][:3]
    if not text:
        raise InvalidInput("what is the answer?", hint="it is given as in /workflow answer RUN KEY ANSWER")
    person = _person(ctx)
    with service() as here:
        payload = _payload(here, run, key, text)
        done: Any = here.answer(run, key, payload, person)
    by = done["provenance"]
    lines = [f"recorded as {by['kind']}, by {_said(by['by'])} through {by['channel']}"]
    return "\n".join([*lines, f"{done['workflow_id']}: {done['state']}, {_said(done['reason'])}"])


def _person(ctx: Any) -> Provenance:
    """Whoever types in Hermes' terminal. Raises InvalidInput where Hermes does not say who writes."""
    if not _in_terminal(ctx):
        raise InvalidInput("nobody can be asked for their name here, so no answer is taken", hint=_ELSEWHERE)
    return provenance(None, None, CHANNEL)


def _in_terminal(ctx: Any) -> bool:
    return getattr(getattr(ctx, "_manager", None), "_cli_ref", None) is not None


def _payload(here: Service, run: str, key: str, text: str) -> Plain:
    """JSON as it is; of anything else the first word is the action, and the rest what there is to say."""
    if text.startswith(_JSON):
        return read_json(text, "the answer")
    question: Any = here.question(run, key)
    form = form_of(question["request"]["returns"])
    if not form.is_object:
        return read(form.fields[0], text)
    action, _, feedback = text.partition(" ")
    given = {"action": action} | ({"feedback": feedback.strip()} if feedback.strip() else {})
    return form.assemble({name: read(form.field(name), value) for name, value in given.items()})


def _run(document: Any) -> str:
    lines = [f"{document['workflow_id']}: {document['label']}, {_said(document['reason'])}"]
    if document["next_action"]:
        lines.append(f"next: {_said(document['next_action'])}")
    for each in document["reviews"]:
        lines.append(f"asks {each['key']}: {_said(each['prompt'])}")
    for name in ("result", "error"):
        if document[name] is not None:
            lines += [f"{name}:", *_block(document[name])]
    return "\n".join(lines)


def _question(ctx: Any, document: Any) -> str:
    request = document["request"]
    lines = [f"{document['workflow_id']} asks {document['key']} ({document['status']}):", *_block(request["prompt"])]
    if request["input"] is not None:
        lines += ["evidence:", *_block(request["input"])]
    for each in document["evidence"]:
        lines += [f"{_said(each['title'])}:", *_block(each["missing"] or each["value"])]
    if document["answer"] is not None:
        return "\n".join([*lines, "answered:", *_block(document["answer"])])
    return "\n".join([*lines, *_how(ctx, document)])


def _how(ctx: Any, document: Any) -> list[str]:
    """How the question is answered, by whoever reads this."""
    from ..cli.writing import pretty

    schema = document["request"]["returns"]
    if not _in_terminal(ctx):
        return [_ELSEWHERE]
    command = f"/workflow answer {document['workflow_id']} {document['key']}"
    if options := options_of(schema):
        return [f"answer: {command} ANSWER", f"ANSWER: {' | '.join(_said(each.label) for each in options)}"]
    return [f"answer: {command} ANSWER, which is JSON that fits this:", *fence(pretty(schema)[:_TEXT], "json")]


def _said(text: Any) -> str:
    return inert(code_span(str(text or ""), _LINE)) if text else ""


def _block(value: Any) -> list[str]:
    from ..cli.writing import pretty

    text = value if isinstance(value, str) else pretty(value)
    cut = text if len(text) <= _TEXT else f"{text[:_TEXT]}\n… {len(text) - _TEXT:,} more characters"
    return inert("\n".join(fence(cut))).split("\n")


_VERBS: Final[Mapping[str, Callable[[Any, str], str]]] = {
    "help": _help,
    "list": _list,
    "start": _start,
    "status": _status,
    "review": _review,
    "answer": _answer,
}
