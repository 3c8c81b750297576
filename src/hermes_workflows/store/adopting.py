"""What a run that starts from another one takes over: receipts as they are, and what they stand on (SEMANTICS §6).

Bytes stay the same, so in git nothing is written but the folders that lack something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..core import layout
from ..core.receipts import Receipt, load
from ..errors import IntegrityError, InvalidInput
from .admission import Contents, read_receipt
from .ports import Adopted
from .snapshots import Snapshot
from .trees import FILE, Write

_SHA256 = re.compile(rb"[0-9a-f]{64}")
# Neither is adopted: a run has its own beginning and its own end.
_OWN = (layout.RUN, layout.RESULT)


def adopted_receipts(source: Contents, adopted: Adopted) -> tuple[Receipt, ...]:
    """The receipts that are taken over, in seq order. Raises InvalidInput, IntegrityError."""
    for path in adopted.paths:
        place = layout.place(path)
        if place is None or place.role not in (layout.Role.RESULT, layout.Role.NOTE) or path in _OWN:
            raise InvalidInput(f"{path!r} is no receipt that a run could adopt")
    return tuple(sorted((read_receipt(source, path) for path in adopted.paths), key=lambda each: each.seq))


def adopted_files(source: Contents, paths: Iterable[str], receipts: Iterable[Receipt]) -> set[str]:
    """Of all `paths` of the source's folder those that these receipts are or stand on."""
    wanted = {receipt.path for receipt in receipts}
    codes = {receipt.execution.code for receipt in receipts}
    # Wherever a receipt names an artifact, it writes its sha256; one that is named by chance does no harm.
    named = {match.decode() for path in wanted for match in _SHA256.findall(source.content(path) or b"")}
    for path in paths:
        place = layout.place(path)
        family = place.family if place else ""
        if (family == "artifact" and path.rpartition("/")[2] in named) or (
            family == "source" and path.split("/")[1] in codes
        ):
            wanted.add(path)
    return wanted


@dataclass(frozen=True)
class Taken:
    """What a run's first commit adds beside its start: files by path, and the receipts among them in seq order."""

    files: Mapping[str, bytes]
    receipts: tuple[Receipt, ...]


def replaced(adopted: Adopted, receipts: Iterable[Receipt]) -> Taken:
    """The receipts that take the place of others, with the artifacts they bring, among those that are adopted."""
    files: dict[str, bytes] = {}
    made = list(receipts)
    for each in adopted.instead:
        files.update((layout.artifact(sha256), data) for sha256, data in each.blobs.items())
        files[each.path] = each.render(each.receipt.seq)
        made.append(load(each.path, files[each.path], each.blobs.__getitem__))
    return Taken(files, tuple(sorted(made, key=lambda receipt: receipt.seq)))


def adopt(start: Snapshot, source: Snapshot, adopted: Adopted, write: Write) -> tuple[Snapshot, Taken]:
    """`start`, a run without anything yet, with the files it adopts as they are; and what is to be written."""
    trees = start.store.trees
    receipts = adopted_receipts(source, adopted)
    items = dict(trees.walk(source.run_folder()))
    wanted = adopted_files(source, items, receipts)
    if odd := sorted(path for path in wanted if items[path].mode != FILE):
        raise IntegrityError(f"{source.run_id}: {odd[0]} is not a plain file", hint="hermes-workflows verify")
    picked = trees.pick(source.run_folder(), wanted, write)
    if picked:
        start = replace(start, root=trees.graft(start.root, start.folder, picked))
    return start, replaced(adopted, receipts)
