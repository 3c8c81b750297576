"""A Chromium for each module of browser tests; without one, all of them are skipped with one line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

# No process, picture or request of the browser's own: what a page asks for is all that is asked for.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


# Not of a whole session: Playwright has an event loop in this thread, and other tests want theirs.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        executable = None
    if executable is None:
        pytest.skip("no Playwright, or no Chromium on the PATH: browsers are not tested here")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*ARGUMENTS])
        yield browser
        browser.close()
