"""`verify` of the ledger branch: every commit on it is the one seal that a run which has ended can have.

A seal is a function of the commit before it and of the run's tip, so tree and message are made again and compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core import layout
from ..errors import IntegrityError
from . import commits, peek
from .admission import read_receipt
from .commits import Commit
from .objects import id_of
from .ports import Problem
from .snapshots import Snapshot, Snapshots
from .trees import FOLDER, Folder, Item


def verify_seals(snapshots: Snapshots, newest: str) -> Iterator[Problem]:
    """All problems of the ledger branch, whose tip is `newest`, oldest seal first."""
    chain: list[tuple[bytes, Commit]] = []
    try:
        for oid, commit in snapshots.first_parents(bytes.fromhex(newest)):
            if not commit.parents:
                raise IntegrityError(f"commit {oid.hex()} is a root, but not the genesis commit of all runs")
            chain.append((oid, commit))
    except IntegrityError as error:
        where = chain[-1][0].hex() if chain else newest
        yield Problem("", where, peek.LEDGER, error.message, "the seals before it cannot be found from here")
        # What its seal did cannot be told without the commit before it.
        chain = chain[:-1]
    before: Folder | None = None
    for oid, commit in reversed(chain):
        run_id = next((block["Run"] for block in commit.trailers() if "Run" in block), "")
        try:
            # The tree that the last seal had, if it was the right one: its days are parsed already.
            root = before or snapshots.trees.open(snapshots.commit(commit.parents[0]).tree)
            before, wrong = _judge(snapshots, root, run_id, commit)
        except IntegrityError as error:
            before, wrong = None, error.message
        if wrong:
            yield Problem(run_id, oid.hex(), peek.LEDGER, wrong)


def _judge(snapshots: Snapshots, root: Folder, run_id: str, seal: Commit) -> tuple[Folder | None, str]:
    """The tree after a seal when it is what it must be, and what is wrong with the seal, or ""."""
    if len(seal.parents) != 2:
        return None, "is no seal: it does not have a run's tip as its second parent"
    run = snapshots.at(seal.parents[1])
    if run.run_id != run_id:
        return None, f"says it seals {run_id!r}, and grafts {run.run_id}"
    if not run.ended:
        return None, "seals a run that has no result"
    if wrong := _replaced(snapshots, root, run):
        return None, wrong
    after = snapshots.trees.put(root, {run.folder: Item(FOLDER, run.run_folder().oid)}, id_of)
    if after.oid != seal.tree:
        return None, f"grafts something else than the folder of {run_id} at {run.tip.hex()[:12]}"
    status = read_receipt(run, layout.RESULT).status
    if seal.message != commits.seal_message(run_id, run.tip, status):
        return after, "does not say what it seals"
    return after, ""


def _replaced(snapshots: Snapshots, root: Folder, run: Snapshot) -> str:
    item = snapshots.trees.find(root, run.folder)
    if item is None or item.oid == run.run_folder().oid:
        return ""
    return f"replaces what was sealed of {run.run_id} before"
