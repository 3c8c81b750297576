"""Our pages as a tab of Hermes' dashboard: whom it lets in sees them, and answers in a name that it has checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk
from tests.hermes.place import Inside, inside
from tests.web.browser import fields_of, waiting_desk

from hermes_workflows.hermes_plugin.tab import METHODS, ROUTE, Tab
from hermes_workflows.web.opened import Opened

__all__ = ["inside"]

PLUGIN = "/api/plugins/hermes-workflows"
PAGES = f"{PLUGIN}/pages"
REVIEW = f"{PAGES}/reviews/wf/ok"


class OpenedTab(Tab):
    """A tab of a workspace in memory."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._opened = Opened(desk.workspace.registry, [desk.workspace])


class LogIn:
    """What Hermes has found out of who asks, as it hands it to what it calls."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            user = dict(scope["headers"]).get(b"x-user", b"").decode()
            scope["state"] = {"session": SimpleNamespace(user_id=user, provider="github")} if user else {}
        await self._app(scope, receive, send)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@contextmanager
def hermes(desk: Desk, **headers: str) -> Iterator[TestClient]:
    host = Starlette(
        routes=[Route(PLUGIN + ROUTE, OpenedTab(desk), methods=list(METHODS))], middleware=[Middleware(LogIn)]
    )
    base = "https://hermes.example"
    with TestClient(host, base_url=base, client=("10.0.0.9", 5), follow_redirects=False, headers=headers) as client:
        yield client


def send(client: TestClient, form: dict[str, str] | None = None, **headers: str) -> Any:
    given = (
        {**fields_of(client.get(REVIEW).text), "f/action": "approve", "f/feedback": "Good."} if form is None else form
    )
    return client.post(REVIEW, data=given, headers={"Origin": str(client.base_url).rstrip("/"), **headers})


def by(desk: Desk) -> Any:
    response = desk.workspace.review("wf", "ok").response
    return None if response is None else response.execution.provenance


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/wf", "/reviews/wf/ok", "/workflows", "/static/style.css"])
def test_every_page_is_there_without_a_log_in_of_its_own(desk: Desk, path: str) -> None:
    with hermes(desk) as client:
        assert client.get(PAGES + path).status_code == 200


def test_every_link_of_a_page_stays_below_the_tab(desk: Desk) -> None:
    with hermes(desk) as client:
        links = re.findall(r'(?:href|action|src|data-check|data-events)="(/[^"]*)"', client.get(REVIEW).text)
    assert links
    assert [link for link in links if not link.startswith(PAGES)] == []


def test_the_tab_without_its_slash_leads_there(desk: Desk) -> None:
    with hermes(desk) as client:
        assert client.get(PAGES).headers["location"] == f"{PAGES}/"


def test_who_is_logged_in_answers_as_a_person(desk: Desk) -> None:
    with hermes(desk, **{"X-User": "ana"}) as client:
        assert send(client).headers["location"] == f"{REVIEW}?recorded"
    person = by(desk)
    assert (person.kind, person.by, person.channel) == ("human", "github:ana", "hermes-dashboard")
    assert person.verified == "session-token"


def test_on_hermes_loopback_no_person_is_proven(desk: Desk) -> None:
    with hermes(desk) as client:
        send(client)
    assert by(desk).kind == "manual"


def test_what_another_site_posts_is_refused(desk: Desk) -> None:
    with hermes(desk) as client:
        assert send(client, Origin="https://evil.example").status_code == 403
        assert send(client, {"f/action": "approve"}).status_code == 403
    assert by(desk) is None


def test_a_form_of_one_person_is_none_of_anothers(desk: Desk) -> None:
    with hermes(desk) as client:
        form = fields_of(client.get(REVIEW, headers={"X-User": "ana"}).text) | {
            "f/action": "approve",
            "f/feedback": "x",
        }
        assert send(client, form, **{"X-User": "bo"}).status_code == 403
        assert send(client, form, **{"X-User": "ana"}).status_code == 303
    assert by(desk).by == "github:ana"


def test_no_code_of_a_project_gets_into_hermes_process(inside: Inside) -> None:
    work = inside.work
    work.start()
    work.work()
    flow = work.root / "flows" / "launch.py"
    flow.write_text(f"open({str(work.root / 'imported')!r}, 'w')\n{flow.read_text()}")
    tab = Tab()
    with TestClient(Starlette(routes=[Route(PLUGIN + ROUTE, tab, methods=list(METHODS))])) as client:
        for path in ("/", "/workflows", "/runs/wf", "/reviews/wf/review_draft", "/actions/fork/wf"):
            assert client.get(PAGES + path).status_code == 200
        assert "not loaded in Hermes" in client.get(f"{PAGES}/workflows/launch").text
        form = fields_of(client.get(f"{PAGES}/actions/fork/wf").text)
        origin = {"Origin": str(client.base_url)}
        assert "not loaded in Hermes" in client.post(f"{PAGES}/actions/fork/wf", data=form, headers=origin).text
    tab.close()
    assert not (work.root / "imported").exists()


def test_a_tab_without_a_workspace_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    with TestClient(Starlette(routes=[Route(PLUGIN + ROUTE, Tab(), methods=list(METHODS))])) as client:
        answer = client.get(f"{PAGES}/")
    assert (answer.status_code, "registry" in answer.json()["error"]) == (503, True)
