"""Every place where two plain values differ, and texts as the lines in which they do.

`first_difference` says where the first one is; this is what people and `diff` read.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .differences import escaped

# difflib compares every item with every other in the worst case. Up to the first bound it may; up to the second it
# passes over what occurs everywhere; beyond, everything between the first and the last difference is replaced.
_FEW_PAIRS = 250_000
_MOST_PAIRS = 4_000_000
_CONTEXT = 3

_Step = tuple[str, int, int, int, int]


class _Absent:
    """A value that is not there, where None is one."""


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
    matcher = difflib.SequenceMatcher(None, old, new)
    matcher.opcodes = _steps(old, new)  # type: ignore[attr-defined]  # where get_grouped_opcodes looks first
    return tuple(line for group in matcher.get_grouped_opcodes(_CONTEXT) for line in _hunk(old, new, group))


def _hunk(old: Sequence[str], new: Sequence[str], steps: Sequence[_Step]) -> Iterator[str]:
    first, last = steps[0], steps[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
    for kind, start, end, other_start, other_end in steps:
        if kind == "equal":
            yield from (f" {line}" for line in old[start:end])
        else:
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[other_start:other_end])


def _range(start: int, end: int) -> str:
    """Lines as a unified diff names them: counted from 1, and an empty range by the line before it."""
    if end - start == 1:
        return f"{start + 1}"
    return f"{start + (end > start)},{end - start}"


def _in_lists(before: Sequence[Any], after: Sequence[Any], place: str) -> Iterator[Change]:
    identities = [_identity(item) for item in before], [_identity(item) for item in after]
    for kind, start, end, other_start, other_end in _steps(*identities):
        if kind == "equal":
            continue
        pairs = min(end - start, other_end - other_start)
        for n in range(pairs):
            yield from changes(before[start + n], after[other_start + n], f"{place}/{other_start + n}")
        for n in range(start + pairs, end):
            yield Change(f"{place}/{n}", before[n], ABSENT)
        for n in range(other_start + pairs, other_end):
            yield Change(f"{place}/{n}", ABSENT, after[n])


def _steps(old: Sequence[str], new: Sequence[str]) -> list[_Step]:
    """How the one becomes the other. What they begin and end with alike is found first, however much there is."""
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    tail = next((n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head)
    here, there = old[head : len(old) - tail], new[head : len(new) - tail]
    pairs = len(here) * len(there)
    middle: Iterable[_Step] = [("replace", 0, len(here), 0, len(there))] if here or there else []
    if pairs <= _MOST_PAIRS:
        middle = difflib.SequenceMatcher(None, here, there, autojunk=pairs > _FEW_PAIRS).get_opcodes()
    steps = [("equal", 0, head, 0, head)] if head else []
    steps += [(kind, a + head, b + head, c + head, d + head) for kind, a, b, c, d in middle]
    end = len(old) - tail, len(old), len(new) - tail, len(new)
    return [*steps, ("equal", *end)] if tail else steps


def _identity(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=repr)
