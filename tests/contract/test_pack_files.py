"""Our reader of packs says what git and dulwich say, and leaves to them what it does not know."""

from __future__ import annotations

import hashlib
import io
import os
import random
import struct
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from dulwich.pack import write_pack_index_v2
from dulwich.repo import Repo
from tests.contract.ledgers import git, open_git, record, start, step_draft

from hermes_workflows.errors import HermesError, IntegrityError
from hermes_workflows.store import pack_file
from hermes_workflows.store.durability import disk_for
from hermes_workflows.store.largest import TooLarge
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


@pytest.mark.parametrize("letters", [b"\7\0\xff", bytes(range(256)), bytes(range(40)), bytes(range(250, 256))])
def test_names_that_begin_alike_are_told_apart(tmp_path: Path, letters: bytes) -> None:
    chance = random.Random(1)
    names = sorted(b"\7" + bytes(chance.choices(letters, k=19)) for _ in range(1000))
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


def test_a_fork_does_not_read_from_the_place_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = packed(tmp_path / "r.git", config="pack.indexVersion=1")
    packs, name = Packs(folder), bytes.fromhex(git(folder, "hash-object", "body-7").strip())
    body = packs.read(name)
    (before,) = packs._open
    monkeypatch.setattr(os, "getpid", lambda: 0)
    assert packs.read(name) == body
    assert packs._open != [before]


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


def entry(kind: int, body: bytes, base: bytes = b"", *, data: bytes = b"", size: int | None = None) -> bytes:
    """What stands in a pack: kind and size, where the base is, and the deflated body, or `data` in its place."""
    left = len(body) if size is None else size
    head, left = bytearray([kind << 4 | left & 15]), left >> 4
    while left:
        head[-1] |= 0x80
        head.append(left & 0x7F)
        left >>= 7
    return bytes(head) + base + (data or zlib.compress(body))


def name_of(number: int) -> bytes:
    return bytes([number]) * 20


def made(folder: Path, *entries: bytes, far: bool = False, names: Sequence[bytes] = ()) -> PackFile:
    """A pack of these, named by their numbers from 1 on; `far`, with an index as packs of gigabytes have."""
    pack, places = b"PACK" + struct.pack(">LL", 2, len(entries)), []
    for number, each in enumerate(entries, 1):
        places.append((names[number - 1] if names else name_of(number), len(pack) + (far << 32), 0))
        pack += each
    pack += hashlib.sha1(pack).digest()
    written = io.BytesIO()
    write_pack_index_v2(written, places, pack[-20:])
    index = bytearray(written.getvalue())
    for number in range(len(entries) if far else 0):
        # The upper half of each far offset, which stand in front of the two sums at the end.
        start = len(index) - 40 - 8 * (number + 1)
        index[start : start + 4] = bytes(4)
    (folder / "p.pack").write_bytes(pack)
    (folder / "p.idx").write_bytes(index)
    return PackFile(os.fspath(folder / "p.idx"))


def test_places_beyond_two_gigabytes_are_looked_up_where_git_writes_them(tmp_path: Path) -> None:
    with closing(made(tmp_path, entry(3, b"one"), entry(3, b"two"), far=True)) as pack:
        assert (tmp_path / "p.idx").stat().st_size == 8 + 1024 + 2 * 28 + 2 * 8 + 40
        assert [pack.read(name_of(number)) for number in (1, 2)] == [(b"blob", b"one"), (b"blob", b"two")]


def test_bytes_across_two_names_are_no_name(tmp_path: Path) -> None:
    one, two = b"\1" + bytes(9) + b"\1" + bytes(9), b"\1" * 20
    with closing(made(tmp_path, entry(3, b"one"), entry(3, b"two"), names=(one, two))) as pack:
        assert pack.read(one[10:] + two[:10]) is None
        assert pack.read(two) == (b"blob", b"two")


def test_what_somebody_has_deflated_oddly_is_read_to_its_end(tmp_path: Path) -> None:
    squeezer = zlib.compressobj(0)
    data = b"".join(squeezer.compress(b"x") + squeezer.flush(zlib.Z_FULL_FLUSH) for _ in range(40)) + squeezer.flush()
    with closing(made(tmp_path, entry(3, b"x" * 40, data=data))) as pack:
        assert pack.read(name_of(1)) == (b"blob", b"x" * 40)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (entry(6, b"\1\1\1x", base=b"\0"), "a base that is nowhere"),
        (entry(6, b"\1\1\1x", base=b"\x7f"), "a base that is nowhere"),
        (entry(7, b"\1\1\1x", base=name_of(9)), "a base in another pack"),
        (entry(7, b"\1\1\1x", base=name_of(1)), "deltas without an end"),
        (entry(3, b"one", size=2), "another size than is said"),
        (entry(3, b"one", size=4), "another size than is said"),
        (entry(3, b"one", data=zlib.compress(b"one")[:-1]), ""),
        (entry(3, bytes(9000), data=zlib.compress(bytes(9000))[:-1]), ""),
        (b"\xb0" + b"\x80" * 100_000 + zlib.compress(b"one"), ""),
        (entry(6, b"\1\1\1x", base=b"\xff" * 1_000_000), "a base that is nowhere"),
        (entry(7, b"\x80" * 100_000, base=name_of(2)), ""),
    ],
)
def test_what_does_not_fit_together_is_left_to_others(tmp_path: Path, odd: bytes, said: str) -> None:
    with closing(made(tmp_path, odd, entry(3, b"two"))) as pack:
        with pytest.raises(Unreadable) as refusal:
            pack.read(name_of(1))
        assert said in str(refusal.value)
        assert pack.read(name_of(2)) == (b"blob", b"two")


@pytest.mark.parametrize(
    "odd",
    [b"\xbf" + b"\xff" * 1_000_000, entry(7, b"\1" + b"\xff" * 1_000_000, base=name_of(2))],
    ids=["body", "delta"],
)
def test_a_number_that_goes_on_and_on_is_larger_than_all_that_is_read(tmp_path: Path, odd: bytes) -> None:
    with closing(made(tmp_path, odd, entry(3, b"two"))) as pack, pytest.raises(TooLarge):
        pack.read(name_of(1))


@pytest.mark.parametrize("size", [3, 9000])
def test_what_is_deflated_without_an_end_is_no_body(tmp_path: Path, size: int) -> None:
    squeezer = zlib.compressobj()
    (tmp_path / "p").write_bytes(squeezer.compress(bytes(size)) + squeezer.flush(zlib.Z_SYNC_FLUSH))
    with closing(pack_file._mapped(os.fspath(tmp_path / "p"))) as mapped, pytest.raises(Unreadable):
        pack_file._inflated(mapped, 0, size)


def test_what_one_pack_says_is_too_large_is_read_from_another(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", bodies=iter([b"one" * 1000]))
    oid = bytes.fromhex(git(folder, "hash-object", "body-0").strip())
    packs_folder = Path(index_of(folder)).parent
    made(packs_folder, b"\xbf" + b"\xff" * 20, names=(oid,)).close()
    with closing(Packs(folder)) as packs:
        for _ in range(2):
            assert packs.read(oid) == (b"blob", b"one" * 1000)
            packs._order.reverse()
    for name in packs_folder.glob("pack-*"):
        name.unlink()
    with closing(Packs(folder)) as packs, pytest.raises(TooLarge):
        packs.read(oid)


def test_large_bodies_are_remembered_one_at_a_time(tmp_path: Path) -> None:
    bodies = [bytes([number]) * (1 << 20 | 1) for number in range(3)]
    with closing(made(tmp_path, *(entry(3, body) for body in bodies))) as pack:
        assert [pack.read(name_of(number)) for number in (1, 2, 3)] == [(b"blob", body) for body in bodies]
        assert len(pack._bodies) == 1


def test_an_empty_file_and_an_index_of_another_pack_are_none_of_ours(tmp_path: Path) -> None:
    made(tmp_path, entry(3, b"one")).close()
    index = (tmp_path / "p.idx").read_bytes()
    for wrong in (b"", b"PACK" + index[4:], index[:-40] + bytes(20) + index[-20:], index[:8] + b"\xff" + index[9:]):
        (tmp_path / "p.idx").write_bytes(wrong)
        with pytest.raises(Unreadable):
            PackFile(os.fspath(tmp_path / "p.idx"))


def test_a_pack_that_git_removes_while_it_is_open_is_one_that_cannot_be_read(tmp_path: Path) -> None:
    with closing(made(tmp_path, entry(3, b"one"))) as pack:
        (tmp_path / "p.pack").unlink()
        with pytest.raises(Unreadable, match="No such file"):
            pack.read(name_of(1))


def test_what_cannot_be_read_of_an_open_pack_is_looked_for_elsewhere_until_it_can(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", bodies=iter([b"one" * 1000]))
    oid = bytes.fromhex(git(folder, "hash-object", "body-0").strip())
    pack = Path(index_of(folder)).with_suffix(".pack")
    with closing(Packs(folder)) as packs:
        assert packs.read(oid) == (b"blob", b"one" * 1000)
        whole = pack.read_bytes()
        pack.chmod(0o644)
        with pack.open("r+b") as file:
            file.seek(14)
            file.write(bytes(10))
        for each in packs._order:
            each.release()
        assert packs.find(oid) is None
        pack.write_bytes(whole)
        assert packs.find(oid) == (b"blob", b"one" * 1000)


def test_a_pack_that_is_left_to_dulwich_and_replaced_is_forgotten(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", config="pack.indexVersion=1", bodies=iter([b"one" * 1000]))
    oid = bytes.fromhex(git(folder, "hash-object", "body-0").strip())
    with closing(Packs(folder)) as packs:
        assert packs.read(oid) == (b"blob", b"one" * 1000)
        old = Path(index_of(folder))
        assert packs._files == {old.name: None}
        for each in (old, old.with_suffix(".pack")):
            each.rename(each.with_name(each.name.replace("pack-", "pack-f")))
        assert packs.read(oid) == (b"blob", b"one" * 1000)
        assert list(packs._files) == [old.name.replace("pack-", "pack-f")]


def test_a_pack_that_nobody_can_read_is_told_as_damage(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", config="pack.indexVersion=1", bodies=iter([b"one" * 1000]))
    oid = bytes.fromhex(git(folder, "hash-object", "body-0").strip())
    pack = Path(index_of(folder)).with_suffix(".pack")
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:14] + bytes(30))
    with closing(Packs(folder)) as packs:
        with pytest.raises(IntegrityError, match="cannot be read"):
            packs.read(oid)
        assert not packs.has(oid)


def test_an_index_that_nobody_can_read_is_told_as_damage(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", bodies=iter([b"one"]))
    index = Path(index_of(folder))
    index.chmod(0o644)
    index.write_bytes(index.read_bytes()[:40])
    with closing(Packs(folder)) as packs, pytest.raises(IntegrityError, match="cannot be listed"):
        packs.beginning("00")


def test_an_index_that_is_gone_at_each_look_begins_nothing(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", bodies=iter([b"one"]))
    index = Path(index_of(folder))
    index.unlink()
    index.symlink_to("nowhere")
    with closing(Packs(folder)) as packs:
        assert packs.beginning("00") == set()


def test_a_repository_that_went_is_no_missing_object(tmp_path: Path) -> None:
    folder = packed(tmp_path / "r.git", bodies=iter([b"one"]))
    (folder / "refs").rename(folder / "gone")
    for ask in (lambda packs: packs.read(name_of(1)), lambda packs: packs.beginning("00")):
        with closing(Packs(folder)) as packs, pytest.raises(IntegrityError, match="is no git repository any more"):
            ask(packs)
    folder.rename(tmp_path / "elsewhere")
    for ask in (lambda packs: packs.read(name_of(1)), lambda packs: packs.beginning("00")):
        with closing(Packs(folder)) as packs, pytest.raises(HermesError, match=r"r\.git"):
            ask(packs)
