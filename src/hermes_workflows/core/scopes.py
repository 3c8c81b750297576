"""Keys: where a call stands in the structure of the body (SEMANTICS §2).

A key is claimed where the call is written, in the scope of the task that evaluates it, so the keys of structured
code never depend on who finishes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..errors import InvalidInput
from .encoding import dumps, encode
from .names import clean_key, slug
from .values import plain

_slug = lru_cache(maxsize=4096)(slug)
_NUMBERED = re.compile(r"(.+)-([1-9][0-9]{0,8})\Z")


def text_of(value: object, clean: Callable[[str], str] = str) -> str:
    """A value as the name of a key's component; the same in every process, whatever the value is.

    Raises UnstorableValue for objects that only have an address.
    """
    if isinstance(value, str):
        return clean(value)
    flat = plain(value)
    return clean(flat if isinstance(flat, str) else dumps(encode(flat, {})).decode().strip())


class Scope:
    """One folder of keys. Calls and scopes of one parent share a counter, so a name is a file or a folder, once.

    `iterations` are the rounds of the enclosing `goal` loops, outermost first: explicit keys need them,
    since such a key is absolute in its run and would otherwise meet itself in round two. `clean` takes secrets out of
    whatever becomes a part of a key: keys are file names, and stand in commits.
    """

    __slots__ = ("_clean", "_counts", "iterations", "path")

    def __init__(
        self,
        path: tuple[str, ...] = (),
        iterations: tuple[int, ...] = (),
        clean: Callable[[str], str] = str,
    ) -> None:
        self.path = path
        self.iterations = iterations
        self._clean = clean
        self._counts: dict[str, int] = {}

    def claim(self, name: str) -> tuple[str, ...]:
        """The next free path for `name`: `name`, then `name-2`, …"""
        clean = _slug(self._clean(name))
        if clean not in self._counts and not self._was_numbered(clean):
            self._counts[clean] = 1
            return (*self.path, clean)
        number = max(self._counts.get(clean, 1), 1) + 1
        while f"{clean}-{number}" in self._counts:
            number += 1
        self._counts[clean] = number
        return (*self.path, f"{clean}-{number}")

    def _was_numbered(self, clean: str) -> bool:
        """Whether a repeat has that name already: the second `bash` is `bash-2`, also when one is called that."""
        found = _NUMBERED.match(clean)
        return found is not None and self._counts.get(found[1], 0) >= int(found[2]) >= 2

    def open(self, name: str) -> Scope:
        """A folder of its own, for a task or a composition."""
        return Scope(self.claim(name), self.iterations, self._clean)

    def inside(self, *names: object) -> Scope:
        """A folder whose name is given by position (`parallel/<index>`): no counter is involved."""
        return Scope((*self.path, *(self._component(name) for name in names)), self.iterations, self._clean)

    def round(self, number: int) -> Scope:
        """The folder of round `number` of a `goal` (from 1)."""
        return Scope((*self.path, str(number)), (*self.iterations, number), self._clean)

    def key(self, name: str, *, key: str | None = None, key_by: object = None) -> str:
        """The key of a call written in this scope. Raises InvalidInput for a key or name that cannot be one."""
        if not isinstance(name, str):
            raise InvalidInput(f"a name must be text, not {type(name).__name__}", hint="write name=str(…)")
        if key is not None:
            # What is no text is for clean_key to refuse.
            text: object = key
            return clean_key(self._clean(text) if isinstance(text, str) else key) + self._round_suffix()
        if key_by is not None:
            return "/".join((*self.path, self._component(name), self._component(key_by)))
        return "/".join(self.claim(name))

    def _component(self, value: object) -> str:
        return _slug(text_of(value, self._clean))

    def _round_suffix(self) -> str:
        # The first round has no suffix, so that a key without a loop and a loop's first round read the same.
        # Inside nested loops every level is named, else (1, 2) and (2, 1) would meet.
        if all(number == 1 for number in self.iterations):
            return ""
        return "".join(f"-{number}" for number in self.iterations)
