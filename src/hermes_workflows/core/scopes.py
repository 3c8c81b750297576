"""Keys: where a call stands in the structure of the body (SEMANTICS §2).

A key is claimed where the call is written, in the scope of the task that evaluates it, so the keys of structured
code never depend on who finishes first.
"""

from __future__ import annotations

from functools import lru_cache

from .names import clean_key, slug

_slug = lru_cache(maxsize=4096)(slug)


class Scope:
    """One folder of keys. Calls and scopes of one parent share a counter, so a name is a file or a folder, once.

    `iterations` are the rounds of the enclosing `goal` loops, outermost first: explicit keys need them,
    since such a key is absolute in its run and would otherwise meet itself in round two.
    """

    __slots__ = ("_counts", "iterations", "path")

    def __init__(self, path: tuple[str, ...] = (), iterations: tuple[int, ...] = ()) -> None:
        self.path = path
        self.iterations = iterations
        self._counts: dict[str, int] = {}

    def claim(self, name: str) -> tuple[str, ...]:
        """The next free path for `name`: `name`, then `name-2`, …"""
        clean = _slug(name)
        count = self._counts[clean] = self._counts.get(clean, 0) + 1
        return (*self.path, clean if count == 1 else f"{clean}-{count}")

    def open(self, name: str) -> Scope:
        """A folder of its own, for a task or a composition."""
        return Scope(self.claim(name), self.iterations)

    def inside(self, *names: str) -> Scope:
        """A folder whose name is given by position (`parallel/<index>`): no counter is involved."""
        return Scope((*self.path, *map(_slug, names)), self.iterations)

    def round(self, number: int) -> Scope:
        """The folder of round `number` of a `goal` (from 1)."""
        return Scope((*self.path, str(number)), (*self.iterations, number))

    def key(self, name: str, *, key: str | None = None, key_by: object = None) -> str:
        """The key of a call written in this scope."""
        if key is not None:
            return clean_key(key) + self._round_suffix()
        if key_by is not None:
            return "/".join((*self.path, _slug(name), _slug(str(key_by))))
        return "/".join(self.claim(name))

    def _round_suffix(self) -> str:
        # The first round has no suffix, so that a key without a loop and a loop's first round read the same.
        # Inside nested loops every level is named, else (1, 2) and (2, 1) would meet.
        if all(number == 1 for number in self.iterations):
            return ""
        return "".join(f"-{number}" for number in self.iterations)
