"""Two tabs on one dashboard: one answer, and both are told the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import SHIP, Desk, person
from tests.web.browser import app_of, waiting_desk
from tests.web.real.tabs import tab
from tests.web.test_review_page import answers


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


def test_the_second_tab_is_told_who_was_first_and_loses_nothing(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        tabs = [page, page.context.new_page()]
        for number, each in enumerate(tabs):
            each.goto("/reviews/wf/ok", wait_until="load")
            each.fill("[name='f/feedback']", f"thoughts of tab {number}")
        tabs[0].click("button:text-is('approve')")
        tabs[0].wait_for_selector("text=The answer is recorded.")
        tabs[1].click("button:text-is('revise')")
        tabs[1].wait_for_selector("text=was answered by ana")
        assert tabs[1].is_visible("text=thoughts of tab 1")
    (answer,) = answers(made)
    assert answer.output == {"action": "approve", "feedback": "thoughts of tab 0"}


def test_two_tabs_that_send_at_the_same_moment_make_one_answer(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        tabs = [page, page.context.new_page()]
        for number, each in enumerate(tabs):
            each.goto("/reviews/wf/ok", wait_until="load")
            each.fill("[name='f/feedback']", f"thoughts of tab {number}")
        for each in tabs:
            # The click of a script is not waited for: both are on their way.
            each.evaluate("setTimeout(() => document.querySelector('[data-action]').click())")
        told = []
        for each in tabs:
            notice = each.wait_for_selector(".notice")
            told.append(notice.inner_text())
    assert sorted("recorded" in each for each in told) == [False, True], told
    assert any("was answered by ana" in each for each in told)
    assert len(answers(made)) == 1


def test_what_is_answered_elsewhere_leaves_the_inbox_of_an_open_tab(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made, stream_seconds=60.0)) as page:
        page.wait_for_selector("text=Ship it?")
        assert page.title().startswith("(1)")
        made.workspace.answer("wf", "ok", SHIP, person())
        page.wait_for_selector("text=Nothing waits for an answer here.")
        assert page.title().startswith("Inbox")


def test_a_page_is_not_taken_away_from_who_is_typing_in_it(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made, stream_seconds=60.0)) as page:
        page.goto("/runs", wait_until="load")
        page.focus("[name='find']")
        page.keyboard.type("w")
        with page.expect_response(lambda answer: "/events" in answer.url):
            # A stream that begins anew says at once what was missed.
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        made.start("other")
        page.keyboard.type("f")
        assert page.input_value("[name='find']") == "wf"
        page.keyboard.press("Tab")
        page.focus("main")
        page.wait_for_selector("text=other")
