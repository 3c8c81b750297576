"""What stands beside a question, as pieces that a template can show: text as Markdown, diffs, values as fields.

Foreign text all of it. What it claims to be decides how it looks, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from pydantic import BaseModel

from ..core.changes import ABSENT, Change
from ..core.outline import Ran, outcome
from ..core.receipts import ReviewReceipt
from ..review.evidence import evidence_of
from .rendering import pretty

_DIFF_STARTS: Final = ("diff --git ", "--- ", "@@ -", "Index: ")
_PROSE: Final = frozenset({".md", ".markdown", ".txt", ".rst", ""})
# Calls whose words are shown: the newest, since those led to the question.
_CALLS: Final = 20
# What an answer must fit: for programs, a question's page has its form.
SCHEMA: Final = ("returns",)
# What has more parts, or lies deeper, is JSON; what is longer, in characters or lines, is for an editor.
_ITEMS: Final = 100
_DEEPEST: Final = 3
_LONGEST: Final = 200_000
_LINES: Final = 5000


@dataclass(frozen=True)
class DiffLine:
    kind: Literal["added", "removed", "place", "same"]
    text: str


@dataclass(frozen=True)
class Piece:
    """`text` is the whole of it; a diff has its `lines`, a value with fields or items its `parts`."""

    title: str
    kind: Literal["markdown", "text", "value", "diff", "fields", "items", "missing"]
    text: str = ""
    lines: tuple[DiffLine, ...] = ()
    parts: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Said:
    """One call that came before, with what it wrote."""

    key: str
    about: str
    pieces: tuple[Piece, ...]


def pieces_of(question: ReviewReceipt) -> tuple[Piece, ...]:
    """All that the author has put beside a question, in his order."""
    assert question.request is not None  # a request receipt always holds its question
    given = question.request.input
    pieces = [] if given is None else [piece_of("Input", given)]
    for each in evidence_of(question):
        if each.missing is not None:
            pieces.append(Piece(each.title, "missing", f"{each.path}: {each.missing}"))
        else:
            pieces.append(piece_of(each.title, each.value, each.path))
    return tuple(pieces)


def without(value: Any, names: Collection[str]) -> Any:
    """A request or an output without the parts that are for programs, or are shown elsewhere."""
    shown = value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value
    return {name: each for name, each in shown.items() if name not in names} if isinstance(shown, Mapping) else shown


def piece_of(title: str, value: Any, path: str | None = None, *, depth: int = 0) -> Piece:
    """A value as it is best read; `path` is the name of the file that it is the text of."""
    if isinstance(value, str):
        return _text(title, value, path)
    if not isinstance(value, Mapping | list):
        return Piece(title, "value", _cut(pretty(value)))
    if depth < _DEEPEST and 0 < len(value) <= _ITEMS:
        if isinstance(value, Mapping):
            parts = (piece_of(str(name), each, depth=depth + 1) for name, each in value.items())
            return Piece(title, "fields", parts=tuple(parts))
        if any(isinstance(each, str | Mapping) for each in value):
            return Piece(title, "items", parts=tuple(piece_of("", each, depth=depth + 1) for each in value))
    return Piece(title, "text", _cut(pretty(value)))


def _text(title: str, text: str, path: str | None) -> Piece:
    if text.startswith(_DIFF_STARTS):
        return Piece(title, "diff", lines=_lines(text.splitlines()))
    if PurePosixPath(path or "").suffix.lower() in _PROSE:
        return Piece(title, "markdown", text)  # cut where it is read
    return Piece(title, "text", _cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n[… {len(text) - _LONGEST:,} more characters]"


def _lines(lines: Sequence[str]) -> tuple[DiffLine, ...]:
    shown = tuple(map(diff_line, lines[:_LINES]))
    more = len(lines) - len(shown)
    return (*shown, DiffLine("place", f"[… {more:,} more lines]")) if more else shown


def changed(change: Change) -> Piece:
    """One difference between two times of asking."""
    if change.lines:
        return Piece(change.place, "diff", lines=_lines(change.lines))
    lines = [*(f"-{line}" for line in _told(change.before)), *(f"+{line}" for line in _told(change.after))]
    return Piece(change.place, "diff", lines=_lines(lines))


def _told(value: Any) -> list[str]:
    return [] if value is ABSENT else pretty(value).splitlines()


def diff_line(line: str) -> DiffLine:
    if line.startswith(("+++", "---", "@@", "diff ")):
        return DiffLine("place", line)
    kinds: Mapping[str, Literal["added", "removed"]] = {"+": "added", "-": "removed"}
    return DiffLine(kinds.get(line[:1], "same"), line)


def said_before(calls: Iterable[Ran], seq: int) -> tuple[Said, ...]:
    """What calls wrote before the receipt `seq`, the newest first."""
    spoke = [ran for ran in calls if ran.seq < seq and (ran.texts or ran.transcript)]
    newest = sorted(spoke, key=lambda ran: ran.seq, reverse=True)[:_CALLS]
    return tuple(Said(ran.key, f"{ran.kind} {ran.name}: {outcome(ran)}", tuple(_pieces(ran))) for ran in newest)


def _pieces(ran: Ran) -> Iterator[Piece]:
    for title, text in ran.texts:
        yield piece_of(title or "output", text)
    for title, text in ran.transcript:
        yield Piece(title, "text", text)
