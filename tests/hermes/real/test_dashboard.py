"""The tab in the real `hermes dashboard`: listed, its files served, its pages behind Hermes' own log-in."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pytest
from tests.hermes.real.client import PROGRAM, Client
from tests.web.real.conftest import chromium  # noqa: F401  # a fixture

PAGES = "/api/plugins/hermes-workflows/pages"
REVIEW = f"{PAGES}/reviews/wf/review_draft"


class _Stay(HTTPRedirectHandler):
    """Nothing is followed: where an answer leads is part of what is looked at."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Dashboard:
    """One that listens; `token` is what its page has for its own requests."""

    address: str
    token: str = ""

    def ask(self, path: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str, Any]:
        data = None if form is None else urlencode(form).encode()
        own = {"X-Hermes-Session-Token": self.token} if self.token else {}
        request = Request(self.address + path, data, {"Origin": self.address, **own, **headers})
        try:
            with build_opener(_Stay).open(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except HTTPError as error:
            return error.code, error.read().decode(), error.headers


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of its form."""
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))


@pytest.fixture
def dashboard(client: Client) -> Iterator[Dashboard]:
    """Started by a person who has opened its page, with a question that waits."""
    client.work.start()
    client.work.work()
    command = [str(PROGRAM), "dashboard", "--port", "0", "--no-open", "--skip-build", "--isolated"]
    process = subprocess.Popen(
        command,
        cwd=client.work.root,
        env=client.work.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"DASHBOARD_READY port=(\d+)", line):
                break
        else:
            raise AssertionError("".join(said))
        made = Dashboard(f"http://127.0.0.1:{found[1]}")
        token = re.search(r'__HERMES_SESSION_TOKEN__\s*=\s*"([^"]+)"', made.ask("/")[1])
        assert token
        made.token = token[1]
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_tab_is_listed_and_its_script_needs_no_build(dashboard: Dashboard) -> None:
    every = json.loads(dashboard.ask("/api/dashboard/plugins")[1])
    (ours,) = [each for each in every if each["name"] == "hermes-workflows"]
    assert (ours["label"], ours["tab"]["path"], ours["has_api"]) == ("Workflows", "/workflows", True)
    status, script, headers = dashboard.ask(f"/dashboard-plugins/hermes-workflows/{ours['entry']}")
    assert (status, headers.get_content_type()) == (200, "application/javascript")
    assert 'register("hermes-workflows"' in script


def test_nothing_of_it_is_shown_or_taken_without_hermes_log_in(dashboard: Dashboard) -> None:
    stranger = Dashboard(dashboard.address)
    for path in ("", "/", "/runs", "/reviews/wf/review_draft", "/static/style.css", "/events"):
        assert stranger.ask(PAGES + path)[0] == 401
    form = fields_of(dashboard.ask(REVIEW)[1]) | {"f/action": "approve"}
    assert stranger.ask(REVIEW, form)[0] == 401
    assert dashboard.ask(REVIEW, form, Origin="https://evil.example")[0] == 403
    assert dashboard.ask(f"{PAGES}/", Host="evil.example")[0] == 400


def test_a_question_is_answered_in_it_and_the_run_goes_on(dashboard: Dashboard, client: Client) -> None:
    assert "Ship it?" in dashboard.ask(f"{PAGES}/")[1]
    form = fields_of(dashboard.ask(REVIEW)[1]) | {"f/action": "approve", "f/feedback": ""}
    status, _, headers = dashboard.ask(REVIEW, form)
    assert (status, headers["location"]) == (303, f"{REVIEW}?recorded")
    assert "The answer is recorded." in dashboard.ask(headers["location"])[1]
    by = client.work.run("review", "show", "wf", "review_draft").json["provenance"]
    assert (by["channel"], by["kind"], by["verified"]) == ("hermes-dashboard", "manual", "session-token")
    client.work.work()
    assert client.work.run("status", "wf").json["result"] == "Draft of docs: approve"


def test_a_run_is_started_and_forked_in_it(dashboard: Dashboard, client: Client) -> None:
    form = fields_of(dashboard.ask(f"{PAGES}/workflows/launch")[1]) | {"_id": "two", "f/topic": "docs"}
    status, _, headers = dashboard.ask(f"{PAGES}/workflows/launch", form)
    assert (status, headers["location"]) == (303, f"{PAGES}/runs/two?done=start")
    form = fields_of(dashboard.ask(f"{PAGES}/actions/fork/wf")[1]) | {"new": "three"}
    status, _, headers = dashboard.ask(f"{PAGES}/actions/fork/wf", form)
    assert (status, headers["location"]) == (303, f"{PAGES}/runs/three?done=fork")
    assert {each["workflow_id"] for each in client.work.run("list").json} == {"wf", "two", "three"}


def test_a_person_finds_the_tab_and_answers_in_it(
    dashboard: Dashboard,
    client: Client,
    chromium: Any,  # noqa: F811  # the fixture, by its name
) -> None:
    context = chromium.new_context(base_url=dashboard.address)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto("/workflows")
    page.click("text=Ship it?")
    page.click("button:text-is('approve')")
    page.wait_for_selector("text=The answer is recorded.")
    context.close()
    assert complaints == []
    assert client.work.run("review", "show", "wf", "review_draft").json["answer"]["action"] == "approve"
