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

from hermes_workflows.errors import NewerSchema
from hermes_workflows.store.adding import Addition
from hermes_workflows.store.ahead_file import AheadFile, path_of

additions = st.builds(
    Addition,
    st.binary(max_size=90),
    st.dictionaries(st.text("abc/.", min_size=1, max_size=9), st.binary(max_size=90), max_size=3),
)
HEADER = b"hermes-ahead 2 wf_a\n"
damages = st.lists(
    st.tuples(
        st.sampled_from(["cut", "flip", "put", "drop"]), st.integers(0, 2000), st.binary(min_size=1, max_size=40)
    ),
    max_size=4,
)


def written(repository: Path, steps: list[Addition]) -> bytes:
    """A file's bytes."""
    (repository / "hermes/pending").mkdir(parents=True)
    (repository / "hermes/ahead").mkdir()
    file = AheadFile.make(str(repository), "wf_a")
    for each in steps:
        file.append(each)
    file.close()
    return Path(path_of(str(repository), "wf_a")).read_bytes()


def read(path: Path) -> tuple[str, list[Addition]]:
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
@given(st.lists(additions, max_size=5), damages)
def test_a_damaged_file_holds_the_first_of_what_was_written(
    steps: list[Addition], damage: list[tuple[str, int, bytes]]
) -> None:
    with TemporaryDirectory() as folder:
        data = written(Path(folder), steps)
        for kind, place, content in damage:
            data = damaged(data, kind, place, content)
        path = Path(folder, "damaged")
        path.write_bytes(data)
        try:
            name, found = read(path)
        except NewerSchema:
            assert not data.startswith(HEADER), "the version was damaged"
            return
    assert found == steps[: len(found)]
    assert damage or (name, found) == ("wf_a", steps)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_no_burst(data: bytes, headed: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "foreign")
        path.write_bytes(HEADER * headed + data)
        assert read(path)[1] == []


ONE, TWO, THREE = (Addition(word, {"a/b": word * 2}) for word in (b"one", b"two", b"three"))


@pytest.mark.parametrize(
    "payload",
    [b"", b"\0\0\0\1x\0\0\0\1y", b"\0\0\0\1x\0\0", b"\0\0\0\2x"],
    ids=["no part", "a path without content", "no length", "cut short"],
)
def test_a_record_that_is_whole_and_not_of_our_making_ends_the_file(tmp_path: Path, payload: bytes) -> None:
    data = written(tmp_path, [ONE])[: sizes(ONE)[0]]
    hashed = hashlib.sha1(data[len(HEADER) + 4 :][:20] + payload).digest()
    path = tmp_path / "odd"
    path.write_bytes(data + len(payload).to_bytes(4, "big") + hashed + payload)
    assert read(path) == ("wf_a", [ONE])


def sizes(*steps: Addition) -> list[int]:
    """Where each record of a file ends."""
    with TemporaryDirectory() as folder:
        written(Path(folder), [])
        os.unlink(path_of(folder, "wf_a"))
        file = AheadFile.make(folder, "wf_a")
        ends = []
        for each in steps:
            file.append(each)
            ends.append(file.size)
        file.close()
        return ends


def test_a_record_that_is_left_of_an_earlier_try_is_none(tmp_path: Path) -> None:
    """It is whole, and stands where the next one would: only what it goes on from tells it apart."""
    first, second, _ = sizes(ONE, TWO, THREE)
    earlier, data = (
        written(tmp_path / "a", [ONE, TWO, THREE]),
        written(tmp_path / "b", [ONE, Addition(b"owt", TWO.files)]),
    )
    path = tmp_path / "left"
    path.write_bytes(data[:second] + earlier[second:])
    assert first < second
    assert read(path) == ("wf_a", [ONE, Addition(b"owt", TWO.files)])


def test_what_is_taken_back_is_followed_by_what_comes_instead(tmp_path: Path) -> None:
    written(tmp_path, [])
    os.unlink(path_of(str(tmp_path), "wf_a"))
    file = AheadFile.make(str(tmp_path), "wf_a")
    file.append(ONE)
    mark = file.mark
    file.append(THREE)
    file.take_back(mark)
    assert file.records() == ("wf_a", [ONE])
    file.append(TWO)
    assert file.records() == ("wf_a", [ONE, TWO])
    file.close()


def test_a_file_of_another_version_is_refused_and_not_taken_for_empty(tmp_path: Path) -> None:
    path = tmp_path / "older"
    path.write_bytes(b"hermes-ahead 1 wf_a\n\0\0")
    with pytest.raises(NewerSchema, match="another version"):
        read(path)


def test_a_file_that_says_it_is_large_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(HEADER + b"\xff" * 24)
        file.truncate(1 << 40)
    tracemalloc.start()
    assert read(path) == ("wf_a", [])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
