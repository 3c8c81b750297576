"""One secret value in all the forms in which it may stand in a text.

The rule: a letter or digit stands for itself everywhere, any other character may stand there escaped
(JSON, once or several times over; JSON pointer; URL; HTML; shell), and the whole may be part of something in base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .token_shapes import base64_core

_WIDEST = 20
"""No character takes more bytes than this in any of its forms."""

_SHORT = 8
_ENTITIES = {"&": b"&amp;", "<": b"&lt;", ">": b"&gt;", '"': b"&quot;|&#34;", "'": b"&#39;|&#x27;"}
# Errors name a field by its JSON pointer, and a key may be the secret.
_POINTERS = {"/": rb"~1", "~": rb"~0"}
_LETTERS = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}
_BASE64 = rb"[A-Za-z0-9+/_-]"


@dataclass(frozen=True)
class Needle:
    """One thing to look for. `anchor` stands in every match, and is looked for first; empty if there is none.

    `wrapped` marks a form that may be broken over lines (base64); it is looked for in the text without the breaks.
    """

    name: str
    rank: int
    anchor: bytes = field(repr=False)
    source: bytes = field(repr=False)
    reach: int
    wrapped: bool = False

    def find(self, data: bytes, since: int = 0) -> Iterator[tuple[int, int]]:
        """Where a match begins and ends; matches may overlap (`abab` stands twice in `ababab`)."""
        regex = _compiled(self.source)
        match = regex.search(data, since)
        while match is not None:
            yield match.span()
            match = regex.search(data, match.start() + 1)


@lru_cache(maxsize=4096)
def _compiled(source: bytes) -> re.Pattern[bytes]:
    # Compiled at the first text in which the anchor stands: most secrets never meet one.
    return re.compile(source)


def needles(name: str, value: str, rank: int) -> Iterator[Needle]:
    """Everything to look for so that `value` is found; `name` goes into the placeholder."""
    value = value.strip()
    yield _literal(name, value, rank)
    yield from _encoded(name, value, rank)
    lines = value.splitlines()
    if len(lines) > 1:
        # Tools print such a value with something before each line, or a part of it.
        for line in lines:
            if " " not in line.strip() and not guessable(line.strip()):
                yield from needles(name, line, rank)


def _literal(name: str, value: str, rank: int) -> Needle:
    source = b"".join(_forms(character) for character in value)
    special = sum(not _plain(character) for character in value)
    return Needle(name, rank, _anchor(_raw(value)), source, len(value) + special * _WIDEST)


def _encoded(name: str, value: str, rank: int) -> Iterator[Needle]:
    raw = _raw(value)
    for place in range(3):
        core = base64_core(raw, place)
        if len(core) >= 4:
            # The characters at the ends that the value shares with its neighbours go too.
            left = _BASE64 + b"?" if place else b""
            right = _BASE64 + b"?" if 8 * (place + len(raw)) % 6 else b""
            source = left + b"".join(_base64_forms(byte) for byte in core) + right
            yield Needle(name, rank, _anchor(core), source, 4 * len(core) + 2, wrapped=True)


def _plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _raw(text: str) -> bytes:
    # Lone surrogates are how Python keeps bytes of the environment that are not UTF-8.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _anchor(data: bytes) -> bytes:
    longest = max(re.findall(rb"[A-Za-z0-9]+", data), key=len, default=b"")
    return longest if len(longest) >= 4 or longest == data else b""


def _forms(character: str) -> bytes:
    if _plain(character):
        return character.encode()
    raw = _raw(character)
    forms = [rb"\\{1,16}" if character == "\\" else rb"\\{0,8}" + re.escape(raw)]
    forms.append(b"".join(rb"%(?:25){0,2}" + _hex(f"{byte:02x}") for byte in raw))
    units = character.encode("utf-16-be", "surrogatepass")
    forms.append(b"".join(rb"\\{1,8}u" + _hex(units[i : i + 2].hex()) for i in range(0, len(units), 2)))
    if character in _LETTERS:
        forms.append(rb"\\{1,8}" + _LETTERS[character])
    if character in _POINTERS:
        forms.append(_POINTERS[character])
    if character in _ENTITIES:
        forms.append(_ENTITIES[character])
    if character == " ":
        forms.append(rb"\+")
    if character == "\n":
        forms += [rb"\r\n", rb"\\{1,4}r\\{1,4}n", rb"%0[Dd]%0[Aa]"]
    return b"(?:" + b"|".join(forms) + b")"


def _hex(digits: str) -> bytes:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits).encode()


def _base64_forms(byte: int) -> bytes:
    if byte in b"+-":
        return rb"(?:[+-]|%2[Bb]|\\u002[Bb])"
    if byte in b"/_":
        return rb"(?:\\?[/_]|%2[Ff]|\\u002[Ff])"
    return bytes([byte])


# Which variables of the environment hold secrets.
_SECRET_NAME = re.compile(
    r"(?i)token|secret|passw|passphrase|api_?key|access_?key|private_?key|signing_?key|encryption_?key"
    r"|credential|authorization|bearer|cookie|(?:^|_)jwt"
    r"|(?:^|_)(?:key|keys|pass|pwd|auth|pat|dsn|creds?|otp)_?\d*$"
)
_WORD = re.compile(r"[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:eE_+-]{0,23}")
# The first folder of a path is a word; keys in base64 may begin with a slash, too, but not like this.
_PATH = re.compile(r"(?:~|\.{1,2})?/(?:[a-z][a-z0-9._-]*|[A-Z][a-z]+)?(?:/.*)?|[A-Za-z]:[\\/].*", re.S)
_RELATIVE = re.compile(r"(?:\.{1,2}|~)/.*", re.S)


def secret_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Name and value of the variables that hold secrets, in the order of their names."""
    for name in sorted(environment):
        value = environment[name]
        if _SECRET_NAME.search(name) and not guessable(value.strip()):
            yield name, value


def guessable(value: str) -> bool:
    """Whether a value is too ordinary to be hidden: short, a plain word, a number, a path."""
    if len(value) < _SHORT:
        return True
    return any(kind.fullmatch(value) for kind in (_WORD, _NUMBER, _PATH, _RELATIVE))
