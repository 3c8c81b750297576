"""Trees are made exactly as git makes them, and compared as git compares them."""

from __future__ import annotations

import hashlib

import pytest
from dulwich.objects import ObjectID, Tree
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.errors import IntegrityError, InvalidInput
from hermes_workflows.store.trees import FILE, FOLDER, Change, Folder, Item, Trees


class Memory:
    """Objects by id, and trees over them."""

    def __init__(self) -> None:
        self.objects: dict[bytes, bytes] = {}
        self.reads: list[bytes] = []
        self.trees = Trees(self.read)

    def read(self, oid: bytes) -> bytes:
        self.reads.append(oid)
        return self.objects[oid]

    def write(self, kind: bytes, body: bytes) -> bytes:
        oid = hashlib.sha1(b"%s %d\0%s" % (kind, len(body), body)).digest()
        self.objects[oid] = body
        return oid

    def put(self, root: Folder, files: dict[str, str]) -> Folder:
        items = {path: Item(FILE, self.write(b"blob", text.encode())) for path, text in files.items()}
        return self.trees.put(root, items, self.write)


EMPTY = Folder([], [])

# Names that git sorts in its own way: a folder as if its name ended in a slash.
names = st.sampled_from(["a", "a.json", "a-b", "a0", "b", "A", "runs", "a.", "ab"])
paths = st.lists(names, min_size=1, max_size=3).map(
    lambda parts: "/".join([*(f"d{part}" for part in parts[:-1]), parts[-1]])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(paths, st.text(max_size=3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_ids_are_those_that_dulwich_computes(steps: list[dict[str, str]]) -> None:
    memory, root, files = Memory(), EMPTY, dict[str, str]()
    for step in steps:
        root = memory.put(root, step)
        files.update(step)
    assert root.oid.hex() == oracle(memory, files)
    assert dict(memory.trees.walk(root)) == {p: Item(FILE, memory.write(b"blob", t.encode())) for p, t in files.items()}


def oracle(memory: Memory, files: dict[str, str]) -> str:
    tree, inner = Tree(), dict[str, dict[str, str]]()
    for path, text in files.items():
        name, _, rest = path.partition("/")
        if rest:
            inner.setdefault(name, {})[rest] = text
        else:
            tree.add(name.encode(), FILE, ObjectID(memory.write(b"blob", text.encode()).hex().encode()))
    for name, below in inner.items():
        tree.add(name.encode(), FOLDER, ObjectID(oracle(memory, below).encode()))
    return tree.id.decode()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(paths, st.text(max_size=2), max_size=8), st.dictionaries(paths, st.text(max_size=2), max_size=8))
def test_a_comparison_finds_what_differs_and_only_that(old: dict[str, str], new: dict[str, str]) -> None:
    memory = Memory()
    changes = {change.path: change for change in memory.trees.compare(memory.put(EMPTY, old), memory.put(EMPTY, new))}
    assert changes.keys() == {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    for path, change in changes.items():
        assert (change.old is None, change.new is None) == (path not in old, path not in new)


def test_a_file_that_became_a_folder_is_a_removal_and_additions() -> None:
    memory = Memory()
    old, new = memory.put(EMPTY, {"x": "1", "same/a": "1"}), memory.put(EMPTY, {"x/y": "2", "same/a": "1"})
    one, two = (Item(FILE, memory.write(b"blob", text)) for text in (b"1", b"2"))
    memory.reads.clear()
    assert list(memory.trees.compare(old, new)) == [Change("x", one, None), Change("x/y", None, two)]
    assert len(memory.reads) == 1


def test_a_folder_that_became_a_file_is_removals_and_an_addition() -> None:
    memory = Memory()
    old, new = (memory.put(EMPTY, files) for files in ({"place/a": "1", "place/b": "2"}, {"place": "3"}))
    changes = [(each.path, bool(each.old), bool(each.new)) for each in memory.trees.compare(old, new)]
    assert changes == [("place/a", True, False), ("place/b", True, False), ("place", False, True)]


def test_a_receipt_in_a_large_run_opens_and_writes_its_own_path_only() -> None:
    memory = Memory()
    root = memory.put(EMPTY, {f"d{n // 50}/f{n}": str(n) for n in range(1000)})
    fresh = memory.trees.open(root.oid)
    memory.reads.clear()
    before = len(memory.objects)
    memory.put(fresh, {"d3/new": "x"})
    assert len(memory.reads) == 1
    assert len(memory.objects) - before == 3


def test_a_folder_never_changes_and_remembers_only_a_few() -> None:
    memory = Memory()
    first = memory.put(EMPTY, {"a/b": "1"})
    bytes_before = first.serialise()
    root = first
    for number in range(100):
        root = memory.put(root, {f"folder-{number}/x": "1"})
    assert first.serialise() == bytes_before
    assert len(root.opened) <= 16


def test_a_grafted_folder_is_opened_anew() -> None:
    memory = Memory()
    root = memory.put(EMPTY, {"runs/a": "1"})
    other = memory.put(EMPTY, {"b": "2"})
    grafted = memory.trees.put(root, {"runs": Item(FOLDER, other.oid)}, memory.write)
    assert [path for path, _ in memory.trees.walk(grafted)] == ["runs/b"]
    assert memory.trees.find(grafted, "runs/a") is None


def test_nothing_lies_below_a_file() -> None:
    memory = Memory()
    with pytest.raises(InvalidInput, match="a is a file"):
        memory.put(memory.put(EMPTY, {"a": "1"}), {"a/b": "2"})


@pytest.mark.parametrize("data", [b"100644 name", b"x name\0" + b"1" * 20, b"100644\0"])
def test_bytes_that_are_no_tree_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="tree 00 is damaged"):
        Folder.parse(data, b"\0")


def test_the_ways_to_many_runs_are_read_once_each_and_not_kept_for_ever() -> None:
    memory = Memory()
    roots = [memory.put(EMPTY, {f"day-{number}/run.json": "a"}).oid for number in range(100)]
    assert [memory.trees.only_folder(oid)[0] for oid in roots] == [f"day-{number}" for number in range(100)]  # type: ignore[index]
    assert len(memory.reads) == 100
    assert len(memory.trees._only) < 100
    memory.trees.only_folder(roots[-1])
    assert len(memory.reads) == 100
