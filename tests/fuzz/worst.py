"""The largest and the most cunning inputs: each would be a crash, an hour or all of the memory where nobody counts.

`python -m tests.fuzz.worst` gives each of them to each target in one process, whose memory the kernel limits.
"""

from __future__ import annotations

import resource
import sys
import zlib
from collections.abc import Iterator

MEGABYTES = 1024
"""Of address space, all of the program and its libraries included. The largest input has one megabyte."""

_DEEP = 100_000


def texts() -> Iterator[bytes]:
    """What parsers of text stumble over."""
    yield from (b"[" * _DEEP, b'{"a":' * _DEEP, b"[" * _DEEP + b"]" * _DEEP, b'{"a":' * 9000 + b"1" + b"}" * 9000)
    yield from (
        b"9" * 1_000_000,
        b"-" + b"9" * 5000,
        b"[%s]" % (b"9" * 4301),
        b"1e" + b"9" * 5000,
        b"1" + b"0" * 5000 + b".5",
    )
    yield b"[" + b"1," * 300_000 + b"1]"
    yield b"{" + b",".join(b'"k%d":1' % number for number in range(60_000)) + b',"k59999":2}'
    yield b'{"a": "' + b"x" * 1_000_000 + b'"}'
    yield b'{"a": "' + b"\\ud800" * 100_000 + b'"}'
    yield from (b"\0" * 1_000_000, b"\n" * 1_000_000, b"\xff" * 1_000_000, b" " * 1_000_000, b"\\" * 500_000)
    yield from (b"{[" * _DEEP, b'["' * _DEEP, b"`" * 500_000, b"```\n" * 50_000, b"> " * _DEEP, b"* " * 1000)
    yield from (b"a" * 1_000_000, b"a=b&" * 250_000, b"refs/" * 200_000, b"/" * 1_000_000, b"../" * 300_000)
    yield b'{"type":"result","subtype":"x","is_error":true,"errors":[' + b'"e",' * 100_000 + b'"e"]}'


def objects() -> Iterator[bytes]:
    """A gigabyte of nothing, as zlib writes it."""
    packer = zlib.compressobj(9)
    head = packer.compress(b"blob %d\0" % (1 << 30))
    yield head + b"".join(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)) + packer.flush()


def main() -> None:
    from tests.fuzz.targets import TARGETS

    # YAML is read by its own reader, whose time is linear, and long.
    chosen = sys.argv[1:] or [name for name in TARGETS if name != "hermes-config"]
    for name in chosen:
        TARGETS[name].seeds()  # what is imported and made for the first one is no memory of the input
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    for target in map(TARGETS.__getitem__, chosen):
        for data in (*texts(), *(objects() if target.name == "loose" else ())):
            print(target.name, len(data), data[:20], flush=True)
            target.consume(data)
    print("done")


if __name__ == "__main__":
    main()
