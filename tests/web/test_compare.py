"""Two runs side by side: where they part, what differs on either side, what does not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import Desk, desk
from tests.web.browser import app_of, browser, listed, post
from tests.web.calling import ran


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    made = desk(tmp_path)
    for run in ("one", "two"):
        made.start(run)
        ran(made, "plan", run)
    return made


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def test_equal_runs_did_the_same_however_long_they_took(made: Desk, client: TestClient) -> None:
    ran(made, "draft", "one", lasted=5)
    ran(made, "draft", "two", lasted=50)
    assert "They did the same: 3 calls" in client.get("/compare?a=one&b=two").text
    wide = client.get("/compare?a=one&b=two&wide=1").text
    assert "differ, " in wide
    assert "hermes-workflows diff one two --usage --execution" in wide


def test_a_value_stands_on_either_side_and_a_text_as_a_diff(made: Desk, client: TestClient) -> None:
    ran(made, "draft", "one", output={"score": 3, "text": "a\nb\n"})
    ran(made, "draft", "two", output={"score": 4, "text": "a\n<c>\n"})
    page = client.get("/compare?a=one&b=two").text
    assert "They part at <strong>agent draft</strong>" in page
    assert '<div role="group" aria-label="output /score in one"><pre tabindex="0">\n3</pre>' in page
    assert '<div role="group" aria-label="output /score in two"><pre tabindex="0">\n4</pre>' in page
    assert '<span class="added">+&lt;c&gt;' in page


def test_a_run_that_is_named_alone_is_offered_the_others_of_its_workflow(made: Desk, client: TestClient) -> None:
    made.workspace.start("flow.py:plain", None, run_id="else")
    assert listed(client, "/compare", a="one") == ["/compare?a=one&b=two"]
    assert listed(client, "/compare", b="two@plan") == ["/compare?a=one&b=two%40plan"]
    assert listed(client, "/compare") == listed(client, "/compare", a="gone") == []


def test_what_an_answer_must_fit_is_for_programs(made: Desk, client: TestClient) -> None:
    made.ask("ok", "two")
    page = client.get("/compare?a=one&b=two").text
    assert "review ok" in page
    assert "Ship it?" in page
    assert "additionalProperties" not in page


def test_a_call_of_one_run_alone_is_shown_on_its_side(made: Desk, client: TestClient) -> None:
    ran(made, "extra", "two", output="only here")
    assert '<span class="state">added</span> agent extra' in client.get("/compare?a=one&b=two").text
    assert '<span class="state">removed</span> agent extra' in client.get("/compare?a=two&b=one").text


def test_moments_of_one_run_and_commits_are_compared_too(made: Desk, client: TestClient) -> None:
    head = made.ledger.head("one")
    assert head is not None
    ran(made, "draft", "one")
    for other in (head.tip, "one@plan"):
        assert "agent draft" in client.get("/compare", params={"a": other, "b": "one"}).text


def test_a_fork_leads_to_its_comparison(made: Desk, client: TestClient) -> None:
    post(client, "/actions/fork/one", {"new": "fork", "given": '{"topic": "cats"}'})
    (href,) = re.findall(r'<a href="(/compare[^"]+)">compare', client.get("/runs/fork").text)
    assert href == "/compare?a=one&amp;b=fork"
    assert "cats" in client.get("/compare?a=one&b=fork").text


def test_a_run_that_is_not_there_is_said(client: TestClient) -> None:
    assert client.get("/compare?a=one&b=nowhere").status_code == 404
    assert client.get("/compare?a=one").status_code == 200
