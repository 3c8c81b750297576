"""The dashboard by keys alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.workspaces import Desk
from tests.web.browser import app_of, waiting_desk
from tests.web.real.tabs import tab
from tests.web.test_review_page import answers, ask


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


def test_a_question_is_found_and_answered_by_keys_alone(made: Desk, chromium: Any) -> None:
    made.clock.advance(5)
    made.ask("later")
    with tab(chromium, app_of(made)) as page:
        for key in ("j", "j", "k", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**/reviews/wf/ok")
        page.keyboard.press("a")
        assert page.evaluate("document.activeElement.textContent") == "approve"
        page.keyboard.press("Shift+Tab")
        page.keyboard.type("fine, and a is only a letter here")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The answer is recorded.")
    (answer,) = answers(made)
    assert answer.output == {"action": "approve", "feedback": "fine, and a is only a letter here"}


def test_a_key_in_the_inbox_opens_a_question_at_its_button_and_presses_nothing(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        page.keyboard.press("j")
        page.keyboard.press("r")
        page.wait_for_url("**/reviews/wf/ok#action-2")
        page.wait_for_function("document.activeElement.textContent === 'revise'")
    assert answers(made) == []


def test_enter_in_a_line_only_checks_and_leads_to_what_is_wrong(made: Desk, chromium: Any) -> None:
    returns = {
        "type": "object",
        "properties": {"action": {"enum": ["go"]}, "n": {"type": "integer"}},
        "required": ["action"],
    }
    ask(made, "count", returns=returns)
    with tab(chromium, app_of(made)) as page:
        page.goto("/reviews/wf/count")
        page.fill("[name='f/n']", "many")
        page.wait_for_selector("[data-errors='/n'] p:text('should be integer')")
        page.press("[name='f/n']", "Enter")
        page.wait_for_selector("text=This answer does not fit yet")
        page.wait_for_function("document.activeElement.name === 'f/n'")
        assert page.input_value("[name='f/n']") == "many"
    assert answers(made) == []


def test_the_first_stop_leads_past_the_navigation(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.id === 'main'")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == "workflow"


def test_a_run_is_cancelled_by_keys_alone(made: Desk, chromium: Any) -> None:
    with tab(chromium, app_of(made)) as page:
        page.goto("/runs", wait_until="load")
        for key in ("j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**/runs/wf")
        _to(page, "Cancel")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:text('Cancel wf?')")
        _to(page, "Cancel")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The wish to cancel is recorded")
    assert made.workspace.summary("wf").cancel_requested is not None


def _to(page: Any, label: str) -> None:
    """Go on with Tab until the focus is on what is called `label`."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == label:
            return
    raise AssertionError(f"no Tab leads to {label}")
