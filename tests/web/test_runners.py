"""Who is alive and doing what; every page says so while nobody serves a database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.queues import beat, dead_process
from tests.contract.workspaces import Desk, desk
from tests.web.browser import app_of, browser

from hermes_workflows.store.queue_port import Change, Claim, Work

ABSENT = "No runner is up for workflows.sqlite"


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path)
    made.start()
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def up(made: Desk) -> None:
    made.workspace.queue.heartbeat(replace(beat("ada", made.clock), database=str(made.workspace.paths.sqlite)))


def test_every_page_says_so_while_nobody_serves_the_queue(made: Desk, client: TestClient) -> None:
    for path in ("/", "/runs", "/runs/wf", "/runners", "/nowhere"):
        assert client.get(path).text.count(f'<p class="banner" role="status">{ABSENT}') == 1, path
    up(made)
    for path in ("/", "/runs/wf", "/runners"):
        assert ABSENT not in client.get(path).text


def test_a_runner_that_died_serves_nobody(made: Desk, client: TestClient) -> None:
    made.workspace.queue.heartbeat(beat("bob", made.clock, dead_process()))
    page = client.get("/runners").text
    assert ABSENT in page
    assert '<span class="state gone">died</span>' in page


def test_what_is_due_and_in_nobodys_hand_is_counted(made: Desk, client: TestClient) -> None:
    made.workspace.queue.apply(Change(offer=[Work("wf", "agent", "draft", name="writer")]), "ada")
    made.clock.advance(120)
    assert "1 agent, 1 workflow; the oldest for 2 min." in client.get("/runners").text
    made.empty_queue()
    assert "Nothing waits for a runner." in client.get("/runners").text


def test_a_runner_stands_with_what_it_has_in_hand_and_its_last_line(made: Desk, client: TestClient) -> None:
    made.workspace.queue.apply(Change(offer=[Work("wf", "agent", "draft", name="writer")]), "ada")
    made.workspace.queue.apply(Change(claim=Claim(5, ("agent",))), "ada")
    up(made)
    row = made.workspace.queue.runners()[0]
    made.workspace.queue.heartbeat(replace(row, said={"wf draft": "page 3 <b>"}, only=("agent",), draining=True))
    page = client.get("/runners").text
    assert '<a href="/runs/wf" data-item><code>wf</code></a> agent writer draft, for 0 s: page 3 &lt;b&gt;' in page
    assert "only agent" in page
    assert "takes nothing new" in page
