"""What people do with a run: a page that asks once more, one request, the command that does the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk
from tests.web.browser import app_of, browser, post, waiting_desk
from tests.web.calling import ran

from hermes_workflows.core.receipts import ControlReceipt, Receipt


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def controls(made: Desk) -> list[Receipt]:
    return [each for each in made.receipts() if isinstance(each, ControlReceipt)]


def offered(client: TestClient, run: str = "wf") -> list[str]:
    return re.findall(r'<a class="button" href="/actions/([a-z]+)/', client.get(f"/runs/{run}").text)


def test_a_run_offers_what_can_be_done_with_it(made: Desk, client: TestClient) -> None:
    assert offered(client) == ["pause", "cancel", "fork"]
    post(client, "/actions/pause/wf", {"reason": "lunch"})
    assert offered(client) == ["resume", "cancel", "fork"]
    made.end(status="failed")
    assert offered(client) == ["retry", "fork"]


def test_looking_at_an_action_does_nothing(made: Desk, client: TestClient) -> None:
    before = made.receipts()
    for verb in ("cancel", "pause", "resume", "fork", "retry"):
        page = client.get(f"/actions/{verb}/wf").text
        assert f"<code data-copy>hermes-workflows {verb} wf" in page
    assert made.receipts() == before


def test_a_request_is_recorded_once_and_in_the_name_of_whoever_started_the_dashboard(
    made: Desk, client: TestClient
) -> None:
    form = {"reason": "too late", "by": "mallory", "kind": "agent"}
    answer = post(client, "/actions/cancel/wf", form)
    assert answer.status_code == 303
    assert "No runner is up" in client.get(answer.headers["location"]).text
    post(client, "/actions/cancel/wf", form)
    asked = [each for each in made.receipts() if each.status == "cancel"]
    assert len(asked) == 1
    assert asked[0].request["reason"] == "too late"
    by = asked[0].execution.provenance
    assert by is not None
    assert (by.by, by.kind, by.channel, by.verified) == ("ana", "human", "local-dashboard", "session-token")


def test_pause_and_resume_are_requests_to_the_run(made: Desk, client: TestClient) -> None:
    post(client, "/actions/pause/wf", {"reason": "lunch"})
    assert made.workspace.summary("wf").paused is not None
    post(client, "/actions/resume/wf", {})
    assert made.workspace.summary("wf").paused is None


def test_a_run_that_has_ended_is_not_cancelled(made: Desk, client: TestClient) -> None:
    made.end()
    answer = post(client, "/actions/cancel/wf", {"reason": "too <late>"})
    assert answer.status_code == 409
    assert "too &lt;late&gt;" in answer.text
    assert controls(made) == []


def test_a_fork_begins_a_run_and_leads_to_it(made: Desk, client: TestClient) -> None:
    (proposed,) = re.findall(r'name="new" value="([^"]+)"', client.get("/actions/fork/wf").text)
    assert proposed == "wf-fork-1"
    answer = post(client, "/actions/fork/wf", {"new": "other", "given": '{"topic": "cats"}'})
    assert answer.headers["location"] == "/runs/other?done=fork"
    page = client.get("/runs/other?done=fork").text
    assert "cats" in page
    assert '<li>fork <a href="/runs/wf">' in page
    assert '<a href="/runs/other">' in client.get("/runs/wf").text


@pytest.mark.parametrize(("given", "status"), [("{", 400), ('{"topic": 3}', 400)])
def test_an_input_that_does_not_fit_begins_nothing(made: Desk, client: TestClient, given: str, status: int) -> None:
    answer = post(client, "/actions/fork/wf", {"new": "other", "given": given})
    assert answer.status_code == status
    assert 'value="other"' in answer.text
    assert made.ledger.head("other") is None
    assert post(client, "/actions/fork/wf", {"new": "wf"}).status_code == 409


def test_a_retry_of_a_failed_run_is_a_fork_of_it(made: Desk, client: TestClient) -> None:
    made.end(status="failed")
    answer = post(client, "/actions/retry/wf", {})
    assert answer.headers["location"] == "/runs/wf-retry-1?done=retry"


def test_a_call_can_be_gone_back_to(made: Desk, client: TestClient) -> None:
    ran(made, "draft/write")
    assert 'href="/actions/fork/wf%40draft/write"' in client.get("/calls/wf/draft/write").text
    page = client.get("/actions/fork/wf@draft/write").text
    assert "hermes-workflows fork wf@draft/write --id wf-fork-1" in page


def test_what_is_no_action_or_no_run_is_said(client: TestClient) -> None:
    for path in ("/actions/burn/wf", "/actions/cancel/nowhere", "/actions/fork/wf@nowhere"):
        assert client.get(path).status_code == 404
        assert post(client, path, {}).status_code == 404
