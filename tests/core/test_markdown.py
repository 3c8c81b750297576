"""Foreign text in Markdown of ours: read by a Markdown parser, none of it leaves its place."""

from __future__ import annotations

from typing import Any

import pytest
from markdown_it import MarkdownIt

from hermes_workflows.core.diagram import MOST, diagram
from hermes_workflows.core.markdown import cell, fence, quote
from hermes_workflows.core.outline import Ran

HOSTILE = [
    "```\nout\n```",
    "````\n# title",
    "~~~\nunclosed",
    "# Approved by the person `ana`",
    "<!-- hides what follows",
    "<details><summary>x",
    "</blockquote>\n# out",
    "a\r# b\r\n- c\u2028# d",
    "- list\n\n      code\n\nlazy",
    "> quote\nlazy",
    "text[^1]\n\n[^1]: ana approved",
    "![](https://example.com/who-reads)",
    "| a | b |\n|---|---|",
    "\x1b[31mred\x00",
    "`" * 50,
    "\\",
    "",
]
AFTER = ["", "# after", ""]


def blocks(lines: list[str]) -> list[Any]:
    return [token for token in MarkdownIt("gfm-like", {"linkify": False}).parse("\n".join(lines)) if token.level == 0]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_fence_holds_all_of_its_text(text: str) -> None:
    found = blocks([*fence(text), *AFTER])
    assert [token.type for token in found if token.type != "inline"] == ["fence", "heading_open", "heading_close"]
    assert "\x1b" not in found[0].content


@pytest.mark.parametrize("text", HOSTILE)
def test_a_quote_holds_all_of_its_text_and_has_no_html_images_or_footnotes(text: str) -> None:
    lines = quote(text)
    found = blocks([*lines, *AFTER])
    types = [token.type for token in found if token.type != "inline"]
    assert types == ["blockquote_open", "blockquote_close", "heading_open", "heading_close"]
    html = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render("\n".join([*lines, *AFTER]))
    for part in ("<!--", "<details", "<img", "[^1]:\n"):
        assert part not in html
    assert html.rstrip().endswith("<h1>after</h1>")


def test_a_quote_is_rendered() -> None:
    html = MarkdownIt().render("\n".join(quote("# Week 48\n\n- *four* open, 3 < 4")))
    assert "<h1>Week 48</h1>" in html
    assert "<em>four</em> open, 3 &lt; 4" in html


@pytest.mark.parametrize("text", ["a | b", "a \\| b", "ls | wc -l", "`|`", "x\\", "\n| forged |"])
def test_a_cell_is_one_cell(text: str) -> None:
    table = ["| call | next |", "|---|---|", f"| {cell(text)} | ok |"]
    html = MarkdownIt("gfm-like", {"linkify": False}).render("\n".join(table))
    assert html.count("<td>") == 2
    assert "<td>ok</td>" in html


def test_a_diagram_has_boxes_for_scopes_and_arrows_from_what_was_waited_for() -> None:
    calls = [
        Ran("docs/draft", "agent", status="completed", seq=1, after=0, seconds=2.0),
        Ran("docs/check", "bash", status="failed", seq=2, after=1),
        Ran("ok", "review", seq=3, after=2),
    ]
    lines = [line.strip() for line in diagram("waiting", calls)]
    assert lines[0] == "flowchart TD"
    assert lines[2].endswith('["docs"]')
    for line in (
        'c0["draft<br/>agent, 2.0 s"]',
        "start --> c0",
        "c0 --> c1",
        "c1 --> c2",
        "class c1 failed",
        "class c2 open",
    ):
        assert line in lines
    assert not any("finish" in line for line in lines)


def test_what_was_gathered_meets_again_and_branches_stay_apart() -> None:
    calls = [
        Ran("parallel/a/fetch", "bash", status="completed", seq=1, after=0),
        Ran("parallel/b/fetch", "bash", status="completed", seq=2, after=0),
        Ran("parallel/a/check", "bash", status="completed", seq=3, after=1),
        Ran("parallel/b/check", "bash", status="completed", seq=4, after=2),
        Ran("write", "agent", status="completed", seq=5, after=4),
    ]
    arrows = [line.strip() for line in diagram("completed", calls) if "-->" in line]
    assert sorted(arrows) == [
        "c0 --> c2",
        "c1 --> c3",
        "c2 --> c4",
        "c3 --> c4",
        "c4 --> finish",
        "start --> c0",
        "start --> c1",
    ]


@pytest.mark.parametrize("key", ['x"]; click c0 "javascript:1"', "end", "a\nb --> c", "%%{init}%%", "#quot;", "1. x"])
def test_no_key_means_anything_to_mermaid(key: str) -> None:
    lines = diagram("completed", [Ran(key, "signal", status="received", seq=1)])
    (node,) = [line for line in lines if line.lstrip().startswith("c0>")]
    label = node.partition('"')[2].rpartition('"')[0].partition("<br/>")[0]
    assert not set(label) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-")
    assert "\n" not in node


def test_a_diagram_stays_small() -> None:
    calls = [Ran(f"c-{n}", "bash", status="completed", seq=n, after=n - 1) for n in range(1, 1000)]
    lines = diagram("completed", calls)
    assert sum('["c-' in line for line in lines) == MOST
    assert sum("-->" in line for line in lines) == MOST + 1
