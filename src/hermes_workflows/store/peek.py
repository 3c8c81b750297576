"""A repository's refs read as text: no dulwich, no pydantic, so that `status` starts fast.

A ref is looked for as a file first and in `packed-refs` second, as git does it. In that order a reader beside
`git pack-refs` sees the old value or the new one, never none.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import IntegrityError, StoreFailure

RUNS = "refs/runs/"
LEDGER = "refs/heads/ledger"
REMOTES = "refs/remotes/"
AHEAD = "hermes/ahead"
# A record begins with its length, of 4 bytes, and a hash.
_BEFORE_A_RECORD = 24
_LONGEST_HEADER = 512
_AT_ONCE = 16_384

_COMMIT_ID = re.compile(rb"[0-9a-f]{40}\n?\Z")
_WORKSPACE = re.compile(rb"^\[hermes\][^\[]*?^\s*workspace\s*=\s*\"?([0-9A-Za-z._-]+)", re.MULTILINE)
_PACKED_LINE = re.compile(rb"^([0-9a-f]{40}) ([^\0-\x20\x7f]+)$", re.MULTILINE)

Stamp = tuple[int, ...]


def read_ref(repository: Path | str, name: str) -> str | None:
    """The commit id `name` points to, as 40 hex digits, or None.

    Raises IntegrityError for a file that holds no commit id, such as one that a power cut left empty.
    """
    data = _content(f"{repository}/{name}")
    if data is not None:
        return _commit_id(name, data)
    packed = _content(f"{repository}/packed-refs") or b""
    found = re.search(rb"^([0-9a-f]{40}) " + re.escape(os.fsencode(name)) + rb"$", packed, re.MULTILINE)
    return found[1].decode() if found else None


def gone(repository: Path | str) -> StoreFailure:
    """What to raise where a repository was: its disk may be unmounted, its folder on its way to another place."""
    return StoreFailure(f"{repository} is not there any more", hint="put it back; runners go on by themselves")


def list_refs(repository: Path, prefix: str) -> dict[str, str]:
    """All refs below `prefix` (a folder, with its slash): name to commit id, "" for one that holds none.

    A damaged ref must not hide the others; reading it by `read_ref` raises.
    """
    # The files first, as above; `packed-refs` is read once their folders have been.
    loose = _loose(repository, _loose_names(repository, prefix))
    return {**_packed(repository, prefix), **loose}


def all_refs(repository: Path, prefix: str) -> dict[str, str]:
    """As `list_refs`, in the folders below as well."""
    names = (
        f"{os.path.relpath(folder, repository)}/{name}"
        for folder, _, names in os.walk(repository / prefix)
        for name in names
        if not name.endswith(".lock")
    )
    loose = _loose(repository, names)
    return {**_packed(repository, prefix), **loose}


def ref_names(repository: Path, prefix: str) -> set[str]:
    """The names of all refs below `prefix`, without reading each of them."""
    loose = set(_loose_names(repository, prefix))
    return {*_packed(repository, prefix), *loose}


def workspace(repository: Path) -> str | None:
    """The id of the workspace whose repository this is, or None; `repository.workspace_id` says what is wrong."""
    found = _WORKSPACE.search(_content(f"{repository}/config") or b"")
    return found[1].decode() if found else None


def stamp(repository: Path) -> Stamp:
    """Two equal stamps mean that no run's ref moved in between; take it *before* reading what it vouches for.

    Every ref update of ours renames inside `refs/runs` and then gives that folder a time of its own (refs.py),
    so two updates within one tick of the file system's clock differ as well. Bursts only grow until git has them.
    """
    # Bursts first: one that lands while we look has moved its ref by the time that we look there.
    ahead = sum(extent(f"{repository}/{AHEAD}/{name}") for name in bursts(repository))
    refs = (*_stat(repository / RUNS), *_stat(repository / "packed-refs"), *_stat(repository / "refs/heads"))
    return (*refs, ahead)


def is_ahead(repository: Path) -> bool:
    """Whether receipts may be durable that git does not have yet (`ahead`); ask *before* reading a ref."""
    return bool(bursts(repository))


def bursts(repository: Path | str) -> list[str]:
    """The names of the files that hold what git does not have yet (`ahead`)."""
    try:
        # Not what stands beside a burst, which its maker may have left when it was killed.
        return [name for name in os.listdir(f"{repository}/{AHEAD}") if "." not in name]
    except (FileNotFoundError, NotADirectoryError):
        return []


def extent(burst: str) -> int:
    """Where the records of a burst's file end, in bytes (`ahead_file`): its size says only how much room there is."""
    try:
        descriptor = os.open(burst, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        end = os.pread(descriptor, _LONGEST_HEADER, 0).find(b"\n") + 1
        while length := int.from_bytes(os.pread(descriptor, 4, end)):
            end += _BEFORE_A_RECORD + length
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    return end


def _stat(path: Path) -> Stamp:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_ino, found.st_size)


def _loose(repository: Path, names: Iterable[str]) -> dict[str, str]:
    # One that is deleted between the listing and the reading is in neither place, and is left out.
    found = ((name, _content(f"{repository}/{name}")) for name in names)
    return {name: data[:40].decode() if _COMMIT_ID.match(data) else "" for name, data in found if data is not None}


def _packed(repository: Path, prefix: str) -> dict[str, str]:
    lines = _PACKED_LINE.findall(_content(f"{repository}/packed-refs") or b"")
    start = os.fsencode(prefix)
    # Names of refs are bytes, as those of files are.
    return {os.fsdecode(name): value.decode() for value, name in lines if name.startswith(start)}


def whole(path: str, most: float = math.inf) -> bytes:
    """The content of a file; not all of it, but `most` bytes or more, when it has so many. Raises OSError."""
    # Half of the time that `open` takes, which looks at the file three times; a run's refs are read often.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts, size = [], 0
        # To the very end: a disk that cannot read on says so only when it is asked for what is left.
        while size < most and (part := os.read(descriptor, _AT_ONCE)):
            parts.append(part)
            size += len(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _content(path: str) -> bytes | None:
    try:
        return whole(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreFailure(f"cannot read {path}: {error.strerror or error}") from error


def _commit_id(name: str, data: bytes) -> str:
    if not _COMMIT_ID.match(data):
        raise IntegrityError(
            f"{name} holds no commit id",
            hint="a crash may have left it so; `hermes-workflows doctor` says how to repair it",
        )
    return data[:40].decode()


def _loose_names(repository: Path, prefix: str) -> Iterator[str]:
    try:
        names = os.listdir(repository / prefix)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if not name.endswith(".lock"):
            yield prefix + name
