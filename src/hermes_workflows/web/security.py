"""One gate before every route, static files and the event stream included (DESIGN §6).

    1  the peer is this machine, unless a token was configured        else 403
    2  `Host` is a name of ours: no foreign name points here          else 400
    3  the cookie is of a session that a token was exchanged for      else 401
    4  what is not GET or HEAD comes from a page of ours: `Origin`,
       the session's CSRF mark, a form of bounded size                else 403, 413, 415

The answer never carries a CORS header, and always those of `HEADERS`: also one that the gate gives itself.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .entering import ENTER, Answer, enter, locked
from .links import served, within
from .sessions import Sessions
from .settings import WebSettings

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
BODY_LIMIT: Final = 1 << 20
_FIELDS = 5000
_FORM = "application/x-www-form-urlencoded"
_SAFE = ("GET", "HEAD")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Form = dict[str, list[str]]


class Gate:
    """ASGI middleware. Handlers find `session`, `csrf`, `link` and, of what is posted, `form` in the state."""

    def __init__(self, app: ASGIApp, settings: WebSettings, sessions: Sessions) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._hosts = _LOOPBACK | {host.lower().strip("[]") for host in settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded, scope = _Guarded(send), self._placed(scope)
        answer = await self._refuse(scope, receive)
        if answer is not None:
            await guarded.answer(answer)
            return
        try:
            await self._app(scope, receive, guarded)
        except Exception:
            logging.getLogger(__name__).exception("%s %r failed", scope["method"], scope["path"])
            if not guarded.begun:
                await guarded.answer(Answer(500, "A fault of this program; its log says more."))

    async def _refuse(self, scope: Scope, receive: Receive) -> Answer | None:
        """What is answered instead of the page; None lets the request through."""
        headers = Headers(scope=scope)
        if (wrong := self._wrong_caller(scope, headers)) is not None:
            return wrong
        if not scope.get("query_string", b"").isascii():
            return Answer(400, "This is no address: what is not ASCII in it is written with percent signs.")
        safe, state, path = scope["method"] in _SAFE, scope.setdefault("state", {}), within(scope)
        link = state["link"] = served(scope.get("root_path", ""))
        if not path.startswith("/"):
            return Answer(308, "It is below.", headers={"location": link("/")})
        if not safe:
            if (wrong := _wrong_origin(headers)) is not None:
                return wrong
            form = await _form(headers, receive)
            if isinstance(form, Answer):
                return form
            state["form"] = form
        session = self._session(headers)
        if path == ENTER:
            return enter(scope, state.get("form"), self._sessions, session, link)
        if not self._sessions.knows(session):
            return locked(link)
        state["session"], state["csrf"] = session, self._sessions.csrf(session)
        if not safe and not self._is_marked(headers, state["form"], session):
            return Answer(403, "The form is not of this session: load the page again.")
        return None

    def _wrong_caller(self, scope: Scope, headers: Headers) -> Answer | None:
        if not self._settings.remote and not _is_loopback(scope.get("client")):
            return Answer(403, "Only this machine is served.")
        if not self._is_ours(headers):
            return Answer(400, "This is no name of this dashboard.")
        return None

    def _session(self, headers: Headers) -> str:
        return _cookie(headers, self._sessions.cookie)

    def _placed(self, scope: Scope) -> Scope:
        """`scope` below what the settings say: a proxy before us passes the whole path on."""
        root = str(scope.get("root_path", "")).rstrip("/") + self._settings.root_path
        return {**scope, "root_path": root} if self._settings.root_path else scope

    def _is_ours(self, headers: Headers) -> bool:
        named = headers.getlist("host")
        return len(named) == 1 and _name_of(named[0]) in self._hosts

    def _is_marked(self, headers: Headers, form: Form, session: str) -> bool:
        given = form.pop("_csrf", [""])[0] or headers.get("x-csrf-token", "")
        return self._sessions.is_signed(given, "csrf", session)


class HostedGate(Gate):
    """For an application that another one has mounted behind its own names, peers and log-in: it has let in who comes.

    What is posted must still come from a page of ours. There is one session, which nobody's cookie names: an
    application is made for each person.
    """

    def __init__(self, app: ASGIApp, settings: WebSettings, sessions: Sessions) -> None:
        super().__init__(app, settings, sessions)
        self._own = sessions.exchange(settings.token) or ""

    def _wrong_caller(self, scope: Scope, headers: Headers) -> Answer | None:
        return None

    def _session(self, headers: Headers) -> str:
        return self._own


class _Guarded:
    """`send` that puts our headers on whatever is answered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                # A page may be stricter than all of them: an artifact is a sandbox.
                headers.setdefault(name, value)
        await self._send(message)

    async def answer(self, answer: Answer) -> None:
        body = answer.body()
        lines = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **answer.headers}
        raw = [(name.encode(), value.encode()) for name, value in lines.items()]
        await self({"type": "http.response.start", "status": answer.status, "headers": raw})
        await self({"type": "http.response.body", "body": body})


def _is_loopback(client: tuple[str, int] | None) -> bool:
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _name_of(host: str) -> str:
    """The name in a `Host`, without its port; "" for what is none."""
    try:
        parts = urlsplit(f"//{host}")
        # Asked for, a port that is none raises: what follows the colon is no part of a name either.
        is_one = parts.netloc == host and parts.username is None and (parts.port is None or parts.port > 0)
        return (parts.hostname or "") if is_one else ""
    except ValueError:
        return ""


def _wrong_origin(headers: Headers) -> Answer | None:
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if origin == "null" and headers.get("sec-fetch-site") == "same-origin":
        # What browsers send from a page that tells no referrer; no page can write the other header itself.
        return None
    if host and origin in (f"http://{host}", f"https://{host}"):
        return None
    return Answer(403, "The request came from another site.")


async def _form(headers: Headers, receive: Receive) -> Form | Answer:
    """The fields that were posted, each with all its values."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return Answer(415, "Only forms are taken.")
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return Answer(400, "The request ended early.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY_LIMIT:
            return Answer(413, f"A form has at most {BODY_LIMIT:,} bytes.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        return Answer(400, "The form cannot be read.")
    form: Form = {}
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
