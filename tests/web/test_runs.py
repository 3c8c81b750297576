"""The list of runs: the newest first, with state, age, duration and cost, in pages, narrowed and searched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk, desk, person
from tests.web.browser import app_of, broken_desk, browser, link
from tests.web.browser import listed as items


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path)
    made.start("first")
    made.clock.advance(60)
    made.start("second")
    made.ask("ok", "second")
    made.clock.advance(240)
    made.end("first")
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def listed(client: TestClient, **query: str) -> list[str]:
    return [href.removeprefix("/runs/") for href in items(client, "/runs", **query)]


def test_runs_stand_with_state_age_and_duration(client: TestClient) -> None:
    assert listed(client) == ["second", "first"]
    page = client.get("/runs").text
    assert '<span class="state waiting">Waiting on ' in page
    assert "took 5 min<" in page
    assert "took 4 min so far" in page
    assert ">4 min ago</time>" in page


def test_they_are_narrowed_by_state(made: Desk, client: TestClient) -> None:
    made.start("third")
    assert listed(client, state="completed") == ["first"]
    assert listed(client, state="waiting") == ["second"]
    assert listed(client, state="queued") == ["third"]
    assert listed(client, state="failed") == []
    assert listed(client, state="<b>") == ["third", "second", "first"]


def test_a_run_that_nobody_moves_is_among_the_stuck_ones(made: Desk, client: TestClient) -> None:
    made.start("third")
    made.clock.advance(3600)
    assert listed(client, state="stuck") == ["third"]
    assert listed(client, state="queued") == []


def test_they_are_narrowed_by_workflow_and_origin(made: Desk, client: TestClient) -> None:
    made.workspace.start("flow.py:plain", run_id="other")
    assert listed(client, workflow="flow.py:plain") == ["other"]
    assert listed(client, workflow="flow.py:launch", state="completed") == ["first"]
    assert listed(client, workflow="gone.py:flow") == listed(client, source="first") == []
    assert "<option selected>gone.py:flow</option>" in client.get("/runs", params={"workflow": "gone.py:flow"}).text


def test_they_are_found_by_words_of_id_input_or_reason_and_by_a_commit(made: Desk, client: TestClient) -> None:
    head = made.ledger.head("first")
    assert head is not None
    made.start("third", topic="Green tea")
    made.workspace.control("third", "cancel", reason="Out of leaves", by=person())
    assert listed(client, find="ECO") == ["second"]
    assert listed(client, find="tea green") == listed(client, find="leaves") == ["third"]
    assert listed(client, find=head.tip) == listed(client, find=head.tip[:10]) == ["first"]
    assert listed(client, find="nothing") == listed(client, find="sec", state="completed") == []


def test_a_long_list_comes_in_pages(made: Desk, client: TestClient) -> None:
    for number in range(100):
        made.start(f"run-{number:03}")
    first = client.get("/runs", params={"find": "docs"}).text
    assert first.count("data-item") == 50
    assert ">the newest</a>" not in first
    second = client.get(link(first, "next")).text
    made.clock.advance(1)
    made.start("one-more")
    third = client.get(link(second, "next")).text
    # What was started in between moves nothing from one page to another.
    assert [page.count("data-item") for page in (second, third)] == [50, 2]
    assert '<a href="/runs?find=docs">the newest</a>' in third
    assert 'rel="next"' not in third
    for wrong in (",", "x", ",x", "9" * 3000, "٣,", "a,b,c"):
        assert client.get("/runs", params={"after": wrong}).status_code == 200


def test_a_page_of_a_state_looks_at_so_many_runs_and_goes_on_where_it_ended(made: Desk, client: TestClient) -> None:
    for number in range(320):
        made.start(f"run-{number:03}")
    page = client.get("/runs", params={"state": "waiting"}).text
    assert page.count("data-item") == 0
    assert "Looked at 300 runs that have not ended" in page
    assert "second" in client.get(link(page, "next")).text


def test_what_a_run_says_of_itself_is_text_and_nothing_else(made: Desk, client: TestClient) -> None:
    assert "<script>alert" not in client.get("/runs", params={"find": '"><script>alert(1)</script>'}).text


def test_a_database_that_cannot_be_read_hides_no_run_of_another(made: Desk, tmp_path: Path) -> None:
    with browser(app_of(made, broken_desk(tmp_path))) as client:
        assert listed(client) == ["second", "first"]
        assert "database default: the disk is gone" in client.get("/runs").text


def test_runs_of_several_databases_stand_in_one_order_across_pages(made: Desk, tmp_path: Path) -> None:
    other = desk(tmp_path)
    for number in range(60):
        (made if number % 2 else other).start(f"run-{number:03}")
    with browser(app_of(made, other)) as client:
        second = client.get(link(client.get("/runs").text, "next")).text
        assert second.count("data-item") == 12
        assert set(re.findall(r"run-0[0-9]{2}", second)).isdisjoint(listed(client))
        assert listed(client, find="first") == ["first"]
