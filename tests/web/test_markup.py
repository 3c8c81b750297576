"""Foreign Markdown becomes HTML that shows, and does nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.web.markup import clean, markdown

_TAGS = frozenset(
    "p em strong code pre ul ol li a h4 h5 h6 blockquote hr br s table thead tbody tr th td".split()  # noqa: SIM905
)
_ATTRIBUTES = frozenset(["href", "rel", "class", "title", "tabindex", "start"])
_PARTS = (
    *(
        "<",
        ">",
        "![a](b)",
        "[a](",
        "javascript:",
        "JaVa\tscript:",
        "data:",
        "http://x",
        ")",
        "`",
        "```",
        "\n",
        "\n\n",
        "|",
    ),
    *(
        "---",
        "<script>",
        "<img src=x onerror=1>",
        "&lt;",
        "&#106;",
        "# ",
        "* ",
        "> ",
        "~~",
        "**",
        "\x00",
        "\u202e",
        '"',
    ),
    *("'", "]", ": ", "|a|\n|:-:|\n|b|\n", "[x]: data:text/html,y\n"),
)
_MARKUP = st.lists(st.sampled_from(_PARTS), max_size=24)


class _Reader(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


@given(_MARKUP)
@settings(max_examples=300, deadline=None)
def test_no_markdown_makes_anything_that_runs_or_loads(parts: list[str]) -> None:
    read = _Reader(markdown("".join(parts)))
    assert read.tags <= _TAGS
    assert {name for name, _ in read.attributes} <= _ATTRIBUTES
    for name, value in read.attributes:
        if name == "href":
            assert (value or "").startswith(("http://", "https://", "mailto:"))


def test_an_image_is_a_marked_link_and_a_heading_stays_below_those_of_the_page() -> None:
    html = markdown("# Top\n\n![seen](https://example.org/a.png)")
    assert "<h4>Top</h4>" in html
    assert "<img" not in html
    assert 'href="https://example.org/a.png" rel="noopener noreferrer nofollow" class="foreign"' in html


def test_a_link_without_an_address_leads_nowhere() -> None:
    assert "<p><a>here</a></p>" in markdown("[here]()")


def test_a_long_text_is_cut_and_says_so() -> None:
    html = markdown("a" * 200_010)
    assert "cut; 10 more characters" in html


def test_nothing_turns_the_reading_direction_or_hides_in_controls() -> None:
    assert clean("a\u202eb\u2066c\x00d\x1be\nf") == "abc\ufffdd\ufffde\nf"


def test_lines_stay_lines() -> None:
    assert markdown("first\nsecond").strip() == "<p>first<br />\nsecond</p>"
