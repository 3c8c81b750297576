"""Our pages as a tab of Hermes' dashboard: whom it lets in sees them, and answers in a name that it has checked."""

from __future__ import annotations

import os
import re
import sys
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
from tests.hermes.tabs import OpenedTab
from tests.web.browser import fields_of, waiting_desk

from hermes_workflows.hermes_plugin.tab import METHODS, ROUTE, Tab

__all__ = ["inside"]

PLUGIN = "/api/plugins/hermes-workflows"
PAGES = f"{PLUGIN}/pages"
REVIEW = f"{PAGES}/reviews/wf/ok"


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


@contextmanager
def tab_of_disk() -> Iterator[TestClient]:
    """The tab of the workspace that Hermes works in, in a browser that posts forms of its pages."""
    tab = Tab()
    with TestClient(Starlette(routes=[Route(PLUGIN + ROUTE, tab, methods=list(METHODS))])) as client:
        client.headers["Origin"] = str(client.base_url)
        yield client
    tab.close()


def press(client: TestClient, path: str, **fields: str) -> Any:
    """The page that somebody sees who fills in the form of one, and sends it."""
    page = client.get(PAGES + path).text
    shown = dict(re.findall(r'<input id="[^"]*" name="([^"]+)" value="([^"]*)"', page))
    return client.post(PAGES + path, data={**shown, **fields_of(page), **fields})


def test_a_run_is_started_and_forked_in_it(inside: Inside) -> None:
    with tab_of_disk() as client:
        assert "Its code" in client.get(f"{PAGES}/workflows/launch").text
        begun = press(client, "/workflows/launch", **{"_id": "wf", "f/topic": "docs"})
        assert (begun.status_code, begun.url.path) == (200, f"{PAGES}/runs/wf")
        inside.work.work()
        forked = press(client, "/actions/fork/wf", new="two", given='{"topic": "news"}')
        assert (forked.status_code, forked.url.path) == (200, f"{PAGES}/runs/two")
    assert inside.work.run("show", "two").json["input"]["topic"] == "news"


@pytest.mark.parametrize(
    ("path", "fields", "status", "said"),
    [
        ("/workflows/launch", {"_id": "wf", "f/topic": "other"}, 409, "exists with another input"),
        ("/workflows/launch", {"_id": "../x", "f/topic": "x"}, 400, "run id"),
        ("/workflows/nothing", {}, 404, "has no workflow"),
        ("/actions/fork/wf", {"new": "wf"}, 409, "exists already"),
        ("/actions/fork/wf", {"new": "--db=x"}, 400, "run id"),
        ("/actions/retry/wf", {}, 409, "waiting"),
    ],
)
def test_a_start_that_cannot_be_says_what_is_wrong(
    inside: Inside, path: str, fields: dict[str, str], status: int, said: str
) -> None:
    inside.work.start()
    inside.work.work()
    with tab_of_disk() as client:
        answer = press(client, path, **fields) if "nothing" not in path else client.get(PAGES + path)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


def test_a_workflow_that_cannot_be_loaded_says_why_in_it(inside: Inside) -> None:
    (inside.work.root / "flows" / "launch.py").write_text("import nothing_of_that_name")
    with tab_of_disk() as client:
        answer = client.get(f"{PAGES}/workflows/launch")
    assert (answer.status_code, "nothing_of_that_name" in answer.text) == (400, True)


def test_what_the_registry_has_since_is_there_without_a_new_start_of_hermes(inside: Inside) -> None:
    registry = inside.work.root / ".hermes" / "workflows.registry.json"
    before = registry.read_text()
    with tab_of_disk() as client:
        assert client.get(f"{PAGES}/workflows/again").status_code == 404
        registry.write_text(before.replace('"launch"', '"again"', 1))
        assert client.get(f"{PAGES}/workflows/again").status_code == 200


def test_no_code_of_a_project_gets_into_hermes_process(inside: Inside) -> None:
    work = inside.work
    work.start()
    work.work()
    flow, seen = work.root / "flows" / "launch.py", work.root / "imported"
    flow.write_text(f"import os\nprint(os.getpid(), file=open({str(seen)!r}, 'a'))\n{flow.read_text()}")
    with tab_of_disk() as client:
        for path in ("/", "/workflows", "/runs/wf", "/reviews/wf/review_draft", "/actions/fork/wf"):
            assert client.get(PAGES + path).status_code == 200
        assert not seen.exists()
        press(client, "/workflows/launch", **{"_id": "new", "f/topic": "docs"})
        press(client, "/actions/fork/wf", new="two")
    assert len(seen.read_text().split()) >= 3
    assert str(os.getpid()) not in seen.read_text().split()


def test_a_tab_without_what_its_pages_are_made_with_says_so(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hermes_workflows.web.app", None)
    with tab_of_disk() as client:
        answer = client.get(f"{PAGES}/")
    assert (answer.status_code, "hermes doctor" in answer.json()["hint"]) == (503, True)


def test_a_tab_without_a_workspace_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    with TestClient(Starlette(routes=[Route(PLUGIN + ROUTE, Tab(), methods=list(METHODS))])) as client:
        answer = client.get(f"{PAGES}/")
    assert (answer.status_code, "registry" in answer.json()["error"]) == (503, True)
