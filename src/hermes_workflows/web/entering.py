"""The door: a token becomes a session's cookie, and whoever has none is told how to get one.

These pages need no style and no script: nobody who sees them is let near ours.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.types import Scope

from .links import Link
from .sessions import Sessions

ENTER: Final = "/enter"
_AGAIN = (
    "Open the address that <code>hermes-workflows dashboard</code> printed. It lets one browser in, once: "
    "start the dashboard again for another one, or with a token of your own."
)
_DOOR = (
    '<form method="post" action="{}"><label>Token '
    '<input name="token" type="password" autocomplete="off" required></label> <button>Enter</button></form>'
)


@dataclass(frozen=True)
class Answer:
    """What the gate says itself: a sentence, and `more` that is HTML already."""

    status: int
    text: str
    more: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    head: str = ""

    def body(self) -> bytes:
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="referrer" content="same-origin">{self.head}'
            f"<title>hermes-workflows</title></head><body><main><h1>hermes-workflows</h1>"
            f"<p>{html.escape(self.text)}</p>{self.more}</main></body></html>"
        ).encode()


def locked(link: Link, text: str = "This browser has not been let in.") -> Answer:
    return Answer(401, text, f"<p>{_AGAIN}</p>{_DOOR.format(html.escape(link(ENTER)))}")


def enter(scope: Scope, form: Mapping[str, list[str]] | None, sessions: Sessions, session: str, link: Link) -> Answer:
    """Exchange the token of the printed address, or of the door's form; who is in already is shown in once more."""
    given: Mapping[str, Any] = parse_qs(scope.get("query_string", b"").decode("latin-1")) if form is None else form
    token = str(next(iter(given.get("token", [])), ""))
    if sessions.knows(session):
        return _welcome(link, {})
    made = sessions.exchange(token) if token and scope["method"] != "HEAD" else None
    if made is None:
        return locked(
            link, "This token is wrong, or was used already." if token else "This browser has not been let in."
        )
    return _welcome(link, {"set-cookie": f"{sessions.cookie}={made}; Path={link('/')}; HttpOnly; SameSite=Strict"})


def _welcome(link: Link, headers: Mapping[str, str]) -> Answer:
    home, icon = html.escape(link("/")), html.escape(link("/static/icon.svg"))
    # No redirect: a browser that came here from another site would follow it without the new cookie.
    return Answer(
        200,
        "Welcome.",
        f'<p><a href="{home}">To the inbox</a></p>',
        headers,
        f'<meta http-equiv="refresh" content="0; url={home}"><link rel="icon" href="{icon}" type="image/svg+xml">',
    )
