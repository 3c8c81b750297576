"""The write-ahead file of a burst is read from any bytes: what is found is what was written first, and nothing else."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.store.ahead_file import AheadFile, Record, path_of

ids = st.binary(min_size=20, max_size=20)
bodies = st.lists(st.tuples(st.sampled_from([b"blob", b"tree", b"commit"]), st.binary(max_size=90)), max_size=4)
damages = st.lists(
    st.tuples(
        st.sampled_from(["cut", "flip", "put", "drop"]), st.integers(0, 2000), st.binary(min_size=1, max_size=40)
    ),
    max_size=4,
)


def written(repository: Path, steps: list[tuple[bytes, list[tuple[bytes, bytes]]]]) -> tuple[bytes, list[Record]]:
    """A file's bytes, and what was recorded in it."""
    (repository / "hermes/pending").mkdir(parents=True)
    (repository / "hermes/ahead").mkdir()
    file = AheadFile.make(str(repository), "wf_a")
    old = bytes(20)
    records: list[Record] = []
    for new, objects in steps:
        record = Record(old, new, tuple(objects))
        file.append(old, new, {hashlib.sha1(bytes([n])).digest(): each for n, each in enumerate(objects)})
        old, records = new, [*records, record]
    file.close()
    return Path(path_of(str(repository), "wf_a")).read_bytes(), records


def read(path: Path) -> tuple[str, list[Record]]:
    file = AheadFile(os.open(path, os.O_RDONLY), str(path))
    try:
        return file.records()
    finally:
        file.close()


def damaged(data: bytes, kind: str, place: int, content: bytes) -> bytes:
    place %= len(data) + 1
    if kind == "cut":
        return data[:place]
    if kind == "flip" and place < len(data):
        return data[:place] + bytes([data[place] ^ (content[0] or 1)]) + data[place + 1 :]
    return data[:place] + (content if kind == "put" else b"") + data[place + len(content) * (kind == "drop") :]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(ids, bodies), max_size=5), damages)
def test_a_damaged_file_holds_the_first_of_what_was_written(
    steps: list[tuple[bytes, list[tuple[bytes, bytes]]]], damage: list[tuple[str, int, bytes]]
) -> None:
    with TemporaryDirectory() as folder:
        data, records = written(Path(folder), steps)
        for kind, place, content in damage:
            data = damaged(data, kind, place, content)
        path = Path(folder, "damaged")
        path.write_bytes(data)
        name, found = read(path)
    assert found == records[: len(found)]
    assert damage or (name, found) == ("wf_a", records)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_no_burst(data: bytes, headed: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "foreign")
        path.write_bytes(b"hermes-ahead 1 wf_a\n" * headed + data)
        assert read(path)[1] == []


@pytest.mark.parametrize(
    "odd", [b"g\0\0\0\1x", b"b\0\0", b"b\0\0\0\2x"], ids=["another kind", "no length", "cut short"]
)
def test_a_record_that_is_whole_and_not_of_our_making_ends_the_file(tmp_path: Path, odd: bytes) -> None:
    data, records = written(tmp_path, [(b"1" * 20, [(b"blob", b"one")])])
    payload = b"1" * 20 + b"2" * 20 + b"b\0\0\0\3two" + odd
    data += len(payload).to_bytes(4, "big") + hashlib.sha1(payload).digest() + payload
    path = tmp_path / "odd"
    path.write_bytes(data)
    assert read(path) == ("wf_a", records)


def test_a_file_that_says_it_is_large_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"hermes-ahead 1 wf_a\n" + b"\xff" * 24)
        file.truncate(1 << 40)
    tracemalloc.start()
    assert read(path) == ("wf_a", [])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
