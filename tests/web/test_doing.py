"""What a run has in the queue: on its page while it is there, with who has it and what it printed last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.queues import beat
from tests.contract.workspaces import Desk, desk
from tests.web.browser import app_of, browser
from tests.web.calling import ran
from tests.web.test_live import address

from hermes_workflows.store.queue_port import Change, Claim, Work


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path)
    made.start()
    made.empty_queue()
    ran(made, "plan")
    made.workspace.queue.apply(Change(offer=[Work("wf", "bash", "pages"), Work("wf", "bash", "cover")]), "ada")
    made.workspace.queue.apply(Change(claim=Claim(1, kinds=("bash",))), "ada")
    made.clock.advance(20)
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def says(made: Desk, line: str) -> None:
    row = beat("ada", made.clock)
    made.workspace.queue.heartbeat(replace(row, executing=("wf pages",), said={"wf pages": line}))


def test_calls_in_hand_stand_on_the_page_before_those_that_wait(made: Desk, client: TestClient) -> None:
    says(made, "page <3>")
    page = client.get("/runs/wf").text
    found = re.findall(r'<li><code>(\w+)</code> <span class="state (\w+)">([^<]+)</span>', page)
    assert found == [("pages", "leased", "executing on ada for 20 s"), ("cover", "queued", "queued for 20 s")]
    assert ">\npage &lt;3&gt;</pre>" in page


def test_the_timeline_has_a_bar_for_what_goes_on(client: TestClient) -> None:
    page = client.get("/runs/wf").text
    assert re.findall(r"<title>(pages: [^<]+)</title>", page) == [
        "pages: executing on ada for 20 s, 20.0 s, 1 min after the first"
    ]
    assert page.count('<rect class="bar') == 2


def test_a_page_of_the_past_or_of_an_ended_run_has_no_queue(made: Desk, client: TestClient) -> None:
    head = made.ledger.head("wf")
    assert head is not None
    made.workspace.summary("wf")
    assert "In the queue" in client.get("/runs/wf").text
    assert "In the queue" not in client.get("/runs/wf@plan").text
    made.end()
    assert "In the queue" not in client.get("/runs/wf").text


def test_limits_of_a_run_are_no_calls_of_it(made: Desk, client: TestClient) -> None:
    due = made.clock.wall + 3600
    made.workspace.queue.apply(Change(offer=[Work("wf", "timer", "$deadline", visible_at=due)]), "ada")
    made.workspace.queue.apply(Change(offer=[Work("wf", "timer", "nap", visible_at=due)]), "ada")
    page = client.get("/runs/wf").text
    assert "$deadline" not in page
    assert "due in 1 h" in page


def test_a_page_is_out_of_date_as_soon_as_a_call_prints(made: Desk, client: TestClient) -> None:
    says(made, "page 3")
    events = address(client, "/runs/wf")
    assert "event: changed" not in client.get(events).text
    says(made, "page 4")
    assert "event: changed" in client.get(events).text
