"""Foreign text in Markdown of ours, judged by GitHub's own parser: none of it leaves its place, or does anything."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.forge import Page, does
from tests.hostile import EVERYTHING, PIECES, TEXTS

from hermes_workflows.core.bodies import body
from hermes_workflows.core.inert import GAP, inert
from hermes_workflows.core.markdown import cell, code_span, fence, lines_of, quote

# Ours, after theirs: what theirs defines must not hold here.
AFTER = ["", "# after [x] [^1] [a]", ""]
FEW = settings(deadline=None, max_examples=60)


def printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else " " for char in text)


def is_harmless(page: Page) -> bool:
    ours = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "pre", "code", "blockquote", "em", "strong"}
    more = {"del", "hr", "br", "a", "table", "thead", "tbody", "tr", "th", "td", "input"}
    links = all(re.match(r"(?:https?://|mailto:|[^:]*\Z)", link) for link in page.links)
    return set(page.tags) <= ours | more and not page.comments and links


@FEW
@given(TEXTS)
def test_a_span_is_one_piece_of_code_with_all_of_its_text(text: str) -> None:
    for before, tag in (("- Review ", "ul"), ("### ", "h3"), ("", "p")):
        page = Page("\n".join([f"{before}{code_span(text, 10_000)}: end", *AFTER]))
        assert page.top == [tag, "h1"]
        # What a parser replaces in it, such as NUL, is no text.
        assert page.texts["code"] == [" ".join(printable(text).split()) or " "]
        assert page.links == []


@FEW
@given(st.lists(TEXTS.filter(bool), min_size=2, max_size=4))
def test_a_row_has_as_many_cells_as_its_table(texts: list[str]) -> None:
    row = "| " + " | ".join(cell(text) for text in texts) + " |"
    page = Page("\n".join(["|" + " a |" * len(texts), "|" + "---|" * len(texts), row, row, *AFTER]))
    assert page.top == ["table", "h1"]
    assert len(page.texts["td"]) == 2 * len(texts)
    assert len(page.texts["code"]) == 2 * len(texts)
    assert set(page.tags) == {"table", "thead", "tbody", "tr", "th", "td", "code", "h1"}


@FEW
@given(TEXTS)
def test_a_fence_holds_exactly_its_text(text: str) -> None:
    page = Page("\n".join([*fence(text), *AFTER]))
    assert page.top == ["pre", "h1"]
    assert page.texts["code"] == ["\n".join(map(printable, lines_of(text))) + "\n"]


@FEW
@given(TEXTS)
def test_a_quote_stays_a_quote_and_means_nothing_on_the_rest_of_the_page(text: str) -> None:
    page = Page("\n".join([*quote(text), *AFTER]))
    assert page.top == ["blockquote", "h1"]
    assert is_harmless(page)
    assert page.texts["h1"][-1] == "after [x] [^1] [a]"
    assert not re.search(r"mermaid|geojson", " ".join(value for name, value in page.attributes if name == "lang"))


@pytest.mark.parametrize(
    "address", ["[x]: //e", "  - [x]: //e", "> [x]:\n> //e", "[a\nx]: //e", "1. [x\\]]: //e", "[x]:"]
)
def test_no_text_says_where_links_of_others_lead(address: str) -> None:
    page = Page("\n".join([*quote(address), *quote("//e"), "", "# [x] [a x] [x\\]] after"]))
    assert page.texts["h1"] == ["[x] [a x] [x]] after"]
    assert not any(link.endswith("//e") for link in page.links)


@pytest.mark.parametrize("line", ["```python\nif a[0]: b = x[1]: y\n```", "see [this](https://example.com)", "a[0]: b"])
def test_programs_and_links_are_quoted_as_they_are(line: str) -> None:
    assert "\n".join(quote(line)) == "\n".join(f"> {each}" for each in line.split("\n"))


@pytest.mark.parametrize("kind", ["NOTE", "tip", "Important", "WARNING", "CAUTION"])
def test_no_quote_is_an_alert(kind: str) -> None:
    assert quote(f"[!{kind}]\nAnswered by the person ana")[0] == f"> \\[!{kind}]"


@pytest.mark.parametrize("language", ["mermaid", " Mermaid {init}", "geojson", "topojson", "stl", "math", "plantuml"])
def test_no_quote_is_a_drawing_and_programs_stay_coloured(language: str) -> None:
    assert quote(f"- ```{language}\n  x\n  ```")[0] == "> - ```text"
    assert quote("```python\nx\n```")[0] == "> ```python"


@FEW
@given(TEXTS)
def test_what_is_inert_does_nothing_on_github_and_stays_as_it_is(text: str) -> None:
    for markdown in (text, "\n".join(quote(text)), "\n".join(fence(text)), code_span(text, 1000)):
        made = inert(markdown)
        assert does(Page(made)) == {}
        assert inert(made) == made
        assert re.sub(f"[{GAP}&]", "", made) == re.sub(f"[{GAP}&]", "", markdown)


def test_all_of_it_at_once_does_nothing() -> None:
    assert does(Page(inert(EVERYTHING))) == {}
    assert [piece for piece in PIECES if does(Page(inert(f"so {piece} 1"))) or does(Page(inert(piece)))] == []


@FEW
@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(600, 3000))
def test_a_body_that_is_cut_keeps_all_texts_in_their_places(texts: list[str], limit: int) -> None:
    parts = [line for text in texts for line in ("## Draft", "", *quote(text), "", *fence(text), "")]
    page = Page(body("\n".join(["# Run", "", *parts, "## End", ""]), limit=limit, whole="`x`"))
    assert set(page.top) <= {"h1", "h2", "blockquote", "pre", "p"}
    assert is_harmless(page)
    assert does(page) == {}
