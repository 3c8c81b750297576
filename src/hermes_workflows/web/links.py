"""Where links lead: pages name an address within the dashboard (`/runs/x`), and one function says what is written.

Served under a prefix that is the prefix and the address; in an exported folder it is a file beside the page.
Templates write `<a{{ shell.href(address) }}>`, and `shell.link(address)` where no link is, as in a form's `action`.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import Scope

# From an address to what a browser is to be told; "" for what leads nowhere from here.
Link = Callable[[str], str]


def served(root: str) -> Link:
    """Links of a dashboard that is mounted at `root`: "" for the whole of a server."""
    prefix = quote(root.rstrip("/"))
    return lambda address: f"{prefix}{address}"


def within(scope: Scope) -> str:
    """The path of a request without what the dashboard is mounted at; "" for that place without its slash."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(root) :] if path == root or path.startswith(f"{root}/") else path


def link_of(request: Request) -> Link:
    """As the gate has put it there: where files are mounted, the request's own root is another one by now."""
    link: Link = request.state.link
    return link


def redirect(request: Request, address: str) -> RedirectResponse:
    """After what was posted: the page to look at now."""
    return RedirectResponse(link_of(request)(address), 303)


def href(link: Link, address: str) -> Markup:
    """The attribute of a link; none, so that its text stays text, for what leads nowhere."""
    found = link(address) if address else ""
    return Markup(f' href="{escape(found)}"') if found else Markup()
