"""The pages of the documentation as blocks of code, each with what is to be done to it.

A fenced block says by its language what it is: `bash` runs, `console` shows commands and what a terminal prints,
`python` runs or becomes a file, `json` is read; `text`, `markdown` and `yaml` are no code.
A comment on the line before says more:

    <!-- check: file flows/greet.py -->     the block is this file of the page's workspace
    <!-- check: same-as examples/x.sh -->   the block is this file of the project, letter for letter
    <!-- check: prints -->                  the block is what the last one printed
    <!-- check: exit 3 -->                  the status the block ends with, 0 when nothing is said
    <!-- check: on a terminal -->           it runs with its output on a terminal
    <!-- check: in the checkout -->         it runs in a copy of this project, not in the page's workspace
    <!-- check: needs jq -->                without that program it cannot be tried
    <!-- check: skip, because … -->         it is not run

Several are joined by `;`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The skills of a plugin are pages that programs read.
_PLACES = ("docs", "examples", "src/hermes_workflows/hermes_plugin/skills")
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(page for place in _PLACES for page in (ROOT / place).rglob("*.md"))]
    if path.name != "LICENSE.md"
)

_COMMENT = re.compile(r"<!-- check: (.*) -->")
_FENCE = re.compile(r"(`{3,})(.*)")
_WISHES = ("file", "same-as", "prints", "exit", "on", "in", "needs", "skip")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where its fence opens."""

    page: Path
    line: int
    language: str
    text: str
    wishes: dict[str, str]

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order, but for the directives of the site generator."""
    blocks, lines = [], page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if opening is None:
            at += 1
            continue
        end = next(n for n in range(at + 1, len(lines)) if lines[n] == opening[1])
        if not opening[2].startswith("{"):
            text = "\n".join([*lines[at + 1 : end], ""])
            blocks.append(Block(page, at + 1, opening[2], text, _wishes(lines[at - 1] if at else "")))
        at = end + 1
    return blocks


def _wishes(line: str) -> dict[str, str]:
    said = _COMMENT.fullmatch(line)
    parts = (part.strip().partition(" ") for part in said[1].split(";")) if said else ()
    wishes = {word.rstrip(","): rest for word, _, rest in parts}
    unknown = wishes.keys() - set(_WISHES)
    assert not unknown, f"{line} says {unknown}, which means nothing"
    return wishes
