"""The list of runs: the newest first, with state, age, duration and cost, in pages, and found by how an id begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk, desk
from tests.web.browser import app_of, browser

from hermes_workflows.errors import StoreFailure
from hermes_workflows.store.index import Refreshed
from hermes_workflows.web.app import create_app


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
    return re.findall(r'href="/runs/([^"]+)" data-item', client.get("/runs", params=query).text)


def test_runs_stand_with_state_age_and_duration(client: TestClient) -> None:
    assert listed(client) == ["second", "first"]
    page = client.get("/runs").text
    assert '<span class="state waiting">Waiting on ' in page
    assert "took 5 min<" in page
    assert "took 4 min so far" in page
    assert ">4 min ago</time>" in page


def test_they_are_narrowed_by_status(client: TestClient) -> None:
    assert listed(client, status="completed") == ["first"]
    assert listed(client, status="failed") == []
    assert listed(client, status="<b>") == ["second", "first"]


def test_one_is_found_by_the_beginning_of_its_id_or_by_a_commit(made: Desk, client: TestClient) -> None:
    head = made.ledger.head("first")
    assert head is not None
    assert listed(client, find="sec") == listed(client, find="second") == ["second"]
    assert listed(client, find=head.tip) == ["first"]
    assert listed(client, find="nothing") == listed(client, find="sec", status="completed") == []


def test_a_long_list_comes_in_pages(made: Desk, client: TestClient) -> None:
    for number in range(100):
        made.start(f"run-{number:03}")
    first = client.get("/runs").text
    assert first.count("data-item") == 50
    assert 'rel="prev"' not in first
    (after,) = re.findall(r'href="([^"]+)" rel="next"', first)
    (last,) = re.findall(r'href="([^"]+)" rel="next"', client.get(unescape(after)).text)
    third = client.get(unescape(last)).text
    assert third.count("data-item") == 2
    assert 'rel="next"' not in third
    for wrong in ("0", "-1", "x", "9" * 30, "٣"):
        assert client.get("/runs", params={"page": wrong}).status_code == 200


def test_what_a_run_says_of_itself_is_text_and_nothing_else(made: Desk, client: TestClient) -> None:
    assert "<script>alert" not in client.get("/runs", params={"find": '"><script>alert(1)</script>'}).text


def test_a_database_that_cannot_be_read_hides_no_run_of_another(made: Desk, tmp_path: Path) -> None:
    broken = desk(tmp_path)
    broken.workspace.refresh = _fail  # type: ignore[method-assign]
    with browser(create_app(app_of(made).state.settings, [broken.workspace, made.workspace])) as client:
        assert listed(client) == ["second", "first"]
        assert "database default: the disk is gone" in client.get("/runs").text


def test_runs_of_several_databases_stand_in_one_order_across_pages(made: Desk, tmp_path: Path) -> None:
    other = desk(tmp_path)
    for number in range(60):
        (made if number % 2 else other).start(f"run-{number:03}")
    with browser(create_app(app_of(made).state.settings, [other.workspace, made.workspace])) as client:
        assert len(set(listed(client) + listed(client, page="2"))) == 62
        assert listed(client, find="first") == ["first"]


def _fail() -> Refreshed:
    raise StoreFailure("the disk is gone")
