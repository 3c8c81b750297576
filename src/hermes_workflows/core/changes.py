"""Every place where two plain values differ, and texts as the lines in which they do.

`first_difference` says where the first one is; this is what people and `diff` read.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .differences import escaped

# difflib compares every item with every other in the worst case; beyond this, lists are compared place by place,
# and texts are shown as replaced.
_MOST_PAIRS = 4_000_000
_CONTEXT = 3


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""What a value is at a place that the other one alone has."""


@dataclass(frozen=True)
class Change:
    """`place` is a JSON pointer: into the older value for what is gone from a list, else into the newer one."""

    place: str
    before: Any
    after: Any

    @property
    def lines(self) -> tuple[str, ...]:
        """Two texts as a unified diff without file names; empty unless one of them has several lines."""
        texts = isinstance(self.before, str) and isinstance(self.after, str)
        return line_diff(self.before, self.after) if texts and "\n" in self.before + self.after else ()


def changes(before: Any, after: Any, place: str = "") -> Iterator[Change]:
    """All differences, in the order of a reader; items of lists are matched by their content.

    The types are those of JSON, as in `first_difference`: 1, 1.0 and true are three values.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            below = before.get(name, ABSENT), after.get(name, ABSENT)
            yield from changes(*below, f"{place}/{escaped(name)}")
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        yield from _in_lists(before, after, place)
    elif type(before) is not type(after) or before != after:
        yield Change(place, before, after)


def line_diff(before: str, after: str) -> tuple[str, ...]:
    """The lines in which two texts differ, with what is around them. Split at line feeds only, as receipts are."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) * len(new) > _MOST_PAIRS:
        return _replaced(old, new)
    return tuple(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]


def _replaced(old: list[str], new: list[str]) -> tuple[str, ...]:
    """The same for long texts: everything between the first and the last line that differ."""
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    tail = next((n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head)
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    if not gone and not come:
        return ()
    where = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
    return (where, *(f"-{line}" for line in gone), *(f"+{line}" for line in come))


def _in_lists(before: Sequence[Any], after: Sequence[Any], place: str) -> Iterator[Change]:
    for kind, start, end, other_start, other_end in _steps(before, after):
        if kind == "equal":
            continue
        pairs = min(end - start, other_end - other_start)
        for n in range(pairs):
            yield from changes(before[start + n], after[other_start + n], f"{place}/{other_start + n}")
        for n in range(start + pairs, end):
            yield Change(f"{place}/{n}", before[n], ABSENT)
        for n in range(other_start + pairs, other_end):
            yield Change(f"{place}/{n}", ABSENT, after[n])


def _steps(before: Sequence[Any], after: Sequence[Any]) -> Sequence[tuple[str, int, int, int, int]]:
    if len(before) * len(after) > _MOST_PAIRS:
        return [("replace", 0, len(before), 0, len(after))]
    old, new = [_identity(item) for item in before], [_identity(item) for item in after]
    return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _identity(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=repr)
