"""Foreign text in HTML: each way to show it is made here, and none runs, loads or fetches anything.

clean       plain text: nothing in it turns the reading direction; templates put every value through it
markdown    Markdown of agents and people: no raw HTML, no images, links marked and never followed by a referrer
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from ..core.plain import plain

# Characters. A document beyond that is for an editor.
_LONGEST = 200_000
_SCHEMES = ("http://", "https://", "mailto:")


def clean(text: str) -> str:
    """`text` without what a browser would obey beyond showing it."""
    return plain(text, cr=True)


def finalize(value: Any) -> Any:
    """What templates do with each value: text is cleaned, and Markup was made by a function of this module."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def markdown(text: str) -> Markup:
    """`text` as safe HTML."""
    cut = text[:_LONGEST]
    rest = f"\n\n… cut; {len(text) - _LONGEST:,} more characters" if len(text) > _LONGEST else ""
    return Markup(_READER.render(clean(cut) + rest))


def _reader() -> MarkdownIt:
    # What a program printed line by line is Markdown to nobody: its lines stay lines, as in comments on a forge.
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    # An image would tell a server who reads; without the rule it is a link with a `!` before it.
    reader.disable("image")
    reader.validateLink = _is_link  # type: ignore[method-assign]  # the library's own way to say which links hold
    reader.add_render_rule("link_open", _link)
    for name in ("heading_open", "heading_close"):
        reader.add_render_rule(name, _heading)
    for name in ("fence", "code_block"):
        reader.add_render_rule(name, _block)
    for name in ("table_open", "th_open", "td_open"):
        reader.add_render_rule(name, _table)
    return reader


def _is_link(url: str) -> bool:
    return url.strip().lower().startswith(_SCHEMES)


def _link(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    if not tokens[at].attrGet("href"):
        # `[text]()` leads nowhere; with an empty address it would lead to our own page.
        tokens[at].attrs.clear()
        return self.renderToken(tokens, at, options, env)
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    tokens[at].attrSet("class", "foreign")
    # Where it leads is not what it says.
    tokens[at].attrSet("title", str(tokens[at].attrGet("href") or ""))
    return self.renderToken(tokens, at, options, env)


def _heading(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    # Below the headings of the page, whose outline no text of others may pose as.
    tokens[at].tag = f"h{min(int(tokens[at].tag[1]) + 3, 6)}"
    return self.renderToken(tokens, at, options, env)


def _block(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    # What is wider than the page can be scrolled by keys.
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>\n'


def _table(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    # No style within a page: its policy refuses them all.
    attributes = ' tabindex="0"' if tokens[at].tag == "table" else ""
    return f"<{tokens[at].tag}{attributes}>"


_READER = _reader()
