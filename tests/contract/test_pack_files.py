"""Our reader of packs says what git and dulwich say, and leaves to them what it does not know."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from dulwich.pack import write_pack_index_v2
from dulwich.repo import Repo
from tests.contract.ledgers import git, open_git, record, start, step_draft

from hermes_workflows.errors import IntegrityError
from hermes_workflows.store.durability import disk_for
from hermes_workflows.store.objects import Objects
from hermes_workflows.store.pack_file import PackFile, Unreadable
from hermes_workflows.store.packing import packing
from hermes_workflows.store.packs import Packs


def versions(seed: int = 1) -> Iterator[bytes]:
    """Bodies that resemble each other, as receipts and trees do; also empty, large and incompressible ones."""
    chance = random.Random(seed)
    yield from (b"", b"x", chance.randbytes(70_000), bytes(200_000), chance.randbytes(300) * 400)
    lines = [b"line %d: %s\n" % (number, chance.randbytes(4).hex().encode()) for number in range(60)]
    for number in range(60):
        lines[chance.randrange(60)] = b"version %d\n" % number
        yield b"".join(lines) * (1 + number % 7 * 20)


def fed(folder: Path, given: str | Path, *arguments: str) -> str:
    """What C git makes of its standard input: a text, or a file's bytes."""
    data = given.encode() if isinstance(given, str) else given.read_bytes()
    return subprocess.run(["git", *arguments], cwd=folder, input=data, check=True, capture_output=True).stdout.decode()


def packed(
    folder: Path, *options: str, config: str = "pack.compression=1", bodies: Iterator[bytes] | None = None
) -> Path:
    """A bare repository whose blobs are in one pack of C git's; its folder."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    names = []
    for number, body in enumerate(bodies or versions()):
        names.append(f"body-{number}")
        (folder / names[-1]).write_bytes(body)
    objects = fed(folder, "\n".join(names) + "\n", "hash-object", "-w", "--stdin-paths")
    fed(folder, objects, "-c", config, "pack-objects", "-q", *options, "objects/pack/pack")
    git(folder, "prune-packed")
    return folder


def index_of(folder: Path) -> str:
    (found,) = (folder / "objects" / "pack").glob("*.idx")
    return os.fspath(found)


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ("--delta-base-offset", "pack.compression=1"),
        ("", "pack.compression=1"),
        ("--delta-base-offset --depth=4000 --window=200", "pack.compression=1"),
        ("--window=0", "pack.compression=1"),
        ("--delta-base-offset --no-reuse-object", "pack.compression=0"),
        ("--delta-base-offset --no-reuse-object", "pack.compression=9"),
    ],
    ids=["offset deltas", "name deltas", "long chains", "no deltas", "stored", "squeezed"],
)
def test_every_object_is_what_git_and_dulwich_say(tmp_path: Path, options: str, config: str) -> None:
    folder = packed(tmp_path / "r.git", *options.split(), config=config)
    with closing(PackFile(index_of(folder))) as ours, closing(Repo(os.fspath(folder))) as theirs:
        names = [name.decode() for name in theirs.object_store]
        assert len(names) == 65
        for name in names:
            kind, body = theirs.object_store.get_raw(ObjectID(name.encode()))
            assert ours.read(bytes.fromhex(name)) == (b"blob", body), kind
        told = fed(folder, "".join(f"{name}\n" for name in names), "cat-file", "--batch-check").split("\n")[:-1]
        assert told == [f"{name} blob {len(ours.read(bytes.fromhex(name))[1])}" for name in names]


def test_names_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    chance = random.Random(1)
    names = sorted(b"\7" + bytes(chance.choices(b"\7\0\xff", k=19)) for _ in range(1000))
    assert len(set(names)) == 1000
    held, others = names[::2], names[1::2]
    data = b"PACK" + struct.pack(">2L", 2, len(held)) + b"\x33" + zlib.compress(b"one") + bytes(20)
    (tmp_path / "p.pack").write_bytes(data)
    with open(tmp_path / "p.idx", "wb") as file:
        write_pack_index_v2(file, [(name, 12, 0) for name in held], data[-20:])
    with closing(PackFile(os.fspath(tmp_path / "p.idx"))) as pack:
        assert {pack.read(name) for name in held} == {(b"blob", b"one")}
        assert {pack.read(name) for name in others} == {None}


@pytest.mark.parametrize("suffix", [".idx", ".pack"])
def test_a_changed_byte_anywhere_is_no_other_error(tmp_path: Path, suffix: str) -> None:
    folder = packed(tmp_path / "r.git", "--delta-base-offset", bodies=iter([b"one" * 40, b"two" + b"one" * 40]))
    index = Path(index_of(folder))
    names = [bytes.fromhex(line.split()[1]) for line in fed(folder, index, "show-index").splitlines()]
    place = index.with_suffix(suffix)
    whole = place.read_bytes()
    place.chmod(0o644)
    for position in range(len(whole)):
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            with closing(PackFile(os.fspath(index))) as pack:
                assert {type(pack.read(name)) for name in names} <= {tuple, type(None)}
        except Unreadable:
            continue


def test_packs_that_git_replaces_are_read_on(tmp_path: Path) -> None:
    with closing(open_git(tmp_path)) as ledger:
        start(ledger)
        record(ledger, "wf_a", step_draft("one"))
        git(ledger.path, "repack", "-adq")
        with closing(open_git(tmp_path)) as reader:
            assert len(reader.read("wf_a")[1]) == 2
            record(ledger, "wf_a", step_draft("two"))
            git(ledger.path, "gc", "-q", "--prune=now")
            assert [receipt.key for receipt in reader.read("wf_a")[1]] == ["", "one", "two"]


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_the_reader_does_not_know_is_read_by_dulwich(tmp_path: Path, version: str) -> None:
    folder = packed(tmp_path / "r.git", config=f"pack.indexVersion={version}")
    if version == "1":
        with pytest.raises(Unreadable):
            PackFile(index_of(folder))
    name = git(folder, "hash-object", "body-7").strip()
    assert Packs(folder).read(bytes.fromhex(name))[1] == (folder / "body-7").read_bytes()


def test_objects_of_a_repository_that_ours_borrows_from_are_read(tmp_path: Path) -> None:
    lender = packed(tmp_path / "lender.git")
    borrower = packed(tmp_path / "borrower.git", bodies=iter([b"own"]))
    (borrower / "objects" / "info" / "alternates").write_text(f"{lender}/objects\n")
    name = git(lender, "hash-object", "body-7").strip()
    assert Packs(borrower).read(bytes.fromhex(name))[1] == (lender / "body-7").read_bytes()


def test_a_missing_object_is_named(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git")
    with pytest.raises(IntegrityError, match=r"object 0101\w+ is missing"):
        Objects(folder, disk_for(folder, "process")).read(b"\1" * 20, b"blob")


def test_few_of_many_packs_are_mapped_at_a_time(tmp_path: Path) -> None:
    repository, disk = tmp_path / "made", disk_for(tmp_path, "process")
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    names = {}
    for number in range(20):
        objects = {bytes([number, each]) + bytes(18): (b"blob", b"%d" % number) for each in range(3)}
        with packing(os.fspath(repository), objects, disk, disk.barrier()):
            names |= objects
    with closing(Packs(repository)) as packs:
        assert all(packs.read(oid) == found for oid, found in names.items())
        assert 0 < sum(pack.is_mapped for pack in packs._order) <= 8
        assert all(packs.find(oid) == found for oid, found in names.items())
