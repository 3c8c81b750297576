"""The target of whole runs of others: trees and commits as somebody made them, receipts as they lie there."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from functools import cache
from typing import Any

from tests.fuzz.stored import DISK, receipts, repository, run_of
from tests.fuzz.target import Target, golden_receipts, joined, refused_as

from hermes_workflows.core.comparison import compare
from hermes_workflows.core.messages import receipts_message
from hermes_workflows.core.outline import calls_of
from hermes_workflows.core.readme import render
from hermes_workflows.core.receipts import Receipt
from hermes_workflows.core.summary import RunSummary, summarize
from hermes_workflows.errors import IntegrityError
from hermes_workflows.store import index_table, tables
from hermes_workflows.store.arriving import check_arrival, home_of
from hermes_workflows.store.index import whole
from hermes_workflows.store.objects import Objects
from hermes_workflows.store.ports import Head
from hermes_workflows.store.repository import GENESIS
from hermes_workflows.store.snapshots import Snapshots

SEPARATOR = b"\n\0\n"
COMMIT = b"tree %s\nparent %s\nauthor A <a@b> 1767225600 +0000\ncommitter A <a@b> 1767225600 +0000\n\n%s"


class Given(Objects):
    """Objects of one input, in memory, beside those that every repository has."""

    def __init__(self) -> None:
        super().__init__(repository(), DISK)
        self.given: dict[bytes, tuple[bytes, bytes]] = {}

    def add(self, kind: bytes, body: bytes) -> bytes:
        oid = hashlib.sha1(b"%s %d\0%s" % (kind, len(body), body)).digest()
        self.given[oid] = (kind, body)
        return oid

    def read(self, oid: bytes, kind: bytes) -> bytes:
        self.reads += 1
        if oid not in self.given:
            return super().read(oid, kind)
        found, body = self.given[oid]
        if found != kind:
            raise IntegrityError(f"{oid.hex()} is a {found!r}")
        return body

    def folder(self, files: list[tuple[bytes, bytes, bytes]]) -> bytes:
        """A tree of (mode, path, content), as odd as they are."""
        inner: dict[bytes, list[tuple[bytes, bytes, bytes]]] = {}
        entries = []
        for mode, path, content in files:
            name, slash, rest = path.partition(b"/")
            if slash:
                inner.setdefault(name, []).append((mode, rest, content))
            else:
                entries.append((name, mode, self.add(b"blob", content)))
        entries += [(name, b"40000", self.folder(below)) for name, below in inner.items()]
        entries.sort(key=lambda entry: entry[0] + b"/" * (entry[1] == b"40000"))
        return self.add(b"tree", b"".join(b"%s %s\0%s" % (mode, name, oid) for name, mode, oid in entries))

    def commit(self, tree: bytes, message: bytes) -> str:
        head = COMMIT % (tree.hex().encode(), GENESIS.encode(), message)
        return self.add(b"commit", head).hex()


def run(data: bytes) -> None:
    """The commit's message, then files: a line with mode and path, then what is in it."""
    message, *sections = data.split(SEPARATOR)
    objects, base = Given(), Given().read(bytes.fromhex(GENESIS), b"commit")
    root = objects.read(bytes.fromhex(base[5:45].decode()), b"tree")
    files = [(*_named(line), content) for line, _, content in (each.partition(b"\n") for each in sections)]
    made = objects.folder(files)
    tree = objects.add(b"tree", _sorted(root + objects.given[made][1]))
    tip = objects.commit(tree, message)
    snapshots = Snapshots(objects)
    with refused_as(IntegrityError):
        home_of(check_arrival(snapshots, tip))
    with refused_as(IntegrityError):
        snapshots.locate(bytes.fromhex(tip))
        snapshot = snapshots.at(bytes.fromhex(tip))
        look_at(snapshot.head(), snapshots.receipts(snapshot))
    # As much as there is, and each of it a few times: at, locate, verify, receipts.
    assert objects.reads <= 40 + 20 * len(objects.given)


def _named(line: bytes) -> tuple[bytes, bytes]:
    mode, _, path = line.partition(b" ")
    return mode, path.replace(b"\0", b"")


def _sorted(tree: bytes) -> bytes:
    """Two trees' entries as one tree, when they are whole."""
    entries, at = [], 0
    while at < len(tree) and (zero := tree.find(b"\0", at)) >= 0:
        entries.append(tree[at : zero + 21])
        at = zero + 21
    return b"".join(sorted(entries, key=lambda entry: entry[:-21].partition(b" ")[2] + b"/" * (entry[:5] == b"40000")))


def look_at(head: Head, found: list[Receipt]) -> None:
    """What `status`, `show`, `compare`, the index and the README make of a run that can be read."""
    summary = summarize(head.run_id, found)
    assert RunSummary.from_json(json.loads(json.dumps(summary.to_json(), default=repr)))
    calls_of(found)
    render(summary, found)
    receipts_message(head.run_id, found, 0)
    compare(found, found)
    row = whole(head, found)
    with database() as connection:
        index_table.put(connection, [row])
        assert index_table.one(connection, head.run_id)
        connection.rollback()


@cache
def database() -> Any:
    connection = sqlite3.connect(":memory:", isolation_level="DEFERRED")
    connection.row_factory = sqlite3.Row
    connection.executescript(tables.SCHEMA)
    return connection


def runs() -> list[bytes]:
    by_run: dict[str, list[bytes]] = {}
    for file, seed in zip(golden_receipts(), receipts(), strict=True):
        folder = run_of(file)
        path = b"100644 runs/2026-01-01/wf_a/%s" % seed
        by_run.setdefault(folder.name, []).append(path)
    message = b"wf_a: started\n\nHermes-Run: wf_a\nHermes-Key: x\n"
    return [joined(message, *sections, separator=SEPARATOR) for sections in by_run.values()]


TARGETS = (Target("run", run, runs),)
