"""The whole story of a person who never opens a terminal, with a real runner and a real repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.real.studio import Studio, studio, visited, working


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Studio]:
    made = studio(tmp_path / "studio")
    # The first command makes the repository.
    made.site.start("launch", "first", {"topic": "Cats"})
    with working(made):
        yield made


ANSWER = {
    "action": "approve",
    "tone": "warm",
    "channel": "mail",
    "notify": True,
    "copies": 3,
    "headline": "Dogs are here",
    "feedback": "Fine.\nShip it.",
    "day": "2030-01-31",
    "contact": {"title": "Ana", "address": "ana@example.org"},
    "links": [{"title": "link 1", "address": "https://example.org"}],
    "later": True,
    "extra": {"n": [1, 2]},
}


def start(page: Any, run_id: str, topic: str) -> None:
    page.goto("/workflows/launch", wait_until="load")
    page.fill("[name='_id']", run_id)
    page.fill("[name='f/topic']", topic)
    page.check("[name='f/audience'][value='developers'], [value='\"developers\"']")
    page.click("text=Add to")
    page.fill("[name='f/sections/0']", "Why")
    page.check("[name='f/urgent']")
    page.click("button:text-is('Start')")
    page.wait_for_url(f"**/runs/{run_id}**")


def answer(page: Any) -> None:
    """One field of each kind."""
    page.check("label.check:has-text('warm') input")
    page.select_option("[name='f/channel']", label="mail")
    page.check("[name='f/notify']")
    page.fill("[name='f/copies']", "3")
    page.fill("[name='f/headline']", "Dogs are here")
    page.fill("[name='f/feedback']", "Fine.\nShip it.")
    page.fill("[name='f/day']", "2030-01-31")
    page.fill("[name='f/contact/title']", "Ana")
    page.fill("[name='f/contact/address']", "ana@example.org")
    page.fill("[name='f/extra']", '{"n": [1, 2]}')
    for number in range(2):
        page.click("text=Add to Links")
        page.fill(f"[name='f/links/{number}/title']", f"link {number}")
        page.fill(f"[name='f/links/{number}/address']", "https://example.org")
    page.click("text=Remove Links 1")
    page.wait_for_selector("[name='f/links/1/title']", state="detached")
    page.select_option("[name='f/later']", label="Yes")
    page.click("button:text-is('approve')")


def test_a_run_is_started_watched_answered_and_seen_to_finish(made: Studio, chromium: Any) -> None:
    with visited(chromium, made) as page:
        start(page, "dogs", "Dogs")
        page.evaluate("document.body.dataset.mine = 'the same page'")
        page.wait_for_selector("text=executing wait")
        page.wait_for_selector(".tree li:has-text('writer') .state.completed")
        made.go()
        page.wait_for_selector("section:has(#questions) a")
        assert page.evaluate("document.body.dataset.mine") == "the same page"
        assert not page.is_visible("text=The run is recorded, and queued.")
        page.click("section:has(#questions) a")
        answer(page)
        page.wait_for_selector("text=The answer is recorded.")
        page.click("text=see how the run goes on")
        page.wait_for_selector("main .state.completed:text-is('Completed')")
    said = made.site.run("review", "show", "dogs", "review").json
    assert said["answer"] == ANSWER
    assert said["provenance"]["channel"] == "local-dashboard"


def test_runs_are_compared_forked_and_cancelled(made: Studio, chromium: Any) -> None:
    with visited(chromium, made) as page:
        start(page, "dogs", "Dogs")
        made.go()
        page.wait_for_selector("section:has(#questions) a")
        page.click("a.button:text-is('Compare')")
        page.fill("[name='b']", "first")
        page.click("button:text-is('Compare')")
        page.wait_for_selector("text=They part at")
        page.goto("/runs/dogs", wait_until="load")
        page.click("a.button:text-is('Fork')")
        page.fill("[name='new']", "cats")
        page.click("button:text-is('Fork')")
        page.wait_for_url("**/runs/cats**")
        page.wait_for_selector("section:has(#questions) a")
        page.click("a.button:text-is('Cancel')")
        page.fill("[name='reason']", "too late")
        page.click("button:text-is('Cancel')")
        page.wait_for_selector("main .state:text-is('Cancelled')")
    assert made.status("cats") == "cancelled"
    assert made.status("dogs") == "waiting"
