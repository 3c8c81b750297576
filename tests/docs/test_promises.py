"""What the pages owe the project's rules: their length, their wording, and the quickstart letter for letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, blocks_of, name_of

_INDEPENDENT = (
    "not affiliated with, endorsed or sponsored by Nous Research or the Hermes Agent project",
    "independent project",
)
_LENGTHS = {"README.md": 200, "ARCHITECTURE.md": 150}
# Commands of other tools of this kind, and what is only planned: a reader would type them in vain.
_NOT_THERE = re.compile(r"(?:pip install|pipx install|uvx|uv tool install) hermes-workflows")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_front_pages_say_that_the_project_is_independent(name: str) -> None:
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split()).replace("An independent", "an independent")
    assert all(words in text for words in _INDEPENDENT)


@pytest.mark.parametrize(("name", "most"), _LENGTHS.items())
def test_a_page_that_everybody_reads_stays_short(name: str, most: int) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= most


def test_the_quickstart_of_the_readme_is_the_one_of_the_demo() -> None:
    quickstart = (ROOT / "examples" / "quickstart.sh").read_text(encoding="utf-8")
    assert quickstart in [block.text for block in blocks_of(ROOT / "README.md")]


def test_the_public_import_stands_in_the_readme() -> None:
    line = "from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow"
    assert line in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_nobody_is_told_to_install_a_release_that_is_not_there(page: Path) -> None:
    assert _NOT_THERE.search(page.read_text(encoding="utf-8")) is None


def test_every_decision_has_the_form_of_a_record() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        lines = record.read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(rf"# {record.name[:4]}\. .+", lines[0]), record.name
        assert re.fullmatch(r"Status: (accepted|superseded by \d{4}) · Date: \d{4}-\d\d-\d\d", lines[2]), record.name
        assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]
        assert len(lines) <= 40, f"{record.name} is longer than half a page"
