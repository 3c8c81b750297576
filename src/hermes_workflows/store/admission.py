"""Whether an entry may be recorded, and what it then adds: the one rule of appending (SEMANTICS §4).

    has result.json   decided elsewhere   path taken   an outside result      a decision
    no                no                  no           recorded               recorded
    no                yes                 -            (rebased) recorded     Stale
    any               any                 yes          PathTaken              Ended, Stale, then PathTaken
    yes               -                   no           Ended                  Ended

The git ledger asks it inside each compare-and-swap, the memory ledger under its lock; neither decides by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ..core import layout
from ..core.layout import Role
from ..core.names import check_run_id
from ..core.receipts import Receipt, load
from ..errors import IntegrityError, InvalidInput
from .ports import Ended, Entry, Head, PathTaken, Stale

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

# No path of ours contains these, as parts and as characters; a tree that did could write outside a checkout.
_FORBIDDEN = re.compile(r"(?:^|/)(?:\.?\.?|\.git)(?:/|\Z)|[\x00-\x1f\\\x7f]", re.IGNORECASE | re.ASCII)


class Contents(Protocol):
    """What reading a run needs of its folder."""

    def content(self, path: str) -> bytes | None:
        """The bytes of a file of the run's folder."""


class RunFolder(Contents, Protocol):
    """What an append must know of a run as it stands."""

    @property
    def last_seq(self) -> int: ...

    def has(self, path: str) -> bool: ...


@dataclass(frozen=True)
class Recorded:
    """What an entry adds to the run's folder: new files, and its receipts as they will be read back."""

    files: Mapping[str, bytes]
    receipts: tuple[Receipt, ...]


def check_entry(entry: Entry) -> None:
    """Raises InvalidInput for an entry that no ledger may record, whatever the run's state."""
    paths = [draft.path for draft in entry.drafts]
    if not paths and not entry.files:
        raise InvalidInput("an entry needs a receipt or a file")
    if len(set(paths)) != len(paths):
        raise InvalidInput("an entry holds two receipts for one path")
    for path in paths:
        _check_path(path, Role.RESULT, Role.NOTE)
    for path in entry.files:
        _check_path(path, Role.FILE, Role.DERIVED)


def check_start(entry: Entry, day: str) -> None:
    """Raises InvalidInput for an entry that no run may start with."""
    check_entry(entry)
    check_run_id(entry.run_id)
    if not entry.drafts or entry.drafts[0].path != layout.RUN:
        raise InvalidInput(f"a run starts with {layout.RUN}")
    if not _DAY.fullmatch(day):
        raise InvalidInput(f"{day!r} is no day: yyyy-mm-dd")


def admit(entry: Entry, folder: RunFolder, head: Head) -> Recorded | PathTaken | Stale | Ended:
    """Decide about an entry that `check_entry` has let pass. Raises InvalidInput for a changed file."""
    refusal = _refuse(entry, folder, head)
    if refusal:
        return refusal
    files = _new_files(entry, folder)
    receipts = []
    for seq, draft in enumerate(entry.drafts, start=folder.last_seq + 1):
        data = files[draft.path] = draft.render(seq)
        # Read back from the bytes: whoever continues from here sees what a later reader will see, and nothing else.
        receipts.append(load(draft.path, data, partial(blob_of, folder, made=files)))
    return Recorded(files, tuple(receipts))


def read_receipt(folder: Contents, path: str) -> Receipt:
    """Raises IntegrityError, NewerSchema, also when the receipt or one of its blobs is missing."""
    data = folder.content(path)
    if data is None:
        raise IntegrityError(f"{path} is missing")
    return load(path, data, partial(blob_of, folder))


def _refuse(entry: Entry, folder: RunFolder, head: Head) -> PathTaken | Stale | Ended | None:
    ended = folder.has(layout.RESULT)
    if entry.decided_at is not None:
        if ended:
            return Ended(head)
        if entry.decided_at != folder.last_seq:
            return Stale(head)
    for draft in entry.drafts:
        if folder.has(draft.path):
            return PathTaken(head, read_receipt(folder, draft.path))
    return Ended(head) if ended else None


def _new_files(entry: Entry, folder: RunFolder) -> dict[str, bytes]:
    blobs = {layout.artifact(sha256): data for draft in entry.drafts for sha256, data in draft.blobs.items()}
    files = {path: data for path, data in blobs.items() if not folder.has(path)}
    for path, data in entry.files.items():
        existing = folder.content(path) if folder.has(path) else None
        if existing == data:
            continue
        if existing is not None and path != layout.README:
            raise InvalidInput(f"{path} is recorded with another content; files of a run never change")
        files[path] = data
    return files


def blob_of(folder: Contents, sha256: str, made: Mapping[str, bytes] | None = None) -> bytes:
    """The content of an artifact of the run, `made` and not yet in its folder or in there. Raises IntegrityError."""
    path = layout.artifact(sha256)
    data = made.get(path) if made else None
    if data is None:
        data = folder.content(path)
    if data is None:
        raise IntegrityError(f"{path} is missing")
    return data


def _check_path(path: str, *roles: Role) -> None:
    place = layout.place(path)
    if place is None or place.role not in roles or _FORBIDDEN.search(path):
        raise InvalidInput(f"{path!r} is no place for a {' or '.join(roles)} in a run's folder")
