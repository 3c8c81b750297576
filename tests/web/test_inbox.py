"""The inbox: what waits, the oldest first, narrowed by what a reader asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import SHIP, Desk, person
from tests.web.browser import app_of, broken_desk, browser, link, listed, waiting_desk


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = waiting_desk(tmp_path)
    made.clock.advance(3600)
    made.start("later")
    made.ask("legal/ok", "later", expires=7200)
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def test_questions_stand_in_the_order_they_were_asked_with_age_and_expiry(client: TestClient) -> None:
    assert listed(client, "/") == ["/reviews/wf/ok", "/reviews/later/legal/ok"]
    page = client.get("/").text
    assert "1 h ago" in page
    assert ">in 2 h</time>" in page


def test_their_number_stands_in_the_title_of_every_page(made: Desk, client: TestClient) -> None:
    assert "<title>(2) Inbox" in client.get("/").text
    assert "<title>(2) " in client.get("/reviews/wf/ok").text
    made.workspace.answer("wf", "ok", SHIP, person())
    assert "<title>(1) Inbox" in client.get("/").text


def test_it_is_narrowed_by_workflow_person_and_state(made: Desk, client: TestClient) -> None:
    made.workspace.answer("wf", "ok", SHIP, person())
    assert listed(client, "/", state="completed") == ["/reviews/wf/ok"]
    assert listed(client, "/", state="all") == ["/reviews/wf/ok", "/reviews/later/legal/ok"]
    assert listed(client, "/", workflow="flow.py:launch") == ["/reviews/later/legal/ok"]
    for nobody in ({"workflow": "other"}, {"person": "ana"}, {"state": "<b>"}):
        assert listed(client, "/", **nobody) == []


def test_an_empty_inbox_says_so(made: Desk, client: TestClient) -> None:
    made.workspace.answer("wf", "ok", SHIP, person())
    made.workspace.answer("later", "legal/ok", SHIP, person())
    page = client.get("/").text
    assert "Nothing waits for an answer" in page
    assert "<title>Inbox" in page


def test_a_long_list_comes_in_pages(made: Desk, client: TestClient) -> None:
    for number in range(120):
        made.ask(f"q{number:03}", "later")
    first = client.get("/", params={"workflow": "flow.py:launch"}).text
    assert first.count("data-item") == 100
    assert "122 in all" in first
    second = client.get(link(first, "next")).text
    assert second.count("data-item") == 22
    assert 'rel="prev"' in second
    assert 'rel="next"' not in second
    for wrong in ("0", "-1", "x", "9" * 30, "٣"):
        assert client.get("/", params={"page": wrong}).status_code == 200


def test_a_database_that_cannot_be_read_hides_no_other_question(made: Desk, tmp_path: Path) -> None:
    with browser(app_of(made, broken_desk(tmp_path))) as client:
        page = client.get("/").text
    assert "database default: the disk is gone" in page
    assert page.count("data-item") == 2


def test_a_run_that_two_databases_have_is_answered_in_neither(made: Desk, tmp_path: Path) -> None:
    with browser(app_of(made, waiting_desk(tmp_path))) as client:
        answer = client.get("/reviews/wf/ok")
        assert answer.status_code == 409
        assert "each have a run wf" in answer.text
        assert client.get("/reviews/later/legal/ok").status_code == 200
        assert client.get("/reviews/nothing/ok").status_code == 404
