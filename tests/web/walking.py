"""Following the links of pages, as a browser finds them: also those of forms, pictures, scripts and streams."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

_ATTRIBUTES = ("href", "src", "action", "data-events", "data-check")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "foreign" in given.get("class", "").split():
            return
        self.found += [given[name] for name in _ATTRIBUTES if name in given]
        if given.get("http-equiv") == "refresh":
            self.found.append(given["content"].partition("url=")[2])


def links_in(address: str, page: str) -> list[str]:
    """What the page at `address` leads to, without fragments, and without what other people's texts link to."""
    reader = _Links()
    reader.feed(page)
    return [urldefrag(urljoin(address, link))[0] for link in reader.found]
