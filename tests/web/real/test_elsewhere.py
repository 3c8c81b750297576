"""The same pages elsewhere, in a real browser: as files that no server sends, and below a path of another site."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.contract.workspaces import SHIP, person
from tests.web.browser import TOKEN, app_of, waiting_desk
from tests.web.real.tabs import DEADLINE, PHONE, fits, served
from tests.web.real.world import world
from tests.web.test_export import exported, walked

# Pages of one kind that are looked at: the same template with other values.
_ENOUGH = 4
ABORTED = "net::ERR_ABORTED"


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}])
def test_pages_of_files_are_whole_and_fetch_nothing_from_elsewhere(
    tmp_path: Path, chromium: Any, options: dict[str, Any]
) -> None:
    exported(world(tmp_path), tmp_path / "site", compare=[("wf", "other")])
    root, wrong, kinds = (tmp_path / "site").as_uri(), list[str](), Counter[str]()
    context = chromium.new_context(**options)
    page = context.new_page()
    page.on("console", lambda said: wrong.append(said.text))
    # What is left for the next page is given up, the icon mostly: that is no fault of a file.
    page.on("requestfailed", lambda asked: asked.failure == ABORTED or wrong.append(f"{asked.failure} {asked.url}"))
    page.on("request", lambda asked: asked.url.startswith(root) or wrong.append(f"asked for {asked.url}"))
    for file in sorted(walked(tmp_path / "site")):
        kind = file.partition("/")[0]
        if not file.endswith(".html") or kinds[kind] == _ENOUGH:
            continue
        kinds[kind] += 1
        page.goto(f"{root}/{file}", wait_until="load")
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        styled = page.evaluate("getComputedStyle(document.querySelector('nav ul')).listStyleType") == "none"
        wrong += [] if styled and fits(page) else [f"{file}: styled {styled}, fits {fits(page)}"]
    context.close()
    assert wrong == []
    assert kinds.keys() >= {"runs", "calls", "reviews", "source", "compare", "workflows"}


def test_below_a_path_a_page_keeps_itself_up_to_date(tmp_path: Path, chromium: Any) -> None:
    made = waiting_desk(tmp_path)
    app = Starlette(routes=[Mount("/tools/flows", app_of(made, stream_seconds=60.0))])
    with served(app) as address:
        context = chromium.new_context(base_url=address)
        page = context.new_page()
        page.set_default_timeout(DEADLINE * 1000)
        page.goto(f"/tools/flows/enter?token={TOKEN}")
        page.wait_for_selector("h1:text('Inbox')")
        page.wait_for_load_state("load")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/tools/flows/reviews/wf/ok")
        page.click("nav >> text=Inbox")
        made.workspace.answer("wf", "ok", SHIP, person())
        page.wait_for_selector("text=Nothing waits for an answer here.")
        context.close()
