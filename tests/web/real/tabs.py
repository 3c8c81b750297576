"""Tabs of a real browser on a dashboard that listens in a thread of this process.

A test that fails leaves what its tabs showed in `build/browser`, and says so.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from tests.web.browser import TOKEN

DEADLINE = 30.0
PHONE = {"width": 375, "height": 700}
# What a page says of an answer that does not fit, came second, or names nothing: the browser complains of it, too.
EXPECTED = re.compile(r"status of (404|409|422)")
_PICTURES = Path(__file__).parents[3] / "build" / "browser"


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address at which `app` listens."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
    # A tab that is closed late leaves a stream; nobody waits for it.
    server.config.timeout_graceful_shutdown = 1
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + DEADLINE
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(DEADLINE)


@contextmanager
def entered(chromium: Any, address: str, **options: Any) -> Iterator[Any]:
    """A tab at the inbox, in a browser of its own; nothing that it complains of is passed over."""
    context = chromium.new_context(base_url=address, **options)
    page, complaints = context.new_page(), []
    page.set_default_timeout(DEADLINE * 1000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    try:
        page.goto(f"/enter?token={TOKEN}")
        page.wait_for_selector("h1:text('Inbox')")
        # The script comes after the page: keys that are pressed before it are lost, as for a person.
        page.wait_for_load_state("load")
        yield page
        assert [each for each in complaints if not EXPECTED.search(each)] == []
    except BaseException as error:
        error.add_note(f"what was seen: {seen(context.pages)}")
        raise
    finally:
        context.close()


@contextmanager
def tab(chromium: Any, app: Starlette, **options: Any) -> Iterator[Any]:
    """The same, on a dashboard of its own."""
    with served(app) as address, entered(chromium, address, **options) as page:
        yield page


def seen(pages: list[Any]) -> str:
    """Pictures of what `pages` show now, for people who read of a failed test."""
    name = re.sub(r"[^\w.-]+", "-", os.environ.get("PYTEST_CURRENT_TEST", "page").partition("::")[2].split(" ")[0])
    _PICTURES.mkdir(parents=True, exist_ok=True)
    kept = []
    for number, page in enumerate(pages):
        picture = _PICTURES / f"{name}-{number}.png"
        # A tab that is gone has nothing to show, and its test has already failed.
        with suppress(Exception):
            page.screenshot(path=picture, full_page=True)
            kept.append(f"{page.url} {picture.relative_to(_PICTURES.parents[1])}")
    return ", ".join(kept)


def fits(page: Any) -> bool:
    """Whether nothing makes the page wider than its window."""
    # Not the window's own: a phone makes that as wide as what is in it.
    return bool(page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"])
