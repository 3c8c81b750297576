"""Every page that a link leads to, with hostile text wherever text is foreign: by day on a desk, by night on a phone.

Nothing runs, nothing is fetched from elsewhere, nothing is wider than the window, and axe finds nothing serious.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.web.browser import app_of
from tests.web.real.tabs import PHONE, fits, tab
from tests.web.real.world import APART, world

# Pages of one kind that are looked at: the same template with other values.
_ENOUGH = 4
_GRAVE = ("serious", "critical")


def pages(page: Any, home: str) -> Iterator[str]:
    """Goes to each page that is linked, and yields its address while it is shown."""
    waiting, kinds = [*APART, "/"], Counter[str]()
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        page.goto(path, wait_until="load")
        yield path
        for href in page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)"):
            parts = urlsplit(href)
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
            kind = "/".join(parts.path.split("/")[: 3 if parts.path.startswith("/actions/") else 2])
            # Files that a run has kept are downloads.
            ours = f"{parts.scheme}://{parts.netloc}" == home and kind != "/artifacts"
            if ours and path not in seen and kinds[kind] < _ENOUGH:
                kinds[kind] += 1
                seen.add(path)
                waiting.append(path)


def grave(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    # Without the rest, of which it would list every element as well.
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        if each["impact"] in _GRAVE
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"color_scheme": "light", "viewport": {"width": 1280, "height": 800}}, id="desk, light"),
        pytest.param(
            {"color_scheme": "dark", "viewport": PHONE, "has_touch": True, "is_mobile": True}, id="phone, dark"
        ),
    ],
)
def test_every_page_is_safe_readable_and_fits(tmp_path: Path, chromium: Any, options: dict[str, Any]) -> None:
    wrong: list[str] = []
    looked: list[str] = []
    with tab(chromium, app_of(world(tmp_path)), accept_downloads=False, **options) as page:
        home = page.evaluate("location.origin")
        page.on("request", lambda asked: asked.url.startswith(home) or wrong.append(f"asked for {asked.url}"))
        page.on("dialog", lambda dialog: wrong.append(f"ran {dialog.message}"))
        for path in pages(page, home):
            looked.append(path)
            page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
            wrong += [f"{path}: {each}" for each in grave(page)]
            if not fits(page):
                wrong.append(f"{path}: wider than the window")
    assert wrong == []
    kinds = {path.split("?")[0].split("/")[1] for path in looked}
    assert kinds >= {"", "runs", "calls", "reviews", "actions", "compare", "workflows", "runners", "source", "nowhere"}
