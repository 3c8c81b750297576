"""The navigation says where one is: at a page of its own, or at one that is found from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.web.browser import app_of, browser, waiting_desk

from hermes_workflows.web.rendering import Shell


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/runs", ("Runs", "page")),
        ("/runs/wf", ("Runs", "true")),
        ("/calls/wf/ok", ("Runs", "true")),
        ("/reviews/wf/ok", ("Inbox", "true")),
    ],
)
def test_the_entry_of_a_page_is_marked(tmp_path: Path, path: str, entry: tuple[str, str]) -> None:
    with browser(app_of(waiting_desk(tmp_path))) as client:
        marked = re.findall(r'aria-current="(\w+)">(\w+)', client.get(path).text)
    assert marked == [entry[::-1]]


@pytest.mark.parametrize("path", ["", "/"])
def test_the_place_that_all_is_mounted_at_is_the_inbox_with_and_without_its_slash(path: str) -> None:
    assert Shell(0, "", path, lambda address: address).section == "/"
