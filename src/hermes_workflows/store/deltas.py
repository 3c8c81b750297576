"""Deltas, as packs keep what resembles something else: how to make it from that."""

from __future__ import annotations

# A piece of the base is four bytes of its place and three of its length, the lowest first; those that are 0 are left
# out, and the seven bits before them say which are there.
_STORED = [[8 * bit for bit in range(7) if code >> bit & 1] for code in range(128)]


class Unreadable(Exception):
    """This reader does not know what lies there; another may."""


def _size(delta: bytes, position: int) -> tuple[int, int]:
    size = shift = 0
    while True:
        byte = delta[position]
        size |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return position, size


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of its base: pieces of the base, and pieces that it brings along.

    Raises Unreadable, and IndexError for one that is cut off.
    """
    position, before = _size(delta, 0)
    position, after = _size(delta, position)
    pieces, made = [], 0
    while position < len(delta):
        code = delta[position]
        position += 1
        if code & 0x80:
            piece = 0
            for shift in _STORED[code & 0x7F]:
                piece |= delta[position] << shift
                position += 1
            start, length = piece & 0xFFFFFFFF, piece >> 32 or 0x10000
            pieces.append(base[start : start + length])
        else:
            length = code
            pieces.append(delta[position : position + length])
            position += length
        made += length or after + 1  # git keeps the code 0 for later
    body = b"".join(pieces)
    if before != len(base) or not after == made == len(body):
        raise Unreadable("a delta of something else")
    return body
