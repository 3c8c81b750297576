"""A dashboard over a workspace in memory, and the browser of somebody who was let in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk, desk

from hermes_workflows.errors import StoreFailure
from hermes_workflows.web.app import create_app
from hermes_workflows.web.settings import WebSettings
from hermes_workflows.workspace import Surroundings

TOKEN = "the-token-of-this-start-0123456789"
BASE = "http://127.0.0.1:8765"
HERE = ("127.0.0.1", 50000)


def waiting_desk(folder: Path) -> Desk:
    """A run `wf` that asks `ok`."""
    made = desk(folder)
    made.start()
    made.ask("ok")
    return made


def broken_desk(folder: Path) -> Desk:
    """A database that cannot be read."""
    made = desk(folder)

    def fail(*_: object, **__: object) -> Any:
        raise StoreFailure("the disk is gone")

    made.workspace.refresh = fail  # type: ignore[method-assign]
    return made


def app_of(*desks: Desk, **settings: Any) -> Starlette:
    """A dashboard over these databases, with the registry and the clock of the first one."""
    made = desks[0]
    around = Surroundings(made.clock, {})
    given = WebSettings(made.workspace.registry, (), around, TOKEN, port=8765, by="ana", kind="human")
    # A test's client reads a stream to its end.
    settings = {"look_seconds": 0.01, "stream_seconds": 0.0} | settings
    return create_app(replace(given, **settings), [each.workspace for each in desks])


@contextmanager
def browser(app: Starlette, *, entered: bool = True, base: str = BASE, peer: Any = HERE) -> Iterator[TestClient]:
    """`entered` says that the printed address has been opened in it."""
    with TestClient(app, base_url=base, client=peer, follow_redirects=False) as client:
        if entered:
            assert client.get(f"/enter?token={TOKEN}").status_code == 200
        yield client


def listed(client: TestClient, path: str, **query: str) -> list[str]:
    """Where the items of a list lead, in their order."""
    found = re.findall(r'href="([^"]+)" data-item', client.get(path, params=query).text)
    return [unescape(href) for href in found]


def link(page: str, rel: str) -> str:
    """The one address that the page gives this relation to."""
    (found,) = re.findall(rf'href="([^"]+)" rel="{rel}"', page)
    return unescape(found)


def csrf_in(page: str) -> str:
    found = re.search(r'<meta name="csrf" content="([0-9a-f]+)">', page)
    assert found
    return found[1]


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the page's forms."""
    inputs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {unescape(name): unescape(value) for name, value in inputs}


def post(client: TestClient, path: str, form: dict[str, Any], **headers: str) -> Any:
    """As a browser posts a form of a page of ours."""
    marked = {"_csrf": csrf_in(client.get("/").text), **form}
    return client.post(path, data=marked, headers={"Origin": str(client.base_url), **headers})
