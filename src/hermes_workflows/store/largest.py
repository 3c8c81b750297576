"""How large an object may be that is read. Whole objects are read into memory, and whoever made them says their size.

A few bytes can stand for gigabytes, as what zlib has packed or as a delta: so it is asked before anything is made.
"""

from __future__ import annotations

from ..errors import IntegrityError

LARGEST = 64 << 20
"""Bytes. Three times the largest artifact; a tree of a million entries."""


class TooLarge(IntegrityError):
    """An object that none of ours can be. No other reader is tried."""


def too_large(name: str) -> TooLarge:
    return TooLarge(f"{name} is larger than the {LARGEST:,} bytes that are read", hint="no run of ours has one")
