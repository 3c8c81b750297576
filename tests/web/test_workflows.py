"""What can be started: the registry's workflows, how they have gone, their code, and a form that starts one run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import FLOW, Desk, desk
from tests.web.browser import app_of, browser, post
from tests.web.calling import ran

REGISTRY = """{"workflows": {
  "launch": {"workflow_ref": "flow.py:launch", "description": "Launches <it>."},
  "plain": {"workflow_ref": "flow.py:plain"},
  "gone": {"workflow_ref": "gone.py:flow"}
}}"""


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return desk(tmp_path, REGISTRY)


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def test_the_catalog_says_how_runs_have_gone(made: Desk, client: TestClient) -> None:
    for number, status in enumerate(("completed", "failed", "completed")):
        made.start(f"run-{number}")
        ran(made, "draft", f"run-{number}")
        made.clock.advance(60)
        made.end(f"run-{number}", status)
    made.start("run-3")
    page = client.get("/workflows").text
    for fact in ("66 % of 3 ended as completed", "1 not ended", "half of the newest 3 within 1 min"):
        assert f"<span>{fact}</span>" in page
    assert re.search(r"<span>the newest 4 used [^<]*1\.5000 USD</span>", page)
    assert '<a href="/runs?workflow=flow.py%3Alaunch">4 runs</a>' in page
    assert "Launches &lt;it&gt;." in page
    assert re.findall(r'href="(/workflows/[^"]+)"', page) == [
        "/workflows/launch",
        "/workflows/plain",
        "/workflows/gone",
    ]


def test_the_form_is_made_of_the_input_type_and_starts_a_run(made: Desk, client: TestClient) -> None:
    page = client.get("/workflows/launch").text
    assert 'name="f/topic"' in page
    assert "return inputs.topic" in page
    (proposed,) = re.findall(r'name="_id" value="(launch-[^"]+)"', page)
    answer = post(client, "/workflows/launch", {"_id": proposed, "f/topic": "cats", "f/risk": "3"})
    assert answer.status_code == 303
    assert "is recorded, and queued" in client.get(answer.headers["location"]).text
    (started, *_) = made.receipts(proposed)
    assert started.request.input == {"topic": "cats", "risk": 3}
    assert made.queued() == [proposed]


def test_a_form_that_is_sent_twice_starts_one_run(made: Desk, client: TestClient) -> None:
    form = {"_id": "mine", "f/topic": "cats", "f/risk": "1"}
    assert [post(client, "/workflows/launch", form).status_code for _ in range(2)] == [303, 303]
    assert len(made.workspace.runs()) == 1
    answer = post(client, "/workflows/launch", form | {"f/topic": "dogs"})
    assert answer.status_code == 409
    assert "dogs" in answer.text


def test_an_input_is_checked_while_it_is_typed_and_starts_nothing(made: Desk, client: TestClient) -> None:
    assert 'data-check="/workflows/launch/check"' in client.get("/workflows/launch").text
    wrong = post(client, "/workflows/launch/check", {"f/topic": "cats", "f/risk": "high"}).json()
    assert [error["field"] for error in wrong] == ["/risk"]
    assert post(client, "/workflows/launch/check", {"f/topic": "cats", "f/risk": "3"}).json() == []
    assert post(client, "/workflows/plain/check", {}).json() == []
    assert "data-check" not in client.get("/workflows/plain").text
    assert made.workspace.runs() == []


def test_an_input_that_does_not_fit_starts_nothing_and_stays_in_the_form(made: Desk, client: TestClient) -> None:
    answer = post(client, "/workflows/launch", {"_id": "mine", "f/topic": "c<ats", "f/risk": "high"})
    assert answer.status_code == 422
    assert "Nothing was started" in answer.text
    assert "c&lt;ats" in answer.text
    assert 'value="high"' in answer.text
    assert made.workspace.runs() == []


def test_a_workflow_without_an_input_has_one_button(made: Desk, client: TestClient) -> None:
    assert 'name="f/' not in client.get("/workflows/plain").text
    assert post(client, "/workflows/plain", {"_id": "bare"}).status_code == 303
    assert made.workspace.summary("bare").workflow == "flow.py:plain"


def test_an_input_without_fields_is_not_called_an_answer(made: Desk, client: TestClient) -> None:
    loose = "\n@workflow\nasync def plain(inputs: dict) -> None:\n    return None\n"
    (made.workspace.root / "flow.py").write_text(FLOW + loose)
    page = client.get("/workflows/plain").text
    assert '<label for="f">Input' in page
    assert "Answer" not in page


def test_only_what_the_registry_names_is_started(made: Desk, client: TestClient) -> None:
    for alias in ("flow.py:launch", "launhc", "os:system"):
        assert client.get(f"/workflows/{alias}").status_code == 404
        assert post(client, f"/workflows/{alias}", {}).status_code == 404
    assert "launch" in client.get("/workflows/launhc").text
    assert made.workspace.runs() == []


def test_code_that_is_gone_is_said(client: TestClient) -> None:
    answer = client.get("/workflows/gone")
    assert answer.status_code == 404
    assert "gone.py" in answer.text


def test_checking_starts_nothing_and_is_what_enter_does(made: Desk, client: TestClient) -> None:
    buttons = re.findall(r"<button([^>]*)>", client.get("/workflows/launch").text)
    assert 'name="_check"' in buttons[0]
    form = {"_id": "mine", "_check": "1", "f/topic": "cats", "f/risk": "1"}
    assert "This input fits. Nothing is started yet." in post(client, "/workflows/launch", form).text
    assert post(client, "/workflows/launch", form | {"f/risk": "high"}).status_code == 422
    assert made.workspace.runs() == []
