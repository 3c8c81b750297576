"""Targets of what lies in repositories: receipts, git's objects, packs, refs, bundles, and what a crash left."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import os
import warnings
import zlib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.target import GOLDEN, Target, golden_receipts, joined, parts, refused_as

from hermes_workflows.core import layout
from hermes_workflows.core.canonical import dumps, parse
from hermes_workflows.core.receipts import Author, Receipt, draft, load
from hermes_workflows.errors import IntegrityError, InvalidInput, StoreFailure
from hermes_workflows.store import commits, peek
from hermes_workflows.store.adding import Addition
from hermes_workflows.store.ahead_file import AheadFile
from hermes_workflows.store.bundles import read_header
from hermes_workflows.store.durability import disk_for
from hermes_workflows.store.loose import deflate
from hermes_workflows.store.objects import Batch, Objects
from hermes_workflows.store.pack_file import PackFile, Unreadable
from hermes_workflows.store.packing import packing
from hermes_workflows.store.repository import GENESIS, create
from hermes_workflows.store.trees import Folder

OID = hashlib.sha1(b"").digest()
DISK = disk_for(Path("/"), "process")
# A damaged length must not become memory: nothing that is read here is larger than what was given, but for zlib's best.
ZLIB_AT_BEST = 1032


@cache
def place() -> Path:
    """A folder of this process alone, gone with it."""
    kept = TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True)
    _kept.append(kept)
    return Path(kept.name)


_kept: list[TemporaryDirectory[str]] = []


@cache
def repository() -> Path:
    path = place() / "receipts.git"
    create(path, "process")
    return path


def written(name: str, data: bytes) -> Path:
    path = place() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# -- JSON and receipts ---------------------------------------------------------------------------------------


def json_text(data: bytes) -> None:
    with refused_as(InvalidInput):
        value = parse(data)
        assert parse(dumps(value)) == value


def no_blob(sha256: str) -> bytes:
    raise IntegrityError(f"{sha256} is not here")


def receipt(data: bytes) -> None:
    path, content = parts(data, 2, b"\n")
    with refused_as(IntegrityError):
        found = load(path.decode("utf-8", "surrogateescape"), content, no_blob)
        used(found)


def used(found: Receipt) -> None:
    """What was read would be written again, unless it is larger than what is written."""
    with refused_as(InvalidInput):
        first = draft(found, Author("hostile"))
        again = draft(load(found.path, first.render(found.seq), lambda name: first.blobs[name]), Author("hostile"))
        assert again.render(found.seq) == first.render(found.seq)


def receipts() -> list[bytes]:
    return [
        joined(file.relative_to(run_of(file)).as_posix().encode(), file.read_bytes(), separator=b"\n")
        for file in golden_receipts()
    ]


def run_of(file: Path) -> Path:
    return next(parent for parent in file.parents if parent.parent.name == "receipts")


# -- git's objects -------------------------------------------------------------------------------------------


def commit(data: bytes) -> None:
    with refused_as(IntegrityError):
        found = commits.parse(data, OID)
        assert len(found.tree) == 20
        assert all(len(parent) == 20 for parent in found.parents)
        found.trailers()
        found.serialise()


COMMIT = b"""tree %s
parent %s
author A B <a@b> 1767225600 +0000
committer A B <a@b> 1767225600 +0000
gpgsig -----BEGIN SSH SIGNATURE-----
 U1NIU0lH
 -----END SSH SIGNATURE-----

wf_a: started

Hermes-Run: wf_a
Hermes-Key: x
""" % (b"1" * 40, GENESIS.encode())


def tree(data: bytes) -> None:
    with refused_as(IntegrityError):
        found = Folder.parse(data, OID)
        assert found.serialise() == data
        for name, _ in found.items():
            found.item(name)


TREE = b"40000 runs\0" + OID + b"100644 run.json\0" + OID + b"120000 \xff\0" + OID


def loose(data: bytes) -> None:
    """The file of a loose object: read by our own reader, and what dulwich makes of those that it is left with."""
    path = repository() / "objects" / OID.hex()[:2] / OID.hex()[2:]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    objects = Objects(repository(), DISK)
    with contextlib.closing(objects), refused_as(IntegrityError, StoreFailure):
        assert len(objects.read(OID, b"blob")) <= ZLIB_AT_BEST * len(data)


def loose_files() -> list[bytes]:
    small, large = b"blob 5\0hello", b"blob 20000\0" + bytes(20000)
    return [deflate(small), zlib.compress(small), deflate(large), deflate(b"tree %d\0%s" % (len(TREE), TREE))]


def pack(data: bytes) -> None:
    """A pack and its index: read by our own reader, and by dulwich, who is asked when that cannot."""
    index, body = parts(data, 2)
    if len(index) >= 40 and len(body) >= 20:
        # They name each other, or nothing of them is read.
        index = index[:-40] + body[-20:] + index[-20:]
    folder = repository() / "objects" / "pack"
    (folder / "pack-hostile.pack").write_bytes(body)
    (folder / "pack-hostile.idx").write_bytes(index)
    names = [index[at : at + 20] for at in range(1032, min(len(index), 1032 + 20 * 8), 20)]
    objects = Objects(repository(), DISK)
    with warnings.catch_warnings():
        # What dulwich has half opened when it turns out to be damaged it leaves to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        read_packed(objects, folder, names)
        gc.collect()


def read_packed(objects: Objects, folder: Path, names: list[bytes]) -> None:
    try:
        with contextlib.suppress(Unreadable), contextlib.closing(PackFile(f"{folder}/pack-hostile.idx")) as found:
            for name in names:
                with contextlib.suppress(Unreadable):
                    found.read(name.ljust(20, b"\0"))
        for name in names:
            with refused_as(IntegrityError, StoreFailure):
                objects.read(name.ljust(20, b"\0"), b"blob")
    finally:
        objects.close()
        for suffix in ("idx", "pack"):
            (folder / f"pack-hostile.{suffix}").unlink()


@cache
def packs() -> list[bytes]:
    """One of ours, and one of dulwich's with deltas."""
    from dulwich.object_format import DEFAULT_OBJECT_FORMAT
    from dulwich.objects import Blob
    from dulwich.pack import deltify_pack_objects, write_pack_data, write_pack_index_v2

    with TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/objects/pack")
        batch = Batch()
        for number in range(5):
            batch.write(b"blob", b"version %d of it" % number)
        barrier = DISK.barrier()
        with packing(folder, batch.objects, DISK, barrier):
            barrier.settle()
        (ours,) = Path(folder, "objects/pack").glob("*.idx")
        seeds = [joined(ours.read_bytes(), ours.with_suffix(".pack").read_bytes())]
    blobs = [(Blob.from_string(b"line\n" * 100 + b"%d" % number), None) for number in range(4)]
    body, index = io.BytesIO(), io.BytesIO()
    unpacked = list(deltify_pack_objects(iter(blobs)))
    entries, checksum = write_pack_data(
        body.write, iter(unpacked), num_records=len(unpacked), object_format=DEFAULT_OBJECT_FORMAT
    )
    write_pack_index_v2(index, sorted((name, offset, crc) for name, (offset, crc) in entries.items()), checksum)
    return [*seeds, joined(index.getvalue(), body.getvalue())]


# -- beside the objects --------------------------------------------------------------------------------------


def refs(data: bytes) -> None:
    """packed-refs, the file of a ref, and the repository's config."""
    packed, one, config = parts(data, 3)
    folder = written("refs.git/packed-refs", packed).parent
    written("refs.git/refs/runs/wf_a", one)
    written("refs.git/config", config)
    with refused_as(IntegrityError, StoreFailure):
        for found in (peek.list_refs(folder, peek.RUNS), peek.all_refs(folder, "refs/")):
            assert all(value == "" or len(value) == 40 for value in found.values())
            for name in found:
                peek.read_ref(folder, name)
        peek.ref_names(folder, peek.RUNS)
        peek.workspace(folder)


def ref_files() -> list[bytes]:
    line = GENESIS.encode()
    packed = b"# pack-refs with: peeled fully-peeled sorted \n%s refs/heads/main\n%s refs/runs/wf_b\n^%s\n"
    config = b"[core]\n\tbare = true\n[hermes]\n\tworkspace = 0123456789abcdef\n"
    return [joined(packed % (line, line, line), line + b"\n", config), joined(b"", b"", config)]


def bundle(data: bytes) -> None:
    file = io.BytesIO(data)
    with refused_as(InvalidInput):
        read_header(file, "hostile.bundle").tips()
    assert file.tell() <= 4096 * 20_002


def bundles() -> list[bytes]:
    return [file.read_bytes() for file in sorted(GOLDEN.glob("*/runs/*.bundle"))[:3]]


def ahead(data: bytes) -> None:
    path = written("ahead", data)
    file = AheadFile(os.open(path, os.O_RDONLY), str(path))
    try:
        _, found = file.records()
    finally:
        file.close()
    assert sum(each.size for each in found) <= len(data)


def ahead_files() -> list[bytes]:
    folder = place() / "bursts"
    for name in ("hermes/pending", "hermes/ahead"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    file = AheadFile.make(str(folder), "wf_a")
    file.append(Addition(COMMIT.partition(b"\n")[2], {"runs/2026-11-30/wf_a/steps/one.json": b"{}", "two": TREE}))
    file.append(Addition(b"parent \n", {}))
    data = Path(file.path).read_bytes()
    file.remove()
    file.close()
    return [data]


def path_in_a_run(data: bytes) -> None:
    layout.place(data.decode("utf-8", "surrogateescape"))


TARGETS = (
    Target("json", json_text, lambda: [file.read_bytes() for file in golden_receipts()]),
    Target("receipt", receipt, receipts),
    Target("commit", commit, lambda: [COMMIT]),
    Target("tree", tree, lambda: [TREE]),
    Target("loose", loose, loose_files),
    Target("pack", pack, packs),
    Target("refs", refs, ref_files),
    Target("bundle", bundle, bundles),
    Target("ahead", ahead, ahead_files),
    Target("path", path_in_a_run, lambda: [seed.partition(b"\n")[0] for seed in receipts()]),
)
