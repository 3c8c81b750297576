"""The dashboard in a browser that runs no script: slower, and nothing is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.contract.workspaces import desk
from tests.web.browser import app_of, waiting_desk
from tests.web.real.tabs import tab
from tests.web.test_review_page import answers, ask

REGISTRY = json.dumps({"workflows": {"launch": {"workflow_ref": "flow.py:launch"}}})


def test_items_are_added_and_the_answer_is_given(tmp_path: Path, chromium: Any) -> None:
    made = waiting_desk(tmp_path)
    ask(made, "names", returns={"type": "array", "items": {"type": "string"}})
    with tab(chromium, app_of(made), java_script_enabled=False) as page:
        page.goto("/reviews/wf/names")
        for number, name in enumerate(("one", "two\nlines")):
            page.click("text=Add to Answer")
            page.fill(f"[name='f/{number}']", name)
        page.click("text=Send")
        page.wait_for_selector("text=The answer is recorded.")
    assert answers(made)[0].output == ["one", "two\nlines"]


def test_a_run_is_started_and_cancelled(tmp_path: Path, chromium: Any) -> None:
    made = desk(tmp_path, REGISTRY)
    with tab(chromium, app_of(made), java_script_enabled=False) as page:
        page.click("nav >> text=Workflows")
        page.click("text=launch")
        page.fill("[name='_id']", "mine")
        page.fill("[name='f/topic']", "cats")
        page.click("button:text-is('Start')")
        page.wait_for_url("**/runs/mine**")
        page.click("a.button:text-is('Cancel')")
        page.fill("[name='reason']", "too late")
        page.click("button:text-is('Cancel')")
        page.wait_for_selector("text=The wish to cancel is recorded")
    assert made.workspace.summary("mine").cancel_requested == "too late"


def test_a_wrong_answer_comes_back_with_its_reasons(tmp_path: Path, chromium: Any) -> None:
    made = waiting_desk(tmp_path)
    ask(made, "count", returns={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    with tab(chromium, app_of(made), java_script_enabled=False) as page:
        page.goto("/reviews/wf/count")
        page.fill("[name='f/n']", "many")
        page.click("button.action")
        page.wait_for_selector("[data-errors='/n'] p")
        assert page.input_value("[name='f/n']") == "many"
    assert answers(made) == []
