"""The page of a run: where it stands, its calls as a tree and on a line of time, and what each asked and got."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import SHIP, Desk, person
from tests.web.browser import app_of, browser, waiting_desk
from tests.web.calling import ran

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import CallReceipt, Execution
from hermes_workflows.finding import Found
from hermes_workflows.web.run_view import run_view
from hermes_workflows.web.timeline import Bar

HOSTILE = "<script>alert(1)</script>\n![x](https://evil.example/p.png)"


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = waiting_desk(tmp_path)
    made.clock.advance(60)
    ran(made, "draft/1/write")
    made.clock.advance(120)
    ran(made, "draft/2/write", error="no more paper")
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def test_it_says_where_the_run_stands_and_leads_to_what_it_waits_for(client: TestClient) -> None:
    page = client.get("/runs/wf").text
    assert "flow.py:launch" in page
    assert 'class="state waiting"' in page
    assert '<a href="/reviews/wf/ok">' in page
    assert "1.0000 USD" in page


def test_calls_stand_in_their_scopes_with_outcome_and_cost(client: TestClient) -> None:
    page = client.get("/runs/wf").text
    assert re.findall(r"<summary>([^<]+)/</summary>", page) == ["draft", "1", "2"]
    assert re.findall(r'href="(/calls/[^"]+)"', page) == [
        "/calls/wf/ok",
        "/calls/wf/draft/1/write",
        "/calls/wf/draft/2/write",
    ]
    assert "no more paper" in page
    assert "agent writer · 1 min" in page


def test_the_timeline_has_a_bar_for_each_call_as_long_as_it_took(client: TestClient) -> None:
    bars = re.findall(r'class="bar (\w+)" x="(\d+)" y="\d+" width="(\d+)"', client.get("/runs/wf").text)
    assert bars == [("open", "0", "1000"), ("completed", "0", "333"), ("failed", "667", "333")]


def test_the_run_before_it_is_one_click_away_to_be_compared(made: Desk, client: TestClient) -> None:
    assert "previous run" not in client.get("/runs/wf").text
    made.clock.advance(60)
    made.workspace.start("flow.py:plain", run_id="other")
    made.start("next")
    page = client.get("/runs/next").text
    assert '<li>previous run <a href="/runs/wf"><code>wf</code></a> (<a href="/compare?a=wf&amp;b=next">' in page


@pytest.mark.parametrize(
    ("x", "width", "begins"),
    [(100, 500, (104, "start")), (100, 20, (124, "start")), (980, 20, (976, "end")), (500, 20, (524, "start"))],
)
def test_a_label_stands_where_it_has_room(x: int, width: int, begins: tuple[int, str]) -> None:
    bar = Bar("draft/1/write", "completed", "", x, 0, width)
    assert (bar.text_x, bar.anchor) == begins


def test_a_child_run_that_goes_on_stands_with_what_it_waits_for(made: Desk, client: TestClient) -> None:
    made.start("wf.part")
    made.ask("sure", "wf.part")
    started = CallReceipt(
        path=layout.start("part"),
        key="part",
        kind="child",
        status="started",
        fingerprint="fp1:sha256:" + "4" * 64,
        request={"workflow": "flow:launch"},
        execution=Execution(started_at=made.now(), requested_after=0, child="wf.part"),
    )
    made.append("wf", started)
    page = client.get("/runs/wf").text
    assert 'Waiting on the operator · <a href="/runs/wf.part">its run</a>' in page


def test_a_commit_shows_the_run_as_it_was_then(made: Desk, client: TestClient) -> None:
    (then,) = re.findall(r'href="/runs/([^"]+)">this moment', client.get("/runs/wf").text)
    made.workspace.answer("wf", "ok", SHIP, person())
    made.end()
    assert 'class="state completed"' in client.get("/runs/wf").text
    page = client.get(f"/runs/{then}").text
    assert "This is the run as commit" in page
    assert '<span class="state waiting">Waiting</span>' in page
    assert "As it is now" not in client.get("/runs/wf").text


def test_a_run_that_moves_while_its_page_is_made_is_no_past_one(made: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    find = made.workspace.find

    def found(text: str) -> Found:
        found = find(text)
        ran(made, "meanwhile")
        return found

    monkeypatch.setattr(made.workspace, "find", found)
    view = run_view(made.workspace, "wf")
    assert (view.past, view.moves) == (False, True)


def test_a_call_shows_request_output_and_transcript(made: Desk, client: TestClient) -> None:
    told = {"prompt": "Write.", "stderr": HOSTILE}
    ran(made, "final", request={"name": "writer", "prompt": "Write *it*."}, output={"text": "# Hi"}, transcript=told)
    page = client.get("/calls/wf/final").text
    assert "<em>it</em>" in page
    assert re.findall("<h3>([^<]+)</h3>", page)[:4] == ["Request", "Output", "prompt", "stderr"]
    assert "steps/final.json" in page
    assert "hermes-workflows show wf@final" in page


def test_what_a_command_printed_is_shown_as_it_came(made: Desk, client: TestClient) -> None:
    output = {"exit_code": 2, "stdout": "*a* b", "stderr": ""}
    ran(made, "ls", kind="bash", request={"command": "ls *.md *.py"}, output=output)
    page = client.get("/calls/wf/ls").text
    assert '<pre tabindex="0">\nls *.md *.py</pre>' in page
    assert '<pre tabindex="0">\n*a* b</pre>' in page
    assert '<span class="state failed">completed, exit code 2</span>' in page


def test_a_key_that_nobody_knows_gets_the_nearest_right_one(client: TestClient) -> None:
    answer = client.get("/calls/wf/draft/1/wriet")
    assert answer.status_code == 404
    assert "draft/1/write" in answer.text
    assert client.get("/runs/nowhere").status_code == 404


def test_foreign_text_is_shown_and_never_obeyed(made: Desk, client: TestClient) -> None:
    ran(made, "bad", request={"name": HOSTILE}, output=HOSTILE, transcript={"stdout": HOSTILE})
    ran(made, "worse", error=HOSTILE)
    for path in ("/runs/wf", "/calls/wf/bad", "/calls/wf/worse"):
        page = client.get(path).text
        assert "<script>alert" not in page
        assert 'src="https://evil' not in page


def test_a_run_of_many_calls_shows_the_first_and_the_newest(made: Desk, client: TestClient) -> None:
    for number in range(510):
        ran(made, f"many/{number}")
    page = client.get("/runs/wf").text
    assert "13 calls in the middle are left out" in page
    assert "/calls/wf/many/509" in page


def test_the_code_is_shown_as_it_was_recorded(made: Desk, client: TestClient) -> None:
    assert '<a href="/source/wf">' in client.get("/runs/wf").text
    (made.workspace.root / "flow.py").write_text("raise SystemExit  # since then")
    page = client.get("/source/wf").text
    assert "<code>flow.py</code>" in page
    assert "async def launch(inputs: Topic) -&gt; str:" in page
    assert "since then" not in page
    assert client.get("/source/nowhere").status_code == 404
