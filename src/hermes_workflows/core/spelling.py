"""The nearest right word, for every message about a name nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

# Below this likeness a suggestion misleads more often than it helps.
LIKENESS = 0.6


def nearest(word: str, known: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """The known word most like `word`, or None when none is like it."""
    from difflib import get_close_matches  # noqa: PLC0415  # `--help` imports this module, and meets no unknown word

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def suggestion(word: str, known: Iterable[str], what: str) -> str:
    """A hint for an unknown `word`: the nearest one, or all there are when they are few."""
    names = sorted(known)
    if (near := nearest(word, names)) is not None:
        return f"did you mean {near!r}?"
    if not names:
        return f"there are no {what} yet"
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"known {what}: {shown}"
