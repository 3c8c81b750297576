"""Pages that keep themselves up to date: one event for each change, and none that is missed between two streams."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import SHIP, Desk, person
from tests.web.browser import app_of, browser, waiting_desk
from tests.web.calling import ran

from hermes_workflows.web.live import Looks, stream, ticks


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def address(client: TestClient, page: str) -> str:
    (found,) = re.findall(r'data-events="([^"]+)"', client.get(page).text)
    return unescape(found)


@pytest.mark.parametrize("page", ["/", "/runs", "/runs/wf"])
def test_a_page_is_told_once_that_it_is_out_of_date(made: Desk, client: TestClient, page: str) -> None:
    events = address(client, page)
    assert "event: changed" not in client.get(events).text
    made.workspace.answer("wf", "ok", SHIP, person())
    answer = client.get(events)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("event: changed") == 1
    assert "event: changed" not in client.get(address(client, page)).text


def test_a_browser_that_comes_back_says_what_it_had_last(made: Desk, client: TestClient) -> None:
    events = address(client, "/runs/wf")
    ran(made, "draft")
    (last,) = re.findall("id: (.+)", client.get(events).text)
    assert "event: changed" not in client.get(events, headers={"Last-Event-ID": last}).text
    ran(made, "final")
    assert "event: changed" in client.get(events, headers={"Last-Event-ID": last}).text


def test_the_same_version_is_told_by_another_process(made: Desk, client: TestClient) -> None:
    with browser(app_of(made)) as other:
        assert address(other, "/runs/wf") == address(client, "/runs/wf")


def test_what_has_ended_or_passed_needs_no_stream(made: Desk, client: TestClient) -> None:
    head = made.ledger.head("wf")
    assert head is not None
    made.end()
    for page in ("/runs/wf", f"/runs/{head.tip}"):
        assert "data-events" not in client.get(page).text


def test_a_stream_of_a_run_that_is_not_there_is_refused(client: TestClient) -> None:
    assert client.get("/events?run=nowhere").status_code == 404


def test_each_change_while_it_is_open_is_one_event() -> None:
    versions = iter(["a", "a", "b", "b", "c"])

    async def beats() -> AsyncIterator[None]:
        for _ in range(5):
            yield

    async def read() -> list[str]:
        looks = Looks(lambda topic: next(versions), seconds=0)
        return [each async for each in stream(looks, "", "a", beats())]

    told = asyncio.run(read())
    assert told[0] == "retry: 2000\n\n"
    assert [each for each in told if "changed" in each] == [
        "id: b\nevent: changed\ndata: b\n\n",
        "id: c\nevent: changed\ndata: c\n\n",
    ]


def test_a_stream_ends_at_once_when_the_server_stops() -> None:
    async def listen() -> int:
        ending, heard = asyncio.Event(), 0
        async for _ in ticks(3600, 7200, ending):
            heard += 1
            asyncio.get_running_loop().call_soon(ending.set)
        return heard

    # Once when it begins, once more to tell what is the last.
    assert asyncio.run(asyncio.wait_for(listen(), 60)) == 2


def test_however_many_tabs_are_open_a_topic_is_looked_at_once() -> None:
    asked: list[str] = []

    async def ask() -> None:
        looks = Looks(lambda topic: asked.append(topic) or topic, seconds=60)  # type: ignore[func-returns-value]
        for _ in range(5):
            await looks.at("wf")
        await looks.at("")

    asyncio.run(ask())
    assert asked == ["wf", ""]
