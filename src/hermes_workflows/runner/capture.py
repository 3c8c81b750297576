"""What is kept of a stream of output: its beginning, its end, and facts about the whole.

Redaction comes first, so that the size, the hash and the cut are those of the redacted text,
and no half of a secret is left at the cut.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes_workflows.core.redaction import Redactor

_LONGEST_LINE = 16 * 1024


@dataclass(frozen=True)
class Stream:
    """A command's output after redaction.

    `head` and `tail` do not overlap; `total_bytes` is the length of everything, `sha256` (hex) its hash.
    `redactions` counts the placeholders by the name of the secret.
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    redactions: Counter[str] = field(default_factory=Counter)

    @property
    def dropped_bytes(self) -> int:
        return self.total_bytes - len(self.head) - len(self.tail)

    @property
    def whole(self) -> bytes:
        """Everything that was kept; a line in the middle says how many bytes are missing, if any are."""
        if not self.dropped_bytes:
            return self.head + self.tail
        edge = b"" if self.head.endswith(b"\n") else b"\n"
        return self.head + edge + b"[... %d bytes left out ...]\n" % self.dropped_bytes + self.tail

    def trimmed(self, keep_bytes: int) -> Stream:
        """The same stream with at most `keep_bytes` of its beginning and of its end."""
        head, tail = self.head, self.tail
        if not self.dropped_bytes:
            whole = head + tail
            head, tail = whole[:keep_bytes], whole[keep_bytes:]
        head, tail = head[:keep_bytes], tail[max(0, len(tail) - keep_bytes) :]
        if len(head) + len(tail) < self.total_bytes:
            head, tail = _whole_characters(head, tail)
        return Stream(head, tail, self.total_bytes, self.sha256, self.redactions)


class Capture:
    """Takes a stream piece by piece, in bounded memory, and tells a listener its lines as they come.

    `on_line` gets each line without its end, redacted; a line of more than 16 KiB comes in parts.
    """

    def __init__(self, redactor: Redactor, keep_bytes: int, on_line: Callable[[str], None] | None = None) -> None:
        self._redacting = redactor.stream()
        self._keep = max(0, keep_bytes)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._hash = hashlib.sha256()
        self._on_line = on_line
        self._line = b""

    def feed(self, chunk: bytes) -> None:
        self._take(self._redacting.feed(chunk))

    def close(self) -> Stream:
        """The end of the stream: what was kept of it."""
        self._take(self._redacting.close())
        if self._on_line and self._line:
            self._on_line(_readable(self._line))
        head, tail = bytes(self._head), bytes(self._tail[max(0, len(self._tail) - self._keep) :])
        if len(head) + len(tail) < self._total:
            head, tail = _whole_characters(head, tail)
        return Stream(head, tail, self._total, self._hash.hexdigest(), self._redacting.counts)

    def _take(self, clean: bytes) -> None:
        if not clean:
            return
        self._total += len(clean)
        self._hash.update(clean)
        if self._on_line:
            self._tell(self._on_line, clean)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += clean[:room]
            clean = clean[room:]
        self._tail += clean[-self._keep :] if self._keep else b""
        # Cutting only at twice the size keeps the moving of bytes linear.
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def _tell(self, on_line: Callable[[str], None], clean: bytes) -> None:
        *lines, rest = (self._line + clean).split(b"\n")
        for line in lines:
            for start in range(0, max(1, len(line)), _LONGEST_LINE):
                on_line(_readable(line[start : start + _LONGEST_LINE]))
        while len(rest) > _LONGEST_LINE:
            on_line(_readable(rest[:_LONGEST_LINE]))
            rest = rest[_LONGEST_LINE:]
        self._line = rest


def _readable(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _whole_characters(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """Both without the part of a character that the cut left: it would make a text look like binary data."""
    for length in range(1, min(4, len(head) + 1)):
        byte = head[-length]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            head = head[:-length] if wanted > length else head
        if byte < 0x80 or byte >= 0xC0:
            break
    start = 0
    while start < min(3, len(tail)) and 0x80 <= tail[start] < 0xC0:
        start += 1
    return head, tail[start:]
