"""Links lead somewhere, and so do the paths that the pages name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, name_of

_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_NAMED_FILE = re.compile(r"`((?:[a-z_.]+/)*[A-Za-z_.]+(?:\.(?:py|md|toml|sh|yml)|/))`")
_CODE = re.compile(r"^```.*?^```$", re.M | re.S)
# What the engine's files are called from: the package, or the project.
_BASES = (ROOT, ROOT / "src" / "hermes_workflows")
# Files that a reader's own project has, or that a run writes.
_OF_OTHERS = ("refs/", "result.json", "flows/", "source/", "artifacts/", "FILE.PY", "flow.py", "reviews/")


def _text(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _text(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(_text(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in _anchors(there), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "examples/README.md"])
def test_every_file_that_a_page_for_contributors_names_is_there(name: str) -> None:
    bases = (*_BASES, (ROOT / name).parent)
    named = [path for path in _NAMED_FILE.findall(_text(ROOT / name)) if not path.startswith(_OF_OTHERS)]
    missing = [path for path in named if not any((base / path).exists() for base in bases)]
    # The workspace's and the build's own folders come with use.
    assert [path for path in missing if not path.startswith((".hermes/", "build/"))] == []


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([a-z/-]+)$", index, re.M))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    pages |= {f"stories/{page.stem}" for page in (ROOT / "docs" / "stories").glob("*.md")}
    assert pages <= listed
