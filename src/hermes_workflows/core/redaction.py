"""Redaction: the one function between a secret and everything that is stored, sent or shown.

The rule: every match is looked for in the *original* bytes, overlapping ones are taken together, and only then is
anything replaced; so no match hides another, and what comes out never depends on the order of the patterns.
It comes before truncation, hashing and counting, and doing it again changes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from .encoding import Plain
from .secret_forms import Needle, needles, secret_variables
from .token_shapes import IN_SHORT_WORDS, REACH, SHAPES, WORD, find_encoded, has_word, may_hold_encoded

Counts: TypeAlias = "Counter[str]"

_NAMED, _VARIABLE, _SHAPE = range(3)
_BLOCK = 128 * 1024
# Texts that are remembered to be without secrets, and the characters of the longest of these.
_KNOWN = 1024
_LONGEST_KNOWN = 64
_CONTEXT = 64
"""Bytes before the present ones that a pattern may look back at."""

# base64 is printed in lines; a break between two of its lines is no end. A long word makes a line of base64.
_LINE = rb"[A-Za-z0-9+/_-]{%d}" % WORD
_SOFT_BREAK = re.compile(
    rb"(?:\r?\n|\\r\\n|\\n)(?:(?<=%(l)b\n)|(?<=%(l)b\r\n)|(?<=%(l)b\\n)|(?<=%(l)b\\r\\n))" % {b"l": _LINE}
)
_SOFT_END = re.compile(_LINE + rb"\r?\n\Z")
_OPEN_KEY = re.compile(rb"-----BEGIN[A-Z0-9 ]{0,80}PRIVATE[A-Z ]{0,20}-----(?!.*-----END)", re.S)


class Secret(NamedTuple):
    name: str
    value: str
    rank: int


class Span(NamedTuple):
    """A match: where it begins with the words that betray it, and what is replaced by whose placeholder."""

    extent: int
    start: int
    end: int
    rank: int
    name: str


class Redactor:
    """Replaces secrets by `[redacted:NAME]`. Immutable; share it between threads.

    `named` are secrets of the author or the registry: every value of one character and more is replaced.
    Of `environment`, only variables with a name that looks secret and a value that is not too ordinary.
    Tokens of well-known shapes are always replaced.
    """

    def __init__(self, named: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> None:
        secrets = [Secret(_label(name), value, _NAMED) for name, value in (named or {}).items()]
        variables = secret_variables(environment or {})
        self._learn((), [*secrets, *(Secret(_label(name), value, _VARIABLE) for name, value in variables)])

    @classmethod
    def declared(cls, names: Iterable[str], environment: Mapping[str, str]) -> Redactor:
        """One that knows what a registry and the environment say: `names` are variables whose values are secret."""
        return cls({name: value for name in names if (value := environment.get(name))}, environment)

    def extended(self, named: Mapping[str, str]) -> Redactor:
        """A redactor that knows these named secrets too; the old value of a name that is given again stays secret."""
        known = set(self._secrets)
        secrets = [Secret(_label(name), value, _NAMED) for name, value in named.items()]
        new = [secret for secret in secrets if secret not in known]
        if not new:
            return self
        more = Redactor.__new__(Redactor)
        more._learn(self._secrets, new, self._needles)
        return more

    def _learn(self, known: Iterable[Secret], more: Iterable[Secret], needles_known: Iterable[Needle] = ()) -> None:
        more = [secret for secret in more if secret.value.strip()]
        self._secrets = (*known, *more)
        self._needles = (*needles_known, *(n for secret in more for n in needles(*secret)))
        self._known: set[str] = set()
        self._plain = [(n.anchor, n) for n in self._needles if not n.wrapped]
        self._wrapped = [(n.anchor, n) for n in self._needles if n.wrapped]
        self.reach = max([REACH, *(2 * needle.reach for needle in self._needles)])
        names = {n.name for n in self._needles} | {shape.name for shape in SHAPES}
        self._placeholders = re.compile(
            rb"\[redacted:(?:%b)\]" % b"|".join(re.escape(n.encode()) for n in sorted(names))
        )
        self._exact = {secret.value.strip(): secret.name for secret in self._secrets if secret.rank == _NAMED}
        self._open_ends = tuple(end for secret in self._secrets for end in _open_ends(secret.value.strip()))
        # Below it nothing can match: `://:x@` is the shortest of the shapes.
        self._shortest = min([6, *(len(line) for secret in self._secrets for line in secret.value.split())])

    def __repr__(self) -> str:
        return f"Redactor({sorted({n.name for n in self._needles})})"

    def text(self, s: str, counts: Counts | None = None) -> str:
        """`s` without secrets; `counts` gains one for each placeholder put in."""
        if len(s) < self._shortest:
            return s
        data = s.encode("utf-8", "surrogatepass")
        clean = self.data(data, counts)
        return s if clean is data else clean.decode("utf-8", "surrogatepass")

    def data(self, b: bytes, counts: Counts | None = None) -> bytes:
        """The same for bytes. Long ones go through a stream, so that memory stays bounded."""
        if len(b) <= 4 * _BLOCK:
            return self.scrub(b, 0, counts)
        stream = self.stream()
        clean = stream.feed(b) + stream.close()
        if counts is not None:
            counts.update(stream.counts)
        return clean if stream.counts else b

    def plain(self, v: Plain, counts: Counts | None = None) -> Plain:
        """The same for a value: strings, bytes, keys, and numbers that are a named secret."""
        if isinstance(v, dict | list):
            # One look at all strings together is several times faster than one look at each.
            texts, data = self._new(v)
            joined = b"\0".join([*(text.encode("utf-8", "surrogatepass") for text in texts), *data])
            if len(joined) <= 4 * _BLOCK and not (joined and self.spans(joined, 0)):
                if texts:
                    self._remember(texts)
                return v
        return self._without(v, counts)

    def _new(self, v: Plain) -> tuple[list[str], list[bytes]]:
        """The texts and the bytes in a value that were not looked at lately: its keys, and the names of functions,
        come again in each step."""
        texts: list[str] = []
        data: list[bytes] = []
        known, left = self._known, [v]
        while left:
            item = left.pop()
            if isinstance(item, str):
                if item not in known:
                    texts.append(item)
            elif isinstance(item, dict):
                texts += [key for key in item if key not in known]
                left += item.values()
            elif isinstance(item, list):
                left += item
            elif isinstance(item, bytes):
                data.append(item)
            elif self._exact and self._number(item, None) is not item:
                # A number that is a secret as a whole; it is one as a text as well.
                texts.append(str(item))
        return texts, data

    def _remember(self, clean: Iterable[str]) -> None:
        # Another thread may add at the same time; then the one or the other is looked at once more.
        if len(self._known) > _KNOWN:
            self._known = set()
        self._known.update(text for text in clean if len(text) <= _LONGEST_KNOWN)

    def _without(self, v: Plain, counts: Counts | None) -> Plain:
        if isinstance(v, str):
            return self.text(v, counts)
        if isinstance(v, bytes):
            return self.data(v, counts)
        if isinstance(v, list):
            return [self._without(item, counts) for item in v]
        if isinstance(v, dict):
            return self._plain_dict(v, counts)
        return self._number(v, counts)

    def _plain_dict(self, v: dict[str, Plain], counts: Counts | None) -> dict[str, Plain]:
        clean: dict[str, Plain] = {}
        for key, value in v.items():
            new = name = self.text(key, counts)
            number = 2
            while new in clean or (new != key and new in v):
                new, number = f"{name}-{number}", number + 1
            clean[new] = self._without(value, counts)
        return clean

    def _number(self, v: bool | int | float | None, counts: Counts | None) -> Plain:
        if not self._exact or v is None or isinstance(v, bool) or (isinstance(v, int) and v.bit_length() > 4096):
            return v
        name = self._exact.get(str(v))
        if name is None:
            return v
        if counts is not None:
            counts[name] += 1
        return f"[redacted:{name}]"

    def finds(self, b: bytes) -> bool:
        """Whether there is a secret in `b`: artifacts and sources that have one are refused, not rewritten."""
        counts: Counts = Counter()
        self.data(b, counts)
        return bool(counts)

    def stream(self) -> RedactingStream:
        """For what comes in pieces: secrets across their borders are found."""
        return RedactingStream(self)

    def scrub(self, data: bytes, since: int, counts: Counts | None = None) -> bytes:
        """`data[since:]` without secrets; what stands before `since` is only looked back at."""
        head = data[:since]
        # A placeholder can make an edge where there was none, so that more is found the second time.
        for _ in range(4):
            spans = self.spans(data, since)
            if not spans:
                break
            data = head + replaced(data, since, spans, counts)
        return data[since:] if since else data

    def spans(self, data: bytes, since: int) -> list[Span]:
        """What is to be replaced in `data[since:]`: in order, and without overlaps."""
        present = [needle for anchor, needle in self._plain if anchor in data]
        found = [Span(start, start, end, n.rank, n.name) for n in present for start, end in n.find(data, since)]
        wordy = has_word(data, WORD)
        found += self._encoded(data, since, wordy)
        for shape in SHAPES if wordy else IN_SHORT_WORDS:
            found += [Span(*place, _SHAPE, shape.name) for place in shape.find(data, since)]
        if not found:
            return found
        return _united(found, [match.span() for match in self._placeholders.finditer(data)])

    def _encoded(self, data: bytes, since: int, wordy: bool) -> list[Span]:
        # Whatever stands in the text without its soft breaks also stands in it without any break.
        texts = [data]
        if wordy:
            texts = [data.translate(None, b"\r\n")]
            if b"\\" in data:
                texts.append(texts[0].replace(b"\\r", b"").replace(b"\\n", b""))
        wanted = {needle for text in texts for anchor, needle in self._wrapped if anchor in text}
        shapes = wordy and any(may_hold_encoded(text) for text in texts)
        if not wanted and not shapes:
            return []
        flat = Unwrapped(data)
        found = [Span(start, start, end, n.rank, n.name) for n in wanted for start, end in n.find(flat.data)]
        if shapes:
            found += [Span(start, start, end, _SHAPE, name) for name, start, end in find_encoded(flat.data)]
        return [span for span in map(flat.place, found) if span.start >= since]

    def hard_end(self, data: bytes, floor: int) -> int:
        """The end of the last line after which nothing older goes on; when there is none, at most `floor`."""
        end = data.rfind(b"\n") + 1
        if self._open_ends and data.endswith(self._open_ends, 0, end):
            return floor
        while end > floor and _SOFT_END.search(data, max(0, end - 20), end):
            end = data.rfind(b"\n", 0, end - 1) + 1
        key = _OPEN_KEY.search(data, 0, end) if b"-----BEGIN" in data else None
        return min(end, key.start()) if key else end

    def whole(self, data: bytes, spans: list[Span], cut: int) -> int:
        """The nearest place at or before `cut` that lies in no match and in no placeholder."""
        placeholders = self._placeholders.finditer(data, max(0, cut - _CONTEXT - 20), cut + _CONTEXT + 20)
        pieces = [(span.extent, span.end) for span in spans] + [match.span() for match in placeholders]
        for start, end in sorted(pieces, reverse=True):
            if start < cut < end:
                cut = start
        return cut


class RedactingStream:
    """Redaction of what comes in pieces, in bounded memory.

    Whole lines go through at once. What may be the beginning of something longer is held back:
    at most `redactor.reach` bytes, and a block more when there are no line ends.
    The result does not depend on where the pieces were cut.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.counts: Counts = Counter()
        self._redactor = redactor
        self._context = b""
        self._pending = b""

    def feed(self, chunk: bytes) -> bytes:
        """Takes the next piece; gives back what is safe by now (it may be empty)."""
        return b"".join(self._step(chunk[i : i + _BLOCK]) for i in range(0, len(chunk), _BLOCK))

    def close(self) -> bytes:
        """The rest. Nothing may be fed afterwards."""
        return self._release(len(self._pending))

    def _step(self, chunk: bytes) -> bytes:
        self._pending += chunk
        floor = len(self._pending) - self._redactor.reach
        if b"\n" not in chunk and floor < _BLOCK:
            return b""
        return self._release(max(floor, self._redactor.hard_end(self._pending, floor)))

    def _release(self, cut: int) -> bytes:
        if cut <= 0:
            return b""
        since = len(self._context)
        data, cut = self._context + self._pending, since + cut
        spans = self._redactor.spans(data, since)
        cut = self._redactor.whole(data, spans, cut)
        ready = [span for span in spans if span.end <= cut]
        clean = replaced(data[:cut], since, ready, self.counts)
        if ready:
            clean = self._redactor.scrub(self._context + clean, since, self.counts)
        self._pending = data[cut:]
        self._context = data[max(0, cut - _CONTEXT) : cut]
        return clean


class Unwrapped:
    """A text without the breaks inside base64, and the way back to the original places."""

    def __init__(self, original: bytes) -> None:
        self._places: list[int] = []
        self._removed: list[int] = [0]
        pieces: list[bytes] = []
        last = 0
        for match in _SOFT_BREAK.finditer(original):
            pieces.append(original[last : match.start()])
            self._places.append(match.start() - self._removed[-1])
            self._removed.append(self._removed[-1] + len(match[0]))
            last = match.end()
        self.data = b"".join([*pieces, original[last:]])

    def place(self, span: Span) -> Span:
        start = span.start + self._removed[bisect_right(self._places, span.start)]
        end = span.end - 1 + self._removed[bisect_right(self._places, span.end - 1)] + 1
        return span._replace(extent=start, start=start, end=end)


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:64] or "secret"


def _open_ends(value: str) -> Iterator[bytes]:
    # After which ends of a line a secret of several lines goes on.
    data = value.encode("utf-8", "surrogatepass")
    for match in re.finditer(rb"\r?\n", data):
        start = data[max(0, match.start() - 64) : match.start()]
        yield from (start + b"\n", start + b"\r\n")


def _united(found: list[Span], placeholders: list[tuple[int, int]]) -> list[Span]:
    """Overlapping matches become one, under the name of the surest; what lies in a placeholder stays."""
    united: list[Span] = []
    starts = [start for start, _ in placeholders]
    for span in sorted(found):
        before = bisect_right(starts, span.start) - 1
        if before >= 0 and span.end <= placeholders[before][1]:
            continue
        if united and span.start < united[-1].end:
            last = united.pop()
            surest = min(last, span, key=lambda s: s.rank)
            extent = min(last.extent, span.extent)
            span = Span(extent, min(last.start, span.start), max(last.end, span.end), surest.rank, surest.name)
        united.append(span)
    return united


def replaced(data: bytes, since: int, spans: list[Span], counts: Counts | None) -> bytes:
    """`data[since:]` with a placeholder in the place of each span."""
    pieces: list[bytes] = []
    last = since
    for span in spans:
        pieces += [data[last : span.start], f"[redacted:{span.name}]".encode()]
        last = span.end
        if counts is not None:
            counts[span.name] += 1
    return b"".join([*pieces, data[last:]])
