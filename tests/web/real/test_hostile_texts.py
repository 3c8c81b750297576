"""Texts of anybody in a real browser, without the policy of a served page: it shows them and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.hostile import EVERYTHING, PIECES, SIGNS

from hermes_workflows.core.plain import plain
from hermes_workflows.web.evidence import Piece
from hermes_workflows.web.links import href
from hermes_workflows.web.rendering import _TEMPLATES

TEXTS = (EVERYTHING, "\nfirst", *PIECES, *SIGNS, *(f"\"{each}'>{each}" for each in PIECES))
# Each place in which a template of ours puts a text, with the macro that the pages use where there is one.
PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>{{ texts[0] }}</title></head><body>
{% from "pieces.html" import piece %}
{% for text in texts %}
<section data-n="{{ loop.index0 }}" aria-label="{{ text }}">
<p>{{ text }}</p>
<code>{{ text }}</code>
{{ piece(shown(text)) }}
<input value="{{ text }}">
<textarea>
{{ text }}</textarea>
<svg><text>{{ text }}</text><title>{{ text }}</title></svg>
<a{{ link("/runs/" ~ (text | segment)) }}>{{ text }}</a>
</section>
<div class="theirs">{{ text | markdown }}</div>
{% endfor %}
</body></html>"""
READ = """all => all.map(each => ({
  n: Number(each.dataset.n),
  label: each.getAttribute("aria-label"),
  texts: ["p", "code", "pre", "svg text", "svg title", "a"].map(name => each.querySelector(name).textContent),
  written: each.querySelector("textarea").value,
  line: each.querySelector("input").getAttribute("value"),
  href: each.querySelector("a").getAttribute("href"),
  tags: [...each.querySelectorAll("*")].map(one => one.localName),
}))"""
TAGS = ["p", "code", "pre", "input", "textarea", "svg", "text", "title", "a"]


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A tab with nothing in it, that lets through no request, and `did`: what was run and asked for in it."""
    context = chromium.new_context(base_url="http://page.test")
    page = context.new_page()
    page.did = []
    page.on("dialog", lambda dialog: (page.did.append("ran"), dialog.dismiss()))
    page.on("pageerror", lambda error: page.did.append(f"ran into {error}"))
    page.route("**/*", lambda route: (page.did.append(f"asked for {route.request.url}"), route.abort()))
    yield page
    context.close()


def shown_in(page: Any, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    template = _TEMPLATES.from_string(PAGE)
    html = template.render(texts=texts, shown=lambda text: Piece("x", "text", text), link=lambda to: href(str, to))
    page.set_content(html, wait_until="load")
    found: list[dict[str, Any]] = page.eval_on_selector_all("section", READ)
    return found


def test_a_browser_shows_every_text_and_runs_and_asks_for_nothing(page: Any) -> None:
    texts = tuple(text.replace("\ud800", "").replace("\udfff", "") for text in TEXTS)
    found = shown_in(page, texts)
    assert [each["n"] for each in found] == list(range(len(texts)))
    for text, each in zip(texts, found, strict=True):
        # As a browser counts lines.
        line = plain(text, cr=True).replace("\r\n", "\n").replace("\r", "\n")
        assert each["texts"] == [line] * 6
        assert (each["label"], each["written"], each["line"]) == (line, line, line)
        assert each["tags"] == TAGS
        assert each["href"].startswith("/runs/")
    assert page.did == []


def test_markdown_of_anybody_loads_nothing_and_leads_only_where_it_says(page: Any) -> None:
    shown_in(page, TEXTS[:1] + PIECES)
    theirs = page.eval_on_selector_all(
        ".theirs *", "all => all.map(one => [one.localName, one.href || '', one.title, one.getAttributeNames()])"
    )
    assert {tag for tag, *_ in theirs}.isdisjoint({"script", "img", "iframe", "style", "form", "input", "svg", "link"})
    for tag, to, title, names in theirs:
        assert not [name for name in names if name.startswith("on") or name in ("src", "style", "id", "name")]
        if tag == "a" and to:
            assert to.startswith(("http://", "https://", "mailto:"))
            assert title
    for link in page.query_selector_all(".theirs a[href^='javascript']"):
        raise AssertionError(link)
    assert page.did == []
