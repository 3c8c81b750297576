"""What a fuzz target is: one parser of what others wrote, as a function of bytes.

Two drivers call it: the property tests (`test_hostile_bytes.py`), and the fuzzer behind `make fuzz` (`__main__.py`).
`consume` gives the parser the bytes and uses what it returns as the product does. It swallows the one kind of error
that the parser documents; whatever else comes out of it is a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_workflows.errors import HermesError

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "golden"
AGENTS = ROOT / "fixtures" / "agents"


@dataclass(frozen=True)
class Target:
    """`seeds` are valid inputs, which mutations start from."""

    name: str
    consume: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


@contextmanager
def refused_as(*kinds: type[Exception]) -> Iterator[None]:
    """The documented errors end the parsing quietly; their words can be written whatever they quote."""
    try:
        yield
    except kinds as error:
        if isinstance(error, HermesError):
            f"{error.message} {error.hint}".encode()


def parts(data: bytes, count: int, separator: bytes = b"\n\0\n") -> list[bytes]:
    """Several inputs in one: `count` pieces, those that are missing empty."""
    found = data.split(separator, count - 1)
    return found + [b""] * (count - len(found))


def joined(*pieces: bytes, separator: bytes = b"\n\0\n") -> bytes:
    return separator.join(pieces)


def golden_receipts() -> list[Path]:
    return sorted(GOLDEN.glob("*/receipts/*/**/*.json"))
