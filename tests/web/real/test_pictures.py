"""The pictures of README and docs, taken of a real workspace: `make pictures` puts them into docs/pictures.

A test run only sees that each can be taken, and is small; people look at them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.clocks import VARIABLE, ShiftedClock
from tests.web.real.scene import later, scene
from tests.web.real.studio import dashboard

_DOCS = Path(__file__).parents[3] / "docs"
_LARGEST = 150 * 1024
_DESK = {"viewport": {"width": 1000, "height": 380}}
_PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}


class Still(ShiftedClock):
    """Stands still at `moment`, for whoever looks at the pictures."""

    def __init__(self, path: str, moment: datetime) -> None:
        super().__init__(path)
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go."""
    return Path(os.environ.get("PICTURES") or tmp_path_factory.mktemp("pictures")).resolve()


@pytest.fixture(scope="module")
def show(chromium: Any, taken: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    site = scene(tmp_path_factory.mktemp("scene") / "workspace")
    runner = site.runner("--worker-id", "desk")
    clock = Still(site.env[VARIABLE], later(site, 1500) + timedelta(seconds=1))

    def take(name: str, path: str, options: dict[str, Any], *, whole: bool = True) -> Path:
        with dashboard(chromium, site, clock, **options) as page:
            page.goto(path, wait_until="load")
            if path.startswith("/workflows/"):
                # The id that is proposed is another one each time.
                page.fill("#id", "release-1.5")
                page.evaluate("document.activeElement.blur()")
            file = taken / f"{name}.png"
            page.screenshot(path=file, full_page=whole, animations="disabled", caret="hide")
        return file

    try:
        yield take
    finally:
        runner.kill()


@pytest.mark.parametrize(
    ("name", "path", "options"),
    [
        ("inbox", "/", _DESK),
        ("question", "/reviews/release-1.4/review-2", _DESK),
        ("run", "/runs/release-1.4", _DESK),
        ("workflow", "/workflows/release-note", _DESK),
        ("phone", "/reviews/release-1.4/review-2", _PHONE),
    ],
)
def test_a_picture_is_taken(show: Any, name: str, path: str, options: dict[str, Any]) -> None:
    assert show(name, path, options, whole=name != "phone").read_bytes().startswith(b"\x89PNG")


def test_what_the_docs_show_is_small_and_comes_from_here() -> None:
    here = Path(__file__).read_text()
    for picture in (_DOCS / "pictures").iterdir():
        assert f'("{picture.stem}", ' in here
        assert picture.stat().st_size <= _LARGEST
