"""The number of a file's names is known without asking for its times, and also where that cannot be asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_workflows.store import links

pytestmark = pytest.mark.skipif(links._statx is None, reason="this system has no statx")


def opened_twice_named(folder: Path) -> int:
    (folder / "a").write_bytes(b"")
    os.link(folder / "a", folder / "b")
    return os.open(folder / "a", os.O_RDONLY)


def refusing(*arguments: object) -> int:
    return -1


@pytest.mark.parametrize("asked", [links._statx, refusing, None], ids=["statx", "a sandbox", "another system"])
def test_names_are_counted_until_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Callable[..., int] | None
) -> None:
    monkeypatch.setattr(links, "_statx", asked)
    descriptor = opened_twice_named(tmp_path)
    found = [links.names_of(descriptor)]
    for name in "ab":
        (tmp_path / name).unlink()
        found.append(links.names_of(descriptor))
    os.close(descriptor)
    assert found == [2, 1, 0]


def test_no_times_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = opened_twice_named(tmp_path)

    def stat(descriptor: int) -> os.stat_result:
        raise AssertionError("this asks for the times as well")

    with monkeypatch.context() as system:
        system.setattr(os, "fstat", stat)
        assert links.names_of(descriptor) == 2
    os.close(descriptor)


def test_a_file_that_is_not_open_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        links.names_of(-1)
