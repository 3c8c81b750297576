"""A Chromium for each module of browser tests; without one, all of them are skipped with one line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
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


def _missing() -> str:
    """What browser tests need and this machine has not; "" when all is there."""
    if not all(map(find_spec, ("playwright", "axe_playwright_python"))):
        return "no Playwright, or no axe for it"
    return "" if any(map(shutil.which, NAMES)) else "no Chromium on the PATH"


# In a hook, not in the fixture: then all are skipped at one place, which makes it one line.
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "chromium" in getattr(item, "fixturenames", ()) and (missing := _missing()):
        pytest.skip(f"{missing}: browsers are not tested here")


# Not of a whole session: Playwright has an event loop in this thread, and other tests want theirs.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*ARGUMENTS])
        yield browser
        browser.close()
