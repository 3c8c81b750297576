"""Foreign text in Markdown of ours: each way to show it is made here, and none lets it out of its place.

    code_span   one line, as it is, in a sentence or a heading
    cell        the same in a table
    fence       many lines, as they are; the fence is longer than any row of its characters in them
    quote       Markdown of theirs, rendered, every line of it behind a `>`

In a quote there is no HTML, no image, no footnote, no address for links elsewhere, no alert and no drawing: an unclosed
comment hides what follows, an image or what a drawing loads tells a server who reads, footnotes gather at the end of
the page, where they could pose as ours, as an alert does at once, and what `[x]: address` says holds on the whole page.
"""

from __future__ import annotations

import re

_SHOWN = 200
# As Markdown counts lines: str.splitlines knows many more ends.
_LINE_END = re.compile(r"\r\n|\r|\n")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_INSIDE = r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
# `[x]: address`, also the end of one that began in an earlier line; but no `a[0]: b` of a program.
_DEFINITION = re.compile(rf"^((?:{_INSIDE}\[)?(?:[^\[\]\\]|\\.)*)\]:")
_ALERT = re.compile(rf"^({_INSIDE})\[!(?=[A-Za-z]+\])")
# What forges draw; the languages of programs are only coloured.
_DRAWN = re.compile(
    rf"^({_INSIDE}(?:`{{3,}}|~{{3,}}))\s*(?:mermaid|geojson|topojson|stl|math|plantuml|kroki|graphviz|dot)\b.*",
    re.IGNORECASE,
)


def code_span(text: str, limit: int = _SHOWN) -> str:
    """`text` as one line of inert Markdown, cut to `limit` characters."""
    line = " ".join(_printable(text).split()) or " "
    line = line if len(line) <= limit else f"{line[: limit - 1]}…"
    ticks = "`" * (1 + _longest(line, "`"))
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def cell(text: str, limit: int = 60) -> str:
    """A code span in a table, whose rows end cells at any `|` that no single backslash precedes."""
    return re.sub(r"\\*\|", r"\\|", code_span(text, limit)) if text else ""


def fence(text: str, language: str = "text") -> list[str]:
    """The lines of a fenced block."""
    ticks = "`" * max(3, 1 + _longest(text, "`"))
    return [f"{ticks}{language}", *map(_printable, lines_of(text)), ticks]


def quote(text: str) -> list[str]:
    """The lines of a block quote that is rendered as the Markdown it is."""
    return [f"> {_harmless(_printable(line))}".rstrip() for line in lines_of(text)]


def lines_of(text: str) -> list[str]:
    return _LINE_END.split(text.rstrip("\r\n"))


def _harmless(line: str) -> str:
    line = _TAG.sub("&lt;", line).replace("![", "!\\[").replace("[^", "\\[^")
    line = _ALERT.sub(r"\1\\[!", _DEFINITION.sub(r"\1]\:", line, count=1))
    return _DRAWN.sub(r"\1text", line)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else " " for char in text)


def _longest(text: str, char: str) -> int:
    return max(map(len, re.findall(f"{re.escape(char)}+", text)), default=0)
