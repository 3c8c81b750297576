"""What a crash, a power cut or a killed git may leave in a receipts repository. Looks only; `mending.py` repairs.

Nothing here needs the repository to be whole: each look passes over what another one reports.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import HermesError
from . import commits, peek
from .objects import Objects
from .trees import Folder

# A lock that git holds is gone within seconds; one that has not changed for this long, in seconds, has no holder.
STALE_SECONDS = 60.0
# Those below `objects` are held as long as a whole repack takes.
_STALE_BELOW_OBJECTS = 6 * 3600.0
# Reading a loose object takes 0.1 ms. Where there are more, only those that are empty are told: `git fsck` reads all.
_MOST_READ = 50_000
_NAME = 38


class StaleLock(NamedTuple):
    """`seen` tells whether it is still the same file when it is taken away."""

    path: Path
    age: float
    seen: tuple[int, int]


class BadObject(NamedTuple):
    """A loose object that is not what its name says. `needed` is by a ref, and then no pack has a whole copy."""

    oid: str
    path: Path
    empty: bool
    needed: bool


def stale_locks(repository: Path, now: float) -> Iterator[StaleLock]:
    """Lock files of git's that nobody touches any more; `now` in seconds since 1970."""
    for path in sorted(_lock_files(repository)):
        try:
            found = path.stat()
        except OSError:
            continue
        limit = _STALE_BELOW_OBJECTS if path.is_relative_to(repository / "objects") else STALE_SECONDS
        if (age := now - found.st_mtime) >= limit:
            yield StaleLock(path, age, (found.st_ino, found.st_mtime_ns))


def bursts_kept(repository: Path, now: float) -> Iterator[tuple[Path, float]]:
    """Files of bursts that nobody has put into git for long (`ahead`), and for how many seconds."""
    for path in sorted(each for each in (repository / peek.AHEAD).glob("*") if not each.suffix):
        with contextlib.suppress(OSError):
            if (age := now - path.stat().st_mtime) >= STALE_SECONDS:
                yield path, age


def _lock_files(repository: Path) -> Iterator[Path]:
    yield from repository.glob("*.lock")
    for folder in ("refs", "objects"):
        for place, folders, names in os.walk(repository / folder):
            # The folders of loose objects have none of git's; ours are written without one.
            folders[:] = [each for each in folders if len(each) != 2 or folder == "refs"]
            yield from (Path(place, name) for name in names if name.endswith(".lock"))


def empty_refs(repository: Path) -> list[str]:
    """Refs whose file holds no commit id, as a power cut may leave it."""
    return sorted(name for name, commit in peek.all_refs(repository, "refs/").items() if not commit)


def bad_packs(repository: Path) -> Iterator[tuple[Path, str]]:
    """Packs whose ends do not fit, and what is wrong: what a power cut leaves, told without reading them whole."""
    for pack in sorted((repository / "objects" / "pack").glob("*.pack")):
        index = pack.with_suffix(".idx")
        with contextlib.suppress(FileNotFoundError):  # rolled into another one by git meanwhile
            if wrong := _wrong_with(_ends(pack), _ends(index) if index.exists() else None):
                yield pack, wrong


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first bytes, and the last 40: of a pack its own checksum, of an index the pack's and its own."""
    with path.open("rb") as file:
        first = file.read(4)
        file.seek(-min(path.stat().st_size, 40), os.SEEK_END)
        return first, file.read()


def _wrong_with(pack: tuple[bytes, bytes], index: tuple[bytes, bytes] | None) -> str | None:
    if pack[0] != b"PACK" or len(pack[1]) < 32:
        return "is empty or cut off"
    if index is None:
        return "has no index"
    return None if pack[1][-20:] == index[1][:20] else "does not fit its index"


def has_no_head(repository: Path) -> bool:
    """Whether git would not know the repository for one: `HEAD` is missing, or holds nothing it could follow."""
    try:
        head = (repository / "HEAD").read_bytes()
    except OSError:
        return True
    return not head.startswith(b"ref: refs/") and len(head.strip()) != 40


def bad_objects(repository: Path, objects: Objects) -> list[BadObject]:
    """Loose objects that are empty or damaged."""
    found = {oid: path for oid, path in _loose(repository) if path.stat().st_size == 0 or _is_bad(oid, path)}
    unpacked = {oid for oid in found if not objects.is_packed(bytes.fromhex(oid))}
    needed = _referred_to(repository, objects, unpacked) if unpacked else set()
    return [BadObject(oid, path, path.stat().st_size == 0, oid in needed) for oid, path in found.items()]


def _loose(repository: Path) -> Iterator[tuple[str, Path]]:
    read = 0
    for folder in sorted((repository / "objects").glob("[0-9a-f][0-9a-f]")):
        for path in sorted(folder.iterdir()):
            read += 1
            if len(path.name) == _NAME and (read <= _MOST_READ or path.stat().st_size == 0):
                yield folder.name + path.name, path


def _is_bad(oid: str, path: Path) -> bool:
    try:
        content = zlib.decompress(path.read_bytes())
    except zlib.error:
        return True
    except FileNotFoundError:
        return False  # packed by git meanwhile
    return hashlib.sha1(content, usedforsecurity=False).hexdigest() != oid


def _referred_to(repository: Path, objects: Objects, wanted: set[str]) -> set[str]:
    """Those of `wanted` that a ref leads to, as far as what lies between can be read."""
    waiting = [(b"commit", bytes.fromhex(each)) for each in peek.all_refs(repository, "refs/").values() if each]
    met = {oid for _, oid in waiting}
    while waiting:
        kind, oid = waiting.pop()
        new = [below for below in _below(objects, kind, oid) if below[1] not in met]
        met.update(each for _, each in new)
        waiting += [below for below in new if below[0] != b"blob"]
    return {oid for oid in wanted if bytes.fromhex(oid) in met}


def _below(objects: Objects, kind: bytes, oid: bytes) -> Iterable[tuple[bytes, bytes]]:
    try:
        body = objects.read(oid, kind)
        if kind == b"commit":
            commit = commits.parse(body, oid)
            return [(b"tree", commit.tree), *((b"commit", parent) for parent in commit.parents)]
        items = Folder.parse(body, oid).items()
        return [(b"tree" if item.is_folder else b"blob", item.oid) for _, item in items]
    except HermesError:
        return ()
