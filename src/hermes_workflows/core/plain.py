"""Foreign text as text and nothing more: what a terminal or a browser would obey is taken out, what nobody can encode
is replaced, and a word of a command line stays one word.

Terminals and pages put every text through `plain`, commands that are to be copied are made by `command_line`.
"""

from __future__ import annotations

import re
import shlex

# What a terminal obeys (below space, DEL, the C1 range) but tabs and line ends; halves of surrogate pairs, as names of
# files that are no UTF-8 have them: no stream takes those.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_OBEYED_BUT_CR = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Direction overrides can make a shown command read differently from what it is.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def plain(text: str, *, cr: bool = False) -> str:
    """`text` to be shown; `cr` leaves carriage returns, which turn nothing but a terminal's cursor back."""
    if text.isascii() and text.isprintable():
        return text
    return _TURNING.sub("", (_OBEYED_BUT_CR if cr else _OBEYED).sub(_REPLACED, text))


def escaped_json(text: str) -> str:
    """JSON that says the same, without characters that a terminal obeys: JSON itself escapes only those below space."""
    return text if text.isascii() and "\x7f" not in text else _UNPRINTABLE.sub(_escape, text)


def command_line(*words: str) -> str:
    """The line that a shell takes apart into `hermes-workflows` and `words`, whatever is in them.

    A word that cannot be shown is one that cannot be copied either: what it cannot show of it is replaced.
    """
    return " ".join(["hermes-workflows", *map(quoted, words)])


def git_line(repository: object, *words: str) -> str:
    """The same for plain git, in the repository at this path."""
    return " ".join(["git", "-C", *map(quoted, (str(repository), *words))])


def quoted(word: str) -> str:
    """One word of a command line."""
    if not word.isprintable():
        word = "".join(char if char.isprintable() else _REPLACED for char in word)
    return shlex.quote(word)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
