"""Prompts in files: strict placeholders, and a file that belongs to its workflow's code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contract.test_loader import loader, write

from hermes_workflows.authoring.prompts import PromptFile
from hermes_workflows.errors import InvalidInput

FLOW = """
from hermes_workflows import workflow
from hermes_workflows.authoring import prompt_file

REVIEW = prompt_file("review.md")

@workflow
async def draft(topic: str) -> str:
    return REVIEW.render(topic=topic)
"""


@pytest.fixture(autouse=True)
def _modules_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


@dataclass
class Topic:
    title: str
    size: int


def prompt(folder: Path, text: str) -> PromptFile:
    write(folder, {"p.md": text})
    return PromptFile("p.md", folder)


def refused(found: PromptFile, **values: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        found.render(**values)
    return caught.value.message


def test_texts_go_in_as_they_are_and_other_values_as_json(tmp_path: Path) -> None:
    found = prompt(tmp_path, "{{ topic }}: {{count}} of {{all}}\n{{topic}}\n")
    rendered = found.render(topic="a {{count}}\nb", count=3, all=Topic("é", 2))
    assert rendered == 'a {{count}}\nb: 3 of {\n  "title": "é",\n  "size": 2\n}\na {{count}}\nb\n'


def test_single_braces_are_text_and_double_ones_can_be_written(tmp_path: Path) -> None:
    found = prompt(tmp_path, 'Answer {"a": {"b": 1}} like \\{{name}} for {{self}}')
    assert found.render(self="you") == 'Answer {"a": {"b": 1}} like {{name}} for you'


def test_everything_that_does_not_fit_is_named_at_once_with_its_line(tmp_path: Path) -> None:
    found = prompt(tmp_path, "{{topic}}\n{{missing}}\n{{ not a name }}\n{{open\n{{topic}}")
    assert refused(found, topic="t", topci="t") == (
        "prompt file p.md: line 3: {{ not a name }} is no placeholder; line 4: {{ is no placeholder; "
        "line 2: no value for missing; there is no {{topci}} in it"
    )


def test_a_value_without_json_is_refused_by_its_name(tmp_path: Path) -> None:
    found = prompt(tmp_path, "{{image}} {{thing}}")
    assert "image is no text and has no JSON" in refused(found, image=b"\xff", thing="")
    assert "thing is no text and has no JSON" in refused(found, image="", thing=object())


def test_line_ends_and_a_mark_of_the_checkout_change_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert PromptFile("p.md", tmp_path).render() == "one\ntwo\n"


@pytest.mark.parametrize("place", ["flows/review.md", "review.md"])
def test_a_prompt_lies_beside_the_code_or_in_the_root_and_belongs_to_the_workflow(tmp_path: Path, place: str) -> None:
    loaded = loader(tmp_path, {"flows/a.py": FLOW, place: "About {{topic}}"}).load("flows/a.py")
    assert dict(loaded.sources) == {"flows/a.py": FLOW.encode(), place: b"About {{topic}}"}
    (module,) = loaded.modules
    assert loaded.find(module, "REVIEW").render(topic="it") == "About it"


def test_a_changed_prompt_is_other_code_and_is_read_again(tmp_path: Path) -> None:
    made = loader(tmp_path, {"a.py": FLOW, "review.md": "One {{topic}}"})
    first = made.load("a.py")
    assert first.find("a", "REVIEW").render(topic="it") == "One it"
    write(tmp_path, {"review.md": "Another {{topic}}"})
    second = made.fresh(first)
    assert second.code == made.code_of("a.py") != first.code
    assert second.find("a", "REVIEW").render(topic="it") == "Another it"


def test_a_missing_prompt_stops_the_loading_and_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        loader(tmp_path, {"a.py": FLOW}).load("a.py")
    assert caught.value.message == "a.py:5: prompt_file('review.md'): no such file"


@pytest.mark.parametrize("name", ["../outside.md", "/etc/hostname"])
def test_a_prompt_outside_the_workspace_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"outside.md": "text"})
    with pytest.raises(InvalidInput, match="workspace"):
        loader(tmp_path / "inside", {"a.py": FLOW.replace("review.md", name)}).load("a.py")
