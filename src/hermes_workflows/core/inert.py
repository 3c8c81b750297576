"""Foreign text on its way to a forge, made inert: it calls nobody, points at no issue, closes and commands nothing.

A README shows text of agents and users. As the body of a pull request or a comment the same text is read by a
program that acts on it: it notifies `@people`, links `#1`, closes what "fixes #1" names, and bots obey `/commands`.
A zero-width space inside each of these keeps what is seen and takes away what is done. It is put in everywhere, also
in code, because not every forge and no bot knows Markdown; and entities that would turn into such a mark are broken.
"""

from __future__ import annotations

import html
import re

GAP = "\N{ZERO WIDTH SPACE}"

_ENTITY = re.compile(r"&(?=(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,10});)")
# Characters that an entity may not stand for: those that the rules below look for.
_MARKS = frozenset("@#!:/~%")
_CLOSING = r"clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?"
_REFERENCE = rf"(?:[\w.-]+/[\w.-]+)?[#!][\\&]?{GAP}|GH-{GAP}|https?:|(?-i:[A-Z][A-Z0-9_]+-[0-9])"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"@(?!{GAP})"), f"@{GAP}"),
    # A number after `#` or `!`, also when a backslash or an entity writes it.
    (re.compile(r"(?<!&)([#!])(?=[\\&]?#?[0-9])"), rf"\1{GAP}"),
    (re.compile(r"\b(GH-)(?=[0-9])", re.IGNORECASE), rf"\1{GAP}"),
    (re.compile(r"/(issues|pull|pulls|merge_requests|discussions|work_items)/(?=[0-9])"), rf"/\1/{GAP}"),
    # The word itself as well: Jira and others have issues that are called otherwise.
    (re.compile(rf"\b(?=(?:{_CLOSING})\W{{1,4}}\s*(?:{_REFERENCE}))(\w)", re.IGNORECASE), rf"\1{GAP}"),
    # `::set-env name=…::` of a runner's log, and its older `##[command]`.
    (re.compile(r"(?<![\w:]):(?=:[A-Za-z])"), f":{GAP}"),
    (re.compile(r"##(?=\[)"), f"#{GAP}#"),
    # `/merge`, `/approve`, `/lgtm` at the start of a line, but no path.
    (re.compile(r"(?m)^([ \t>*+-]*)/(?=[a-z][\w-]*(?:\s|$))"), rf"\1/{GAP}"),
)


def inert(text: str) -> str:
    """`text` (Markdown) as it may be given to a forge; what is inert already stays as it is."""
    text = _ENTITY.sub(lambda found: _broken(found, text), text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _broken(found: re.Match[str], text: str) -> str:
    entity = text[found.start() : text.index(";", found.start()) + 1]
    meant = html.unescape(entity)
    # Letters and digits need no entity, unless they are to be read in a place where they are not seen.
    return f"&{GAP}" if meant in _MARKS or (len(meant) == 1 and meant.isascii() and meant.isalnum()) else "&"
