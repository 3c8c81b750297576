"""Packs that we write: what a burst or a large batch adds, as two files instead of hundreds.

Git finds a pack by its index, so the index takes its name last, and both take theirs when they are whole on the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from dulwich.pack import write_pack_index_v2

from .durability import Barrier, Disk
from .loose import deflate, write_all

# Seven receipts. Two files cost less than one an object from some ten objects on; but every reader looks into all
# packs, and finds a file of one object by its name.
PACKED_FROM = 48

_KIND_NUMBERS = {b"commit": 1, b"tree": 2, b"blob": 3}


@contextlib.contextmanager
def packing(
    repository: str, objects: Mapping[bytes, tuple[bytes, bytes]], disk: Disk, barrier: Barrier
) -> Iterator[None]:
    """Write `objects` (id of 20 bytes to kind and body) as one pack; `barrier` gets its index. Raises OSError.

    Until this is left git removes nothing of it: `repack -a -d` drops what no ref led to when it began, except where
    a file `.keep` lies beside, which must be there before git can find the pack.
    """
    folder = f"{repository}/objects/pack"
    data, entries = _pack(objects)
    digest = bytes(data[-20:])
    index = io.BytesIO()
    write_pack_index_v2(index, sorted(entries), digest)
    # Named by its content: a pack of this name that exists already is the same, byte for byte.
    name = f"{folder}/pack-{digest.hex()}"
    os.close(os.open(f"{name}.keep", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    try:
        os.close(_put(f"{folder}/tmp_pack_", f"{name}.pack", data, disk))
        barrier.hold(_put(f"{folder}/tmp_idx_", f"{name}.idx", index.getvalue(), disk), folder)
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{name}.keep")


def _pack(objects: Mapping[bytes, tuple[bytes, bytes]]) -> tuple[bytearray, list[tuple[bytes, int, int | None]]]:
    """A pack's bytes, and for its index the id, place and checksum of each object."""
    # In one place from the beginning: pieces that are joined at the end are in memory three times.
    data = bytearray(b"PACK" + struct.pack(">LL", 2, len(objects)))
    entries: list[tuple[bytes, int, int | None]] = []
    for oid, (kind, body) in objects.items():
        chunk = _header(_KIND_NUMBERS[kind], len(body)) + deflate(body)
        entries.append((oid, len(data), zlib.crc32(chunk)))
        data += chunk
    data += hashlib.sha1(data, usedforsecurity=False).digest()
    return data, entries


# Of most objects of a burst the size is one that was met before.
@lru_cache(maxsize=1024)
def _header(kind: int, size: int) -> bytes:
    """Kind and size in git's way: four bits of the size beside the kind, then seven a byte, the lowest first."""
    found = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        found.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    found.append(byte)
    return bytes(found)


def _put(temporary: str, path: str, data: bytes | bytearray, disk: Disk) -> int:
    """Write a file that has its name when it is whole on the disk; its open descriptor."""
    # Names that `git gc` sweeps when a killed writer leaves them.
    temporary += secrets.token_hex(8)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        write_all(descriptor, data)
        disk.put_before_names(descriptor)
        os.rename(temporary, path)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return descriptor
