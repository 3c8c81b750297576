"""Below a prefix everything works as it does at the root: each link of each page leads to a page below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk
from tests.web.browser import BASE, HERE, TOKEN, app_of, csrf_in, fields_of, waiting_desk
from tests.web.calling import ran
from tests.web.test_artifacts import PNG, keep
from tests.web.walking import links_in

from hermes_workflows.web.rendering import HERE as WEB

_PREFIXES = ("/w", "/two parts/ü&\"'", "/workflows", "/static")
_NO_PAGES = ("nowhere", "static/nothing", "check/")


@dataclass(frozen=True)
class Visit:
    """A browser that has entered below `root`, an address as browsers write it, with a slash at its end."""

    client: TestClient
    root: str

    def get(self, path: str) -> Any:
        return self.client.get(f"{self.root}{path}")

    def post(self, path: str, **form: str) -> Any:
        marked = {"_csrf": csrf_in(self.get("").text), **form}
        return self.client.post(f"{self.root}{path}", data=marked, headers={"Origin": BASE})


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = waiting_desk(tmp_path)
    ran(made, "draft/write")
    keep(made, "a.png", PNG, "image/png")
    return made


@pytest.fixture(params=_PREFIXES)
def visit(made: Desk, request: Any) -> Iterator[Visit]:
    """Ours in another application, which has it below a prefix and never tells it that it starts."""
    host = Starlette(routes=[Mount(request.param, app_of(made))])
    with TestClient(host, base_url=BASE, client=HERE, follow_redirects=False) as client:
        visit = Visit(client, f"{BASE}{quote(request.param)}/")
        assert visit.get(f"enter?token={TOKEN}").status_code == 200
        yield visit


def test_each_link_of_each_page_leads_to_a_page_below_the_prefix(visit: Visit) -> None:
    seen: set[str] = set()
    todo = [f"{visit.root}{path}" for path in ("", "enter", "nowhere", "static/nothing")]
    while todo:
        if (address := todo.pop()) in seen:
            continue
        seen.add(address)
        answer = visit.client.get(address)
        assert answer.status_code == 200 or address[len(visit.root) :].startswith(_NO_PAGES), address
        if answer.headers.get("content-type", "").startswith("text/html"):
            todo += (found := links_in(address, answer.text))
            assert [each for each in found if not each.startswith(visit.root)] == []
    for part in ("runs/wf", "calls/wf/", "reviews/wf/ok", "static/page.js", "events?run=wf", "artifacts/", "actions/"):
        assert any(each.startswith(f"{visit.root}{part}") for each in seen), part


def test_what_is_posted_leads_back_below_the_prefix(made: Desk, visit: Visit) -> None:
    path = visit.root.removeprefix(BASE)
    assert visit.post("actions/pause/wf").headers["location"] == f"{path}runs/wf?done=pause"
    page = visit.get("reviews/wf/ok").text
    told = visit.post("reviews/wf/ok", **fields_of(page), **{"f/action": "approve", "f/feedback": "fine"})
    assert told.headers["location"] == f"{path}reviews/wf/ok?recorded"
    assert not made.workspace.summary("wf").open_reviews


def test_the_cookie_is_for_what_lies_below_the_prefix_alone(visit: Visit) -> None:
    assert [cookie.path for cookie in visit.client.cookies.jar] == [visit.root.removeprefix(BASE)]


def test_the_gate_stands_before_every_route_below_the_prefix_too(made: Desk, visit: Visit) -> None:
    visit.client.cookies.clear()
    for route in app_of(made).routes:
        path = re.sub(r"{[^}]+}", "x", getattr(route, "path", "")).lstrip("/")
        assert visit.get(path).status_code == 401
        assert visit.client.get(f"{visit.root}{path}", headers={"Host": "evil.example"}).status_code == 400
        answer = visit.client.post(f"{visit.root}{path}", data={}, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
        assert answer.headers["x-frame-options"] == "DENY"


def test_the_page_that_one_is_on_is_marked(visit: Visit) -> None:
    assert re.findall(r'aria-current="page">(\w+)', visit.get("runs").text) == ["Runs"]


def test_of_its_own_prefix_the_whole_path_is_passed_on(made: Desk) -> None:
    with TestClient(app_of(made, root_path="/w"), base_url=BASE, client=HERE, follow_redirects=False) as client:
        assert client.get(f"/w/enter?token={TOKEN}").status_code == 200
        assert client.get("/w/runs/wf").status_code == 200
        assert client.get("/w").headers["location"] == "/w/"
        assert "set-cookie" not in client.get("/w").headers


def test_no_template_writes_an_address_by_itself() -> None:
    for template in sorted((WEB / "templates").glob("*.html")):
        written = re.findall(r'(?<![\w-])(?:href|src|action|data-events|data-check)="([^"]*)', template.read_text())
        assert [each for each in written if not each.startswith(("{{ shell.link(", "#"))] == [], template.name
