"""Foreign Markdown becomes HTML that shows, and does nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile import TEXTS

from hermes_workflows.web.export.names import FILE, file_of, part_of
from hermes_workflows.web.markup import clean, markdown
from hermes_workflows.web.pages.artifact import _suffix
from hermes_workflows.web.rendering import segment

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


@given(_MARKUP.map("".join) | TEXTS)
@settings(max_examples=300, deadline=None)
def test_no_markdown_makes_anything_that_runs_or_loads(text: str) -> None:
    made = markdown(text)
    made.encode()
    read = _Reader(made)
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


@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=4))
@settings(deadline=None)
def test_every_address_is_a_file_of_its_own_that_every_system_takes(one: list[str], other: list[str]) -> None:
    def written(parts: list[str]) -> str:
        return "/" + "/".join(segment(clean(part)) for part in parts)

    files = [file_of(written(parts)) for parts in (one, other)]
    assert all(FILE.fullmatch(file) and len(file) < 200 and ".." not in file.split("/") for file in files)
    same = written(one).strip("/") == written(other).strip("/")
    assert (files[0].lower() == files[1].lower()) == same


@given(TEXTS)
@settings(deadline=None)
def test_a_part_of_a_path_is_no_device_and_hides_nothing(text: str) -> None:
    part = part_of(text)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9._~-]*", part)
    assert part.split(".")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt9"}
    assert not part.endswith(".")


@given(TEXTS)
@settings(deadline=None)
def test_the_name_of_a_download_ends_its_header_nowhere(text: str) -> None:
    assert re.fullmatch(r"(?:\.[A-Za-z0-9]{1,8})?", _suffix(text))
