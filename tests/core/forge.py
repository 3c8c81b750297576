"""What GitHub makes of Markdown: its own parser, and what it does with the text that comes out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

_EMPTY = frozenset({"br", "hr", "img", "input"})
_ACTS = {
    "mention": r"(?<![A-Za-z0-9`/])@[A-Za-z0-9][A-Za-z0-9-]*",
    "reference": r"(?<![A-Za-z0-9&])(?:[\w.-]+/[\w.-]+)?[#!][0-9]+|\bGH-[0-9]+|/(?:issues|pull|discussions)/[0-9]+",
    "closes": r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?\s+(?:[\w.-]+/[\w.-]+)?(?:#[0-9]|https?://)",
}
# Bots and the logs of runners read the source, line by line.
_SOURCE_ACTS = {
    "command": r"(?m)^[ \t]*(?:::[a-z][\w-]*(?: [^:\n]*)?::|##\[[a-z])|^[ \t>*+-]*/(?:approve|merge|lgtm)(?:\s|$)",
}


class Page(HTMLParser):
    """What a browser would get: `top` are the blocks of the page, `tags` all its elements, `nodes` what is read."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.source = markdown
        self.top: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.nodes: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.comments: list[str] = []
        sent = markdown.encode("utf-8", "replace").decode()
        self.feed(cmarkgfm.github_flavored_markdown_to_html(sent, Options.CMARK_OPT_FOOTNOTES))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._open:
            self.top.append(tag)
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _EMPTY:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.nodes.append(data)
        for tag in self._open:
            self.texts[tag][-1] += data

    @property
    def links(self) -> list[str]:
        return [value for name, value in self.attributes if name == "href"]


def does(page: Page) -> dict[str, list[str]]:
    """What GitHub, and what listens there, would do about a page, by kind."""
    # A tag between two signs keeps them apart.
    rules = [(rule, node, kind) for kind, rule in _ACTS.items() for node in page.nodes]
    rules += [(rule, page.source, kind) for kind, rule in _SOURCE_ACTS.items()]
    return {kind: each for rule, text, kind in rules if (each := [one.group() for one in re.finditer(rule, text)])}
