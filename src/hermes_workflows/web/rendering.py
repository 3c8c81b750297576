"""From a view model to a page: one environment for all templates, in which everything is escaped and cleaned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ..core.durations import duration, lasting
from ..core.plain import command_line
from ..core.timestamps import parse_time
from ..errors import HermesError
from .attendance import missing
from .code import Code
from .links import Link, href, link_of, within
from .live import Live
from .markup import finalize, markdown
from .opened import Opened

HERE: Final = Path(__file__).parent
NAVIGATION: Final = (("Inbox", "/"), ("Runs", "/runs"), ("Workflows", "/workflows"), ("Runners", "/runners"))
# Pages that are found from another one: where they belong, by how their address begins.
_SECTIONS: Final = {"reviews": "/", "calls": "/runs", "compare": "/runs", "actions": "/runs", "source": "/runs"}


@dataclass(frozen=True)
class Shell:
    """What every page has around its own: `waiting` open questions, the session's mark, where one is.

    Every address goes through `link` or `href`.
    `absent` says of each database that no runner serves what to do. With `live` the page is kept up to date.
    A page that is a file says in `as_of` when it was true, asks nothing, and names moments instead of ages.
    """

    waiting: int
    csrf: str
    path: str
    link: Link
    absent: tuple[str, ...] = ()
    live: Live | None = None
    navigation: tuple[tuple[str, str], ...] = NAVIGATION
    as_of: str = ""

    @property
    def section(self) -> str:
        """The entry of the navigation that the page belongs to, when it is not that page itself."""
        first = self.path.strip("/").partition("/")[0]
        return _SECTIONS.get(first, f"/{first}")

    def href(self, address: str) -> Markup:
        return href(self.link, address)

    def ago(self, moment: str, age: str) -> str:
        return moment if self.as_of else f"{age} ago"

    def until(self, moment: str, left: str) -> str:
        return moment if self.as_of else left


def opened(request: Request) -> Opened:
    found: Opened = request.app.state.opened
    return found


def code(request: Request) -> Code:
    found: Code = request.app.state.code
    return found


def page(request: Request, template: str, view: Any, *, status: int = 200, live: Live | None = None) -> HTMLResponse:
    """Render `template` with `view`; it may block, so handlers are plain functions, which run in a thread."""
    shell: Shell = getattr(request.state, "shell", None) or _served(request, live)
    return HTMLResponse(_TEMPLATES.get_template(template).render(view=view, shell=shell), status)


def _served(request: Request, live: Live | None) -> Shell:
    every = opened(request)
    return Shell(_waiting(every), request.state.csrf, within(request.scope), link_of(request), _absent(every), live)


def segment(text: str) -> str:
    """`text` as part of a path; a `/` in it stays one, as in keys."""
    return quote(text, safe="/", errors="replace")


def _command(words: Sequence[str]) -> str:
    return command_line(*words)


def pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def since(moment: str | None, now: datetime) -> str:
    """How long `moment` lies before `now`; "" when it is unknown."""
    return lasting((now - parse_time(moment)).total_seconds()) if moment else ""


def took(began: str | None, ended: str | None, now: datetime) -> str:
    """How long something took, or has taken so far; "" when it is not known when it began."""
    if not began:
        return ""
    if not ended:
        return f"{since(began, now)} so far"
    return duration((parse_time(ended) - parse_time(began)).total_seconds())


def until(moment: str | None, now: datetime) -> str:
    """How long it is until `moment`, as `in 3 h`, or `expired`; "" when there is none."""
    if not moment:
        return ""
    left = (parse_time(moment) - now).total_seconds()
    return f"in {lasting(left)}" if left > 0 else "expired"


def _waiting(every: Opened) -> int:
    total = 0
    for workspace in every.every:
        try:
            workspace.refresh()
            total += len(workspace.queue.open_questions())
        except HermesError:
            # The page itself says what is wrong with this database; the count is an ornament.
            continue
    return total


def _absent(every: Opened) -> tuple[str, ...]:
    try:
        return tuple(filter(None, map(missing, every.every)))
    except HermesError:
        return ()


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"markdown": markdown, "pretty": pretty, "segment": segment, "command": _command}
    return made


_TEMPLATES = _environment()
