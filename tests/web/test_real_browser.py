"""The inbox and a question in a real browser: by keys alone, without a script, on a phone, with hostile text.

They need Playwright and a Chromium on the PATH, and are skipped where one is missing.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from tests.contract.workspaces import Desk
from tests.web.browser import TOKEN, app_of, waiting_desk
from tests.web.test_review_page import HOSTILE, answers, ask

from hermes_workflows.core.receipts import Evidence

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: browsers are not tested here")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium on the PATH: browsers are not tested here", allow_module_level=True)

_DEADLINE = 30.0
_PHONE = {"width": 375, "height": 700}


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address at which `app` listens, in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + _DEADLINE
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_DEADLINE)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@contextmanager
def tab(chromium: Any, made: Desk, **options: Any) -> Iterator[Any]:
    """A page that shows the inbox, in a browser of its own; nothing it complains of is passed over."""
    with served(app_of(made)) as address:
        context = chromium.new_context(base_url=address, **options)
        page, complaints = context.new_page(), []
        page.set_default_timeout(_DEADLINE * 1000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.goto(f"/enter?token={TOKEN}")
        page.wait_for_selector("h1:text('Inbox')")
        # The script comes after the page: keys that are pressed before it are lost, as for a person.
        page.wait_for_load_state("load")
        yield page
        context.close()
    assert [each for each in complaints if "422" not in each and "409" not in each] == []


def test_a_question_is_found_and_answered_by_keys_alone(made: Desk, chromium: Any) -> None:
    made.clock.advance(5)
    made.ask("later")
    with tab(chromium, made) as page:
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
    with tab(chromium, made) as page:
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
    with tab(chromium, made) as page:
        page.goto("/reviews/wf/count")
        page.fill("[name='f/n']", "many")
        page.wait_for_selector("[data-errors='/n'] p:text('should be integer')")
        page.press("[name='f/n']", "Enter")
        page.wait_for_selector("text=This answer does not fit yet")
        page.wait_for_function("document.activeElement.name === 'f/n'")
        assert page.input_value("[name='f/n']") == "many"
    assert answers(made) == []


def test_without_a_script_items_are_added_and_the_answer_is_given(made: Desk, chromium: Any) -> None:
    ask(made, "names", returns={"type": "array", "items": {"type": "string"}})
    with tab(chromium, made, java_script_enabled=False) as page:
        page.goto("/reviews/wf/names")
        for number, name in enumerate(("one", "two\nlines")):
            page.click("text=Add to Answer")
            page.fill(f"[name='f/{number}']", name)
        page.click("text=Send")
        page.wait_for_selector("text=The answer is recorded.")
    assert answers(made)[0].output == ["one", "two\nlines"]


def test_nothing_that_is_shown_runs_loads_or_breaks_a_phones_width(made: Desk, chromium: Any) -> None:
    evidence = [Evidence(title=text, value=text) for text in HOSTILE]
    ask(made, "bad", prompt=" ".join(HOSTILE), evidence=[*evidence, Evidence(title="w" * 300, value="x" * 5000)])
    asked_for: list[str] = []
    with tab(chromium, made, viewport=_PHONE) as page:
        page.on("request", lambda request: asked_for.append(request.url))
        page.on("dialog", lambda dialog: asked_for.append(dialog.message))
        page.goto("/reviews/wf/bad", wait_until="networkidle")
        home = page.evaluate("location.origin")
        assert page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
        page.goto("/")
        assert page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    assert [url for url in asked_for if not url.startswith(home)] == []
