"""The tab's script in a browser: our pages in a page of somebody else, asked for with that page's own log-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from tests.contract.workspaces import Desk
from tests.hermes.tabs import OpenedTab
from tests.web.browser import waiting_desk
from tests.web.real.tabs import DEADLINE, seen, served

from hermes_workflows import hermes_plugin
from hermes_workflows.hermes_plugin.tab import METHODS, ROUTE

SCRIPT = Path(hermes_plugin.__file__).parent / "folder" / "dashboard" / "index.js"
# What Hermes gives its tabs, as far as ours asks for it; its fetch says who is logged in.
HOST = """<!doctype html><title>Host</title><style>h1 { color: rgb(1, 2, 3) }</style>
<h1>Of the host</h1><div id="tab"></div><script>
window.__HERMES_PLUGIN_SDK__ = {
  React: { createElement: (kind, given) => ({ kind, given }) },
  hooks: { useRef: () => ({}), useEffect: (run) => (window.effect = run) },
  authedFetch: (path, given) => fetch(path, { ...given, headers: { "x-token": "t" } }),
};
window.__HERMES_PLUGINS__ = {
  register: (name, component) => {
    const { kind, given } = component();
    given.ref.current = document.getElementById("tab").appendChild(document.createElement(kind));
    window.leave = window.effect();
  },
};
</script><script src="/index.js"></script>"""


class LogIn:
    """Only the host's own fetch has the token."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        known = scope["type"] != "http" or (b"x-token", b"t") in scope["headers"]
        app = self._app if known or not scope["path"].startswith("/api/") else Response("who?", 401)
        await app(scope, receive, send)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@contextmanager
def tab(chromium: Any, desk: Desk) -> Iterator[Any]:
    """The host's page in a browser; nothing that it complains of is passed over."""
    host = Starlette(
        routes=[
            Route("/", lambda _: HTMLResponse(HOST)),
            Route("/index.js", lambda _: FileResponse(SCRIPT)),
            Route("/api/plugins/hermes-workflows" + ROUTE, OpenedTab(desk), methods=list(METHODS)),
        ],
        middleware=[Middleware(LogIn)],
    )
    with served(host) as address:
        context = chromium.new_context(base_url=address)
        page, complaints = context.new_page(), []
        page.set_default_timeout(DEADLINE * 1000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        try:
            page.goto("/")
            page.wait_for_selector("h1:text('Inbox')")
            yield page
            assert complaints == []
        except BaseException as error:
            error.add_note(f"what was seen: {seen(context.pages)}")
            raise
        finally:
            context.close()


def test_a_question_is_answered_within_the_tab(chromium: Any, desk: Desk) -> None:
    with tab(chromium, desk) as page:
        page.click("text=Ship it?")
        page.fill("textarea", "Good.")
        page.click("button:text-is('approve')")
        page.wait_for_selector("text=The answer is recorded.")
        assert page.url.endswith("/")
    response = desk.workspace.review("wf", "ok").response
    assert response is not None
    assert response.output == {"action": "approve", "feedback": "Good."}


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_recorded(chromium: Any, desk: Desk) -> None:
    with tab(chromium, desk) as page:
        page.click("text=Ship it?")
        page.click("text=write it as JSON")
        page.fill("#whole", "{}")
        page.click("button:not(.hidden):text-is('Check')")
        page.wait_for_selector("text=This answer does not fit yet")
        assert page.input_value("#whole") == "{}"
    assert desk.workspace.review("wf", "ok").open


def test_the_pages_are_followed_filtered_and_kept_up_to_date(chromium: Any, desk: Desk) -> None:
    with tab(chromium, desk) as page:
        page.click("nav >> text=Runs")
        page.wait_for_selector("h1:text('Runs')")
        page.select_option("select[name=state]", "completed")
        page.click("button:text-is('Filter')")
        page.wait_for_selector("text='wf'", state="detached")
        page.click("nav >> text=Runs")
        page.wait_for_selector("text='wf'")
        desk.start("another")
        page.wait_for_selector("text='another'")


def test_neither_style_reaches_the_other_and_hostile_text_does_nothing(chromium: Any, desk: Desk) -> None:
    desk.start("hostile", topic="<img src=x onerror='window.evil = 1'><script>window.evil = 1</script>")
    with tab(chromium, desk) as page:
        page.click("nav >> text=Runs")
        page.click("text='hostile'")
        page.wait_for_selector("h1:text('hostile')")
        colors = "[...document.querySelectorAll('h1')].map((each) => getComputedStyle(each).color)"
        assert page.evaluate(colors) == ["rgb(1, 2, 3)"]
        inner = "getComputedStyle(document.querySelector('#tab > div').shadowRoot.querySelector('h1')).color"
        assert page.evaluate(inner) != "rgb(1, 2, 3)"
        assert page.evaluate("window.evil") is None


def test_a_tab_that_is_left_asks_for_nothing_any_more(chromium: Any, desk: Desk) -> None:
    with tab(chromium, desk) as page:
        page.evaluate("window.leave()")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        other = page.context.new_page()
        other.goto("/")
        other.click("nav >> text=Runs")
        other.wait_for_selector("h1:text('Runs')")
        desk.start("another")
        # Whoever still listens has been told by now.
        other.wait_for_selector("text='another'")
        assert asked == []
