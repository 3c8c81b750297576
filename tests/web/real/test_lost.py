"""What becomes of a tab when the dashboard behind it is gone, slow, or another one: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import Desk
from tests.web.browser import TOKEN, app_of, waiting_desk
from tests.web.calling import ran
from tests.web.real.tabs import DEADLINE, served, tab
from tests.web.test_review_page import answers

THOUGHTS = "thoughts that took an hour"
# How many pages are asked for at once, each of which takes a while.
COUNTED = """
const real = window.fetch;
window.most = window.now = window.all = 0;
window.fetch = async (...given) => {
  window.all += 1;
  window.most = Math.max(window.most, ++window.now);
  await new Promise((done) => setTimeout(done, 200));
  return real(...given).finally(() => (window.now -= 1));
};
"""


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@pytest.fixture
def address(made: Desk) -> Iterator[str]:
    with served(app_of(made, lasting=True, stream_seconds=60.0)) as address:
        yield address


def entered(chromium: Any, address: str) -> Any:
    """A tab that may complain: a browser does when it is refused."""
    page = chromium.new_context(base_url=address).new_page()
    page.set_default_timeout(DEADLINE * 1000)
    enter(page)
    return page


def enter(page: Any) -> None:
    page.goto(f"/enter?token={TOKEN}")
    page.wait_for_selector("h1:text('Inbox')")
    page.wait_for_load_state("load")


def test_who_is_not_let_in_any_more_keeps_what_was_written_and_sends_it_later(
    made: Desk, chromium: Any, address: str
) -> None:
    page = entered(chromium, address)
    page.goto("/reviews/wf/ok", wait_until="load")
    page.fill("[name='f/feedback']", THOUGHTS)
    page.context.clear_cookies()
    page.click("button:text-is('approve')")
    page.wait_for_selector("[role=alert]:has-text('has not been let in')")
    assert page.input_value("[name='f/feedback']") == THOUGHTS
    enter(page.context.new_page())
    page.click("button:text-is('approve')")
    page.wait_for_selector("text=The answer is recorded.")
    page.context.close()
    (answer,) = answers(made)
    assert answer.output == {"action": "approve", "feedback": THOUGHTS}


def test_a_dashboard_that_has_ended_takes_nothing_away(made: Desk, chromium: Any) -> None:
    with served(app_of(made, lasting=True)) as address:
        page = entered(chromium, address)
        page.goto("/reviews/wf/ok", wait_until="load")
        page.fill("[name='f/feedback']", THOUGHTS)
    page.click("button:text-is('approve')")
    page.wait_for_selector("[role=alert]:has-text('cannot be reached')")
    assert page.input_value("[name='f/feedback']") == THOUGHTS
    page.context.close()
    assert answers(made) == []


def test_a_page_that_is_not_kept_up_to_date_any_more_says_so(chromium: Any, address: str) -> None:
    page = entered(chromium, address)
    page.context.clear_cookies()
    # As when somebody comes back to the tab: the stream begins anew.
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector(".banner:has-text('not kept up to date any more')")
    page.context.close()


def test_going_back_leads_to_the_page_before_and_never_to_a_form_that_was_sent(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        page.click("text=Ship it?")
        page.fill("[name='f/feedback']", THOUGHTS)
        page.click("text=Write it as JSON")
        assert THOUGHTS in page.wait_for_selector("[name=_json]").input_value()
        page.click("text=Back to the fields")
        page.wait_for_selector("[name='f/feedback']")
        page.go_back()
        page.wait_for_selector("h1:text('Inbox')")


def test_a_run_that_moves_faster_than_its_page_is_made_is_asked_for_once_at_a_time(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made, stream_seconds=60.0)) as page:
        page.add_init_script(COUNTED)
        page.goto("/runs/wf", wait_until="load")
        for number in range(20):
            ran(made, f"step-{number}")
            page.evaluate("new Promise(requestAnimationFrame)")
        page.wait_for_selector("text=step-19")
        assert page.evaluate("window.most") == 1
        assert page.evaluate("window.all") < 10
