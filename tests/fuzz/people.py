"""Targets of what people and their programs send: answers, reviews, requests to the dashboard, chats."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message, Scope
from tests.contract.workspaces import ACTIONS, Desk, person
from tests.fuzz.said import TYPES, codec
from tests.fuzz.stored import place
from tests.fuzz.target import GOLDEN, Target, joined, parts, refused_as
from tests.web.browser import BASE, TOKEN, app_of, waiting_desk

from hermes_workflows.core.encoding import encode, parse
from hermes_workflows.errors import IntegrityError, InvalidInput, RemoteFailure
from hermes_workflows.hermes_plugin import tools
from hermes_workflows.hermes_plugin.service import read_json
from hermes_workflows.review.commits import content
from hermes_workflows.review.forms import form_of, read
from hermes_workflows.review.pull_requests import (
    answers_of,
    is_answer,
    objections,
    provenance_of,
    pull_request_of,
    review_of,
)
from hermes_workflows.review.tokens import Shown, issue, opened, options_of, written
from hermes_workflows.runner.gh import document_of
from hermes_workflows.web import forms, markup, posted

# -- answers -------------------------------------------------------------------------------------------------


def desk(name: str) -> Desk:
    if name not in _desks:
        folder = place() / name
        folder.mkdir(exist_ok=True)
        _desks[name] = waiting_desk(folder)
    return _desks[name]


_desks: dict[str, Desk] = {}


def pushed(data: bytes) -> None:
    """A response.json that somebody has pushed."""
    with refused_as(InvalidInput, IntegrityError):
        value = content(data)
        encode(value, {})
        answer(value)


def answer(value: Any) -> None:
    """It is recorded, once, or refused."""
    with refused_as(InvalidInput):
        desk("answers").workspace.answer("wf", "ok", value, person())
        del _desks["answers"]


def responses() -> list[bytes]:
    bare = b'{"action": "approve", "feedback": "Ship it."}'
    return [bare, *(file.read_bytes() for file in sorted(GOLDEN.glob("*/receipts/*/reviews/*/response.json")))]


def tool(data: bytes) -> None:
    """What a model hands to a tool: parsed by its own program, which knows NaN and halves of characters."""
    args = None
    with contextlib.suppress(ValueError, RecursionError):
        args = json.loads(data)
    for name in ("run", "answer_json"):
        with refused_as(InvalidInput):
            tools._text(args, name)
        with refused_as(InvalidInput):
            value = tools._value(args, name)
            encode(value, {})
    with refused_as(InvalidInput):
        read_json(data.decode("utf-8", "surrogateescape"), "the answer")


# -- pull requests -------------------------------------------------------------------------------------------

FORMS = {"ok": ACTIONS, "n": {"type": "boolean"}, "draft": codec(TYPES[0]).json_schema}
PULL = {
    "number": 7,
    "html_url": "https://github.com/acme/runs/pull/7",
    "user": {"login": "robot"},
    "head": {"ref": "run/wf", "repo": {"full_name": "acme/runs"}},
    "base": {"repo": {"full_name": "acme/runs"}},
}
REVIEW = {
    "id": 31,
    "user": {"login": "ana", "type": "User"},
    "state": "APPROVED",
    "body": 'Ship it.\n\n```json ok\n{"action": "approve", "feedback": "x"}\n```\n',
    "commit_id": "1" * 40,
}


def pull_request(data: bytes) -> None:
    """A pull request and a list of its reviews, as `gh` prints them."""
    first, second = parts(data, 2)
    with refused_as(RemoteFailure, InvalidInput):
        pull = pull_request_of(document_of(first))
        found = document_of(second)
        for each in found if isinstance(found, list) else [found]:
            review = review_of(each)
            is_answer(review)
            objections(review, pull, "write")
            encode(provenance_of(review, pull, verified=True).model_dump(), {})
            with refused_as(InvalidInput):
                for said in answers_of(review, FORMS):
                    encode(said.payload, {})


def pull_requests() -> list[bytes]:
    other = REVIEW | {"body": "no", "state": "CHANGES_REQUESTED"}
    return [joined(json.dumps(PULL).encode(), json.dumps(reviews).encode()) for reviews in ([REVIEW, other], REVIEW)]


# -- schemas of questions from elsewhere ---------------------------------------------------------------------


def question(data: bytes) -> None:
    """A schema that came with a question, the form that is made of it, and what is sent back."""
    first, second, wish = parts(data, 3)
    with refused_as(InvalidInput):
        schema = parse(first)
    if "schema" in locals() and isinstance(schema, dict):
        form = form_of(schema)
        for field in form.fields:
            with refused_as(InvalidInput):
                read(field, second.decode("utf-8", "replace"))
        options_of(schema)
        sent = fields(second)
        with refused_as(InvalidInput):
            draft = posted.edited(posted.read(schema, sent), wish.decode("utf-8", "replace"))
            forms.form_view(schema, draft.value)
            posted.read(schema, sent).check(schema)


def fields(data: bytes) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    with contextlib.suppress(ValueError):
        return parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)
    return {}


def questions() -> list[bytes]:
    sent = b"f/action=approve&f/feedback=x&n/names=2&f/names/0=a&has/at=1&f/answer=42"
    return [joined(json.dumps(schema).encode(), sent, b"add /names") for schema in FORMS.values()]


# -- the dashboard -------------------------------------------------------------------------------------------


class _Log(logging.Handler):
    """The gate answers a fault with a page and a line in the log; here it is raised."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            raise record.exc_info[1]


@contextlib.contextmanager
def raised_when_logged() -> Iterator[None]:
    log, handler = logging.getLogger("hermes_workflows.web.security"), _Log()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


@cache
def dashboard() -> tuple[asyncio.AbstractEventLoop, Starlette]:
    return asyncio.new_event_loop(), app_of(desk("dashboard"), lasting=True)


def request(data: bytes) -> None:
    """A request as it comes over a line: method, path and query, headers, body."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, target, *_ = [*first.split(b" "), b"", b""]
    path, _, query = target.partition(b"?")
    loop, app = dashboard()
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope: Scope = {
        "type": "http", "method": method.decode("latin-1") or "GET", "path": _unquoted(path), "raw_path": path,
        "query_string": query, "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"cookie", _session()), *headers], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765),
        "state": {},
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> Message:
        nonlocal body
        sent, body = body, b""
        return {"type": "http.request", "body": sent} if sent else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    with raised_when_logged():
        loop.run_until_complete(app(scope, receive, send))
    assert statuses in ([], [*statuses][:1])
    assert all(status < 500 for status in statuses)


def _unquoted(path: bytes) -> str:
    """As uvicorn does it."""
    from urllib.parse import unquote

    return unquote(path.decode("ascii", "replace"))


@cache
def _session() -> bytes:
    """The cookie of a browser that was let in."""
    loop, app = dashboard()
    found: list[bytes] = []

    async def send(message: Message) -> None:
        found.extend(value for name, value in message.get("headers", ()) if name == b"set-cookie")

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/enter", "query_string": b"token=" + TOKEN.encode(),
             "headers": [(b"host", b"127.0.0.1:8765")], "client": ("127.0.0.1", 1), "root_path": "",
             "scheme": "http", "server": ("127.0.0.1", 8765)}  # fmt: skip
    loop.run_until_complete(app(scope, receive, send))
    return found[0].partition(b";")[0]


def requests() -> list[bytes]:
    host = BASE.removeprefix("http://").encode()
    gets = (
        *("/", "/?page=2&status=open&workflow=x", "/runs?page=1&status=failed&q=x", "/runs/wf", "/runs/wf/reviews/ok"),
        *("/events?run=wf&since=0", "/compare?a=wf&b=wf", "/workflows", "/runners", "/enter?token=x", "/runs/wf/ok"),
    )
    plain = [b"GET %s HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: x\r\n\r\n" % (path.encode(), host) for path in gets]
    posted = (
        b"POST /enter HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
    )
    return [*plain, posted % (host, BASE.encode()) + b"token=x&_csrf=y"]


def markdown(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert len(markup.markdown(text)) <= 200 * len(text) + 1000


MARKDOWN = b"# T\n\n* a\n  * b\n\n| a | b |\n|---|---|\n| `x` | [l](https://x) |\n\n```py\nx\n```\n> **b** ~~s~~ <b>\n"

# -- chats ---------------------------------------------------------------------------------------------------

KEY = b"k" * 32


def token(data: bytes) -> None:
    text = written(data.decode("utf-8", "replace"))
    if text is not None:
        opened(KEY, text)


def tokens() -> list[bytes]:
    from datetime import UTC, datetime

    made = desk("tokens")
    asked = made.workspace.review("wf", "ok").request
    given = Shown("home", "wf", asked, "1" * 40)
    return [issue(KEY, given, 0, datetime(2027, 1, 1, tzinfo=UTC)).encode()]


TARGETS = (
    Target("pushed-answer", pushed, responses),
    Target(
        "tool-arguments", tool, lambda: [b'{"run": "wf", "answer_json": "{\\"action\\": \\"approve\\"}"}', *responses()]
    ),
    Target("pull-request", pull_request, pull_requests),
    Target("question", question, questions),
    Target("request", request, requests),
    Target("markdown", markdown, lambda: [MARKDOWN]),
    Target("token", token, tokens),
)
