"""Well-known shapes of credentials: what a token looks like, whoever it belongs to.

A shape is looked for only where one of its anchors stands.
An anchor is a fixed piece of every match, and `bytes.find` passes over 100 MB for it in 30–60 ms
where one regular expression for all shapes took 3–5 s; that is the whole speed of redaction.
Most texts are passed over sooner: a token is one long word, and they have none.

Every repetition is bounded, so that no match is longer than `REACH`: a stream holds that much back and no more.
Only private keys may contain a newline.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

REACH = 32 * 1024
"""The longest match of any shape, in bytes, with the words before it that make it one."""

WORD = 16
"""Characters that make a long word."""

_SPACE = rb"(?: |\+|%20)"
_BREAK = rb"(?:\s|\\{1,8}[nrt]|%0[AaDd]|[|>+\"', #])"
_PRIVATE_KEY = (
    rb"-----BEGIN(?:%(s)b[A-Z0-9]{1,20}){0,4}%(s)bPRIVATE%(s)bKEY(?:%(s)bBLOCK)?-----"
    rb"(?:(?:(?!-----)[\s\x21-\x7e]){40,16384}?-----END[A-Z0-9 +%%]{1,80}-----"
    rb"|(?:%(b)b{1,12}[A-Za-z0-9+/=]{16,512}){1,24})"
) % {b"s": _SPACE, b"b": _BREAK}


@dataclass(frozen=True)
class Shape:
    """One kind of credential. Without anchors, the expression itself begins with a fixed piece.

    `source`, a regular expression, matches the credential and, where needed, the words that betray it; group 1, if
    there is one, is the credential alone. `accept` looks at the credential again, where an expression says too little.
    """

    name: str
    anchors: tuple[bytes, ...]
    source: bytes
    accept: Callable[[bytes], bool] | None = None

    @cached_property
    def regex(self) -> re.Pattern[bytes]:
        # Compiled at the first text in which an anchor stands: all of them take as long as a small command.
        return re.compile(self.source)

    def find(self, data: bytes, since: int = 0) -> Iterator[tuple[int, int, int]]:
        """Where the match begins, and where the credential begins and ends, for every match from `since` on."""
        if not self.anchors or holds_any(data, self.anchors):
            for match in self.regex.finditer(data, since):
                start, end = match.span(match.lastindex or 0)
                if self.accept is None or self.accept(data[start:end]):
                    yield match.start(), start, end

    def match_at(self, data: bytes, at: int) -> int | None:
        """Where a credential that begins exactly at `at` ends."""
        match = self.regex.match(data, at)
        if match is None or match.lastindex or (self.accept and not self.accept(match[0])):
            return None
        return match.end()


def holds_any(data: bytes, pieces: Iterable[bytes]) -> bool:
    # Most texts hold none, and `any` with a generator takes three times as long to say so.
    for piece in pieces:  # noqa: SIM110
        if piece in data:
            return True
    return False


def _begins(piece: bytes) -> bytes:
    """The piece, where it begins a word. In `\\nsk-…` and `%3Dsk-…` the letter before it belongs to an escape.

    The piece stands first, so that the regular expression looks for it and not for the edge.
    """
    edges = rb"(?<![A-Za-z0-9]%b)", rb"(?<=\\[nrtbf]%b)", rb"(?<=%%[0-9A-Fa-f]{2}%b)"
    return piece + b"(?:" + b"|".join(edge % piece for edge in edges) + b")"


def _shape(name: str, anchors: bytes, regex: bytes, accept: Callable[[bytes], bool] | None = None) -> Shape:
    return Shape(name, tuple(anchors.split()), regex, accept)


def _random_looking(token: bytes) -> bool:
    # `sk-learn-with-some-words` is no key: keys have digits or capitals, or one long word.
    return bool(re.search(rb"[0-9A-Z]|[a-z]{20}", token[3:]))


def _opaque(token: bytes) -> bool:
    return bool(re.search(rb"[0-9]", token)) and bool(re.search(rb"[A-Za-z]", token))


def _user_and_password(token: bytes) -> bool:
    decoded = decode_base64(token)
    return b":" in decoded and all(byte >= 0x20 for byte in decoded)


# What documentation and source code write in the place of a password: `$TOKEN`, `{token}`, `<password>`, `***`.
_PLACEHOLDER = re.compile(
    rb"[$%{<*].*|(?:your[-_]?)?(?:token|password|passwd|pass|secret|pw|x+|\.{3}|[a-z]+[-_](?:token|password))", re.I
)


def _password(token: bytes) -> bool:
    return not _PLACEHOLDER.fullmatch(token)


def _key_material(block: bytes) -> bool:
    # A text that only talks about such blocks has no line of the key in it.
    return bool(re.search(rb"[A-Za-z0-9+/]{40}", block))


IN_LONG_WORDS: tuple[Shape, ...] = (
    _shape("github-token", b"", rb"gh[pousr]_[A-Za-z0-9_]{16,4096}"),
    _shape("github-token", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{20,4096}"),
    _shape(
        "gitlab-token",
        b"",
        rb"gl(?:pat|rt|dt|cbt|ptt|oas|soat|agent|imt|ft)-[A-Za-z0-9_.-]{16,1024}",
    ),
    _shape("slack-token", b"xox xapp-", rb"(?:xox[abceoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{12,1024}"),
    _shape("slack-webhook", b"hooks.slack.com", rb"hooks\.slack\.com\\?/services\\?/([A-Za-z0-9/\\]{20,200})"),
    _shape("aws-access-key", b"AKIA ASIA", rb"A[KS]IA[A-Z0-9]{16}"),
    _shape(
        "aws-secret-key",
        b"ecret_access_key ECRET_ACCESS_KEY ecretAccessKey",
        rb"(?i:secret_?access_?key)[\"'\\]{0,8}[ \t]{0,8}[:=][ \t\"'\\]{0,8}([A-Za-z0-9+/]{40})",
    ),
    _shape("api-key", b"sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-", rb"sk-[a-z]{2,8}-[A-Za-z0-9_-]{16,4096}"),
    _shape("api-key", b"sk-", _begins(b"sk-") + rb"[A-Za-z0-9_-]{16,4096}", _random_looking),
    _shape("stripe-key", b"k_live_ k_test_", rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,512}"),
    _shape("google-api-key", b"AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    _shape("google-token", b"ya29.", rb"ya29\.[A-Za-z0-9_-]{20,4096}"),
    _shape(
        "jwt",
        b"eyJ",
        _begins(b"eyJ") + rb"[A-Za-z0-9_-]{13,8192}\.[A-Za-z0-9_-]{4,8192}(?:\.[A-Za-z0-9_-]{0,4096}){1,3}",
    ),
    _shape("npm-token", b"npm_", rb"npm_[A-Za-z0-9]{30,512}"),
    _shape("pypi-token", b"pypi-", rb"pypi-[A-Za-z0-9_-]{50,4096}"),
    _shape("private-key", b"-----BEGIN", _PRIVATE_KEY, _key_material),
)
"""Every match of these has a long word in it."""

IN_SHORT_WORDS: tuple[Shape, ...] = (
    # No user has a bracket in the name, but a placeholder has, and a colon too.
    _shape("url-password", rb":// :\/\/", rb":\\?/\\?/[^/@\s:\"'<>\\\[]{0,256}:([^/@\s\"'<>\\]{1,1024})@", _password),
    # A name alone is mostly a user (`https://git@…`); a token in its place is long.
    _shape("url-password", rb":// :\/\/", rb"https?:\\?/\\?/([^/@\s:\"'<>\\\[]{16,1024})@", _opaque),
    _shape("url-password", b"%3A%2F%2F", rb"%3A%2F%2F[^/@\s:%\[]{0,256}%3A([^/@\s:&]{1,1024}?)%40", _password),
    _shape(
        "authorization",
        b"uthorization UTHORIZATION",
        rb"(?i:authorization\S{0,8}[ \t]{0,8}\S{0,8}basic)[ \t]{1,8}([A-Za-z0-9+/_-]{6,4096}={0,2})",
        _user_and_password,
    ),
    _shape(
        "authorization",
        b"uthorization UTHORIZATION",
        rb"(?i:authorization\S{0,8}[ \t]{0,8}\S{0,8}bearer)[ \t]{1,8}([A-Za-z0-9._~+/-]{16,8192}={0,2})",
        _opaque,
    ),
)

SHAPES = IN_LONG_WORDS + IN_SHORT_WORDS

_RUN = re.compile(rb"[A-Za-z0-9+/_-]{8,24576}")
_WORDS = bytes(0x61 if re.match(rb"[A-Za-z0-9+/_-]", bytes([byte])) else 0x20 for byte in range(256))


def has_word(data: bytes, length: int) -> bool:
    """Whether `length` characters of base64 (either alphabet) follow each other anywhere in `data`."""
    return b"a" * length in data.translate(_WORDS)


_TO_STANDARD = bytes.maketrans(b"-_", b"+/")

# Short beginnings would be found everywhere in base64, so only those of four bytes and more are looked for.
_BEGINNINGS = (
    b"ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxb- xoxp- AKIA ASIA sk-ant- sk-proj- AIza npm_ pypi- -----BEGIN"
).split()

BASE64_SKIP = (0, 2, 3)
"""Leading characters that what comes before a value has a share in, by the value's place in its group of three."""


def base64_core(value: bytes, place: int) -> bytes:
    """The characters that `value` alone decides when it begins `place` (0, 1, 2) bytes into a group of three."""
    encoded = base64.b64encode(b"\0" * place + value)
    return encoded[BASE64_SKIP[place] : 8 * (place + len(value)) // 6]


def decode_base64(run: bytes) -> bytes:
    """What a run of either alphabet says, padded or cut off or not."""
    body = run.rstrip(b"=").translate(_TO_STANDARD)
    body = body[: len(body) - (len(body) % 4 == 1)]
    return base64.b64decode(body + b"=" * (-len(body) % 4))


_ENCODED = tuple((base64_core(beginning, place), place) for beginning in _BEGINNINGS for place in range(3))


def may_hold_encoded(data: bytes) -> bool:
    # The shortest of these credentials has 20 bytes.
    return has_word(data, 26) and any(anchor in data for anchor, _ in _ENCODED)


def find_encoded(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Credentials inside base64: the name of the shape, where its characters begin, where they end."""
    for anchor, place in _ENCODED:
        at = data.find(anchor)
        while at >= 0:
            yield from _encoded_at(data, at, place)
            at = data.find(anchor, at + 1)


def _encoded_at(data: bytes, at: int, place: int) -> Iterator[tuple[str, int, int]]:
    group = at - BASE64_SKIP[place]
    run = _RUN.match(data, group) if group >= 0 else None
    if run is None:
        return
    decoded = decode_base64(run[0])
    for shape in IN_LONG_WORDS:
        end = shape.match_at(decoded, place)
        if end is not None:
            yield shape.name, group + 8 * place // 6, group + min(-(-8 * end // 6), len(run[0]))
