"""The body of a pull request: a run's README, made inert, and cut by section where a forge takes no more.

A forge refuses a body of more than 65,536 characters. What does not fit is left out in whole blocks (a paragraph, a
fenced block, a line of a table or of a list), and the place says so; so a cut is never inside a fence, and what
follows a cut reads as it was meant. Short sections come before long ones: everybody sees that each one exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .inert import inert

LIMIT = 65_000
"""Characters of a body, counted in UTF-16 units: nobody counts more. 536 are left for what others add."""

_OPENING = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
# A block that may be cut between any two of its lines.
_ROW = re.compile(r"\s*(?:\||[-*+] |\d+[.)] )")
# As Markdown counts them: str.splitlines knows many more ends.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# What is said in place of what is left out, at most.
_NOTE_SIZE = 200
# Sections at the beginning, and at the end, that stay ones of their own.
_ENDS = 50


@dataclass
class _Section:
    """A heading, if it has one, and the blocks below it: what may be left out, one by one."""

    blocks: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(size, self.blocks))


def body(readme: str, *, limit: int = LIMIT, whole: str = "") -> str:
    """The body for a README; `whole` says where all of it is, in Markdown of ours, where something was left out."""
    text = inert(readme)
    if size(text) <= limit:
        return text
    sections = _fewer(list(_sections(text)))
    shares = _shares([each.size for each in sections], limit - _NOTE_SIZE * len(sections))
    return "".join(_cut(section, share, whole) for section, share in zip(sections, shares, strict=True))


def _fewer(sections: list[_Section]) -> list[_Section]:
    """At most as many as may each say that something is left out; of more, those in the middle become one."""
    if len(sections) <= 2 * _ENDS:
        return sections
    between = _Section([block for each in sections[_ENDS:-_ENDS] for block in each.blocks])
    return [*sections[:_ENDS], between, *sections[-_ENDS:]]


def size(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """What each section gets: as much as it wants when that is little, and an equal part of the rest."""
    shares = [0] * len(sizes)
    left = max(room, 0)
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], left // (len(sizes) - done))
        left -= shares[place]
    return shares


def _cut(section: _Section, share: int, whole: str) -> str:
    if section.size <= share:
        return "".join(section.blocks)
    kept: list[str] = []
    # Not all of them fit, or there would be nothing to cut.
    while share >= size(block := section.blocks[len(kept)]):
        kept.append(block)
        share -= size(block)
    left_out = section.size - sum(map(size, kept))
    said = f"{left_out:,} characters of this section are left out here" + (f"; {whole} has them" if whole else "")
    return f"{''.join(kept).rstrip(chr(10))}\n\n_{said}._\n\n"


def _sections(text: str) -> Iterator[_Section]:
    section = _Section()
    for block in _blocks(text):
        if _HEADING.match(block) and section.blocks:
            yield section
            section = _Section()
        section.blocks.append(block)
    yield section


def _blocks(text: str) -> Iterator[str]:
    """The text in pieces that are left out as a whole; joined they are the text."""
    gathered: list[str] = []
    fence = ""
    for line in _LINE.findall(text):
        if fence:
            gathered.append(line)
            if _closes(line, fence):
                fence = ""
                yield "".join(gathered)
                gathered = []
            continue
        opening = _OPENING.match(line)
        # A heading, a fence and a row begin a block of their own; an empty line ends one.
        if gathered and (opening or _HEADING.match(line) or _ROW.match(line)):
            yield "".join(gathered)
            gathered = []
        gathered.append(line)
        if opening:
            fence = opening["fence"]
        elif not line.strip() or _HEADING.match(line):
            yield "".join(gathered)
            gathered = []
    if gathered:
        yield "".join(gathered)


def _closes(line: str, fence: str) -> bool:
    found = re.fullmatch(r" {0,3}(`{3,}|~{3,})\s*", line)
    return found is not None and found[1][0] == fence[0] and len(found[1]) >= len(fence)
