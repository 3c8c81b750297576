"""One pack of git's, read: index of version 2 found by where they lie, objects whole or as deltas, files mapped.

Histories are read by the thousand, and this takes a fifth of dulwich's time, whose way of applying deltas it shares.
It reads what git and we write and nothing else: everything odd or damaged raises Unreadable, and dulwich then says
what is wrong. What would not fit into memory raises TooLarge, before it is made.
A pack is mapped while it is read from: after a burst there are hundreds, and what is mapped counts as memory.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib

from dulwich.errors import ApplyDeltaError
from dulwich.pack import apply_delta

from .largest import LARGEST, too_large

_MAGIC = b"\xfftOc\0\0\0\x02"
_FANOUT = struct.Struct(">256L")
_NAMES = len(_MAGIC) + _FANOUT.size
_OFFSET = struct.Struct(">L")
_FAR = 0x80000000

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _NAME_DELTA = 6, 7

# Names that are searched in one go: halving them further takes longer.
_AT_ONCE = 64

# git makes chains of 50, and none longer than this; a chain that bites its tail ends here as well.
_LONGEST_CHAIN = 4096
# Deflated bytes come to 1,032 times as many at the most: of so many there is no harm in taking all that comes.
_SMALL = 8192
# Bits of a number that is larger than all that is read; numbers of megabytes would take minutes.
_MOST_SHIFTED = 63
# Bytes of all bodies on the way to one object; a chain of git's of the largest artifacts has half of that.
_MOST_MADE = 2 << 30
# A neighbour is the base of the next receipt. Bytes of bodies.
_REMEMBERED = 1 << 20


class Unreadable(Exception):
    """This reader does not know what lies there; another may."""


class PackFile:
    """A pack and its index. `read` may be called by one thread at a time."""

    def __init__(self, index: str) -> None:
        """Open by the path of the index. Raises Unreadable, OSError."""
        self._index = _mapped(index)
        self._path = index.removesuffix(".idx") + ".pack"
        self._pack: mmap.mmap | None = None
        self._bodies: dict[int, tuple[bytes, bytes]] = {}
        self._size = 0
        try:
            self._fanout = (0, *self._checked_fanout())
        except BaseException:
            self.close()
            raise
        count = self._fanout[-1]
        self._offsets = _NAMES + 24 * count
        self._far_offsets = _NAMES + 28 * count

    def read(self, oid: bytes) -> tuple[bytes, bytes] | None:
        """Kind and body of object `oid` (20 bytes), None when this pack does not have it.

        Raises Unreadable, TooLarge.
        """
        try:
            offset = self._find(oid)
            return None if offset is None else self._at(offset)
        except OSError as error:
            raise Unreadable(f"{self._path}: {error}") from None  # git has removed it
        except (ApplyDeltaError, IndexError, KeyError, MemoryError, ValueError, struct.error, zlib.error) as error:
            raise Unreadable(f"{oid.hex()}: {error}") from None

    @property
    def is_mapped(self) -> bool:
        return self._pack is not None

    def release(self) -> None:
        """Let go of what was read; the next `read` maps the pack again."""
        if self._pack is not None:
            self._pack.close()
        self._pack = None
        self._bodies, self._size = {}, 0

    def close(self) -> None:
        self.release()
        self._index.close()

    def _checked_fanout(self) -> tuple[int, ...]:
        """Raises Unreadable for another format, and for two files that do not belong together."""
        index, pack = self._index, self._data()
        if index[: len(_MAGIC)] != _MAGIC or len(index) < _NAMES or pack[:4] != b"PACK" or len(pack) < 32:
            raise Unreadable("another format")
        fanout: tuple[int, ...] = _FANOUT.unpack_from(index, len(_MAGIC))
        count = fanout[-1]
        version, objects = struct.unpack_from(">2L", pack, 4)
        far, rest = divmod(len(index) - _NAMES - 28 * count - 40, 8)
        if version != 2 or objects != count or far < 0 or rest or list(fanout) != sorted(fanout):
            raise Unreadable("another format")
        if index[-40:-20] != pack[-20:]:
            raise Unreadable("an index of another pack")
        self.release()
        return fanout

    def _data(self) -> mmap.mmap:
        if self._pack is None:
            self._pack = _mapped(self._path)
        return self._pack

    def _find(self, oid: bytes) -> int | None:
        low, high = first, last = self._fanout[oid[0]], self._fanout[oid[0] + 1]
        if last - first > _AT_ONCE:
            # Names are digests and lie evenly, so it is about as far in as it says itself. If not, they are halved.
            near = first + (int.from_bytes(oid[1:4]) * (last - first) >> 24)
            low, high = max(first, near - _AT_ONCE // 2), near + _AT_ONCE // 2
        found = self._index[_NAMES + 20 * low : _NAMES + 20 * min(high, last)].find(oid)
        place = low + found // 20
        if found < 0 and last - first <= _AT_ONCE:
            return None
        if found % 20 or found < 0:  # across two names, or not where it should be
            place = self._sought(oid, first, last)
            if place < 0:
                return None
        offset: int
        (offset,) = _OFFSET.unpack_from(self._index, self._offsets + 4 * place)
        if offset & _FAR:
            (offset,) = struct.unpack_from(">Q", self._index, self._far_offsets + 8 * (offset - _FAR))
        return offset

    def _sought(self, oid: bytes, first: int, last: int) -> int:
        """Which of these names it is, counted from the first of all; less than 0 for none."""
        while last - first > _AT_ONCE:
            middle = (first + last) // 2
            first, last = (middle, last) if self._name(middle) <= oid else (first, middle)
        names = self._index[_NAMES + 20 * first : _NAMES + 20 * last]
        found = names.find(oid)
        while found % 20 and found > 0:
            found = names.find(oid, found + 1)
        return first + found // 20 if found >= 0 else -1

    def _name(self, position: int) -> bytes:
        start = _NAMES + 20 * position
        return self._index[start : start + 20]

    def _at(self, offset: int) -> tuple[bytes, bytes]:
        """The object at a place in the pack: down to the nearest body that is whole, and up again."""
        deltas: list[tuple[int, bytes]] = []
        held = made = 0
        while (found := self._bodies.get(offset)) is None:
            kind, base, data = self._entry(offset)
            if kind in _KINDS:
                found = self._remember(offset, (_KINDS[kind], data))
                break
            deltas.append((offset, data))
            if len(deltas) > _LONGEST_CHAIN:
                raise Unreadable("deltas without an end")
            held, made = held + len(data), made + self._made_by(data)
            if held > LARGEST or made > _MOST_MADE:
                raise too_large(f"{self._path}: the object at {offset}")
            offset = base
        for place, delta in reversed(deltas):
            found = self._remember(place, (found[0], b"".join(apply_delta(found[1], delta))))
        return found

    def _entry(self, offset: int) -> tuple[int, int, bytes]:
        """Kind, place of the base (for a delta) and inflated data of what begins at `offset`."""
        pack = self._data()
        position, byte = offset + 1, pack[offset]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80 and shift <= _MOST_SHIFTED:
            byte = pack[position]
            size |= (byte & 0x7F) << shift
            position, shift = position + 1, shift + 7
        if size > LARGEST:
            raise too_large(f"{self._path}: the object at {offset}")
        base = 0
        if kind == _OFFSET_DELTA:
            position, distance = _distance(pack, position)
            base = offset - distance
            if not 0 < base < offset:
                raise Unreadable("a base that is nowhere")
        elif kind == _NAME_DELTA:
            # A pack on disk has the bases of its deltas; one of another pack is for others to find.
            place = self._find(pack[position : position + 20])
            if place is None:
                raise Unreadable("a base in another pack")
            position, base = position + 20, place
        return kind, base, _inflated(pack, position, size)

    def _made_by(self, delta: bytes) -> int:
        """How large a delta says that its body is; applying it checks that, but while it makes it."""
        position = size = shift = 0
        while delta[position] & 0x80:  # how large its base is
            position += 1
        byte = 0x80
        while byte & 0x80 and shift <= _MOST_SHIFTED:  # seven bits a byte, the lowest first
            position += 1
            byte = delta[position]
            size, shift = size | (byte & 0x7F) << shift, shift + 7
        if size > LARGEST:
            raise too_large(f"{self._path}: an object")
        return size

    def _remember(self, offset: int, found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        if self._size > _REMEMBERED:
            self._bodies, self._size = {}, 0
        self._bodies[offset] = found
        self._size += len(found[1])
        return found


def _inflated(pack: mmap.mmap, position: int, size: int) -> bytes:
    # Enough for all but what somebody has deflated oddly: then the rest of the pack is offered.
    deflated = pack[position : position + size + (size >> 9) + 64]
    if size <= _SMALL:
        try:
            if len(data := zlib.decompress(deflated, bufsize=size + 1)) == size:
                return data
        except zlib.error:
            pass
    inflater = zlib.decompressobj()
    data = inflater.decompress(deflated, size + 1)
    if not inflater.eof and len(data) <= size:
        inflater = zlib.decompressobj()
        data = inflater.decompress(pack[position:], size + 1)
    if len(data) != size or not inflater.eof:
        raise Unreadable("another size than is said")
    return data


def _mapped(path: str) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise Unreadable(str(error)) from None  # an empty file
    finally:
        os.close(descriptor)


def _distance(pack: mmap.mmap, position: int) -> tuple[int, int]:
    """How far before its delta a base begins, and the place after that number: seven bits a byte, the highest first."""
    byte = pack[position]
    distance = byte & 0x7F
    while byte & 0x80 and distance <= len(pack):
        position += 1
        byte = pack[position]
        distance = (distance + 1) << 7 | byte & 0x7F
    return position + 1, distance
