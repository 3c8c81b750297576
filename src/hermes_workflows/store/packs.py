"""Packed objects: what a burst, `git gc` and `git repack` made of ours.

They are read by `pack_file`, and by dulwich what that does not know: packs of another format, damaged ones, those of
a repository that ours borrows from.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dulwich.errors import NotGitRepository
from dulwich.objects import ObjectID
from dulwich.pack import PackFileDisappeared

from ..errors import HermesError, IntegrityError
from . import peek
from .largest import TooLarge
from .pack_file import PackFile, Unreadable

if TYPE_CHECKING:
    from dulwich.repo import Repo

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
# What dulwich says of an object that is not there, and of a pack that git has just replaced.
_GONE = (KeyError, FileNotFoundError, PackFileDisappeared)

# Packs that are mapped at a time: what is read together lies in few.
_MAPPED = 8


class Packs:
    """The packs of one repository. Thread-safe: its readers, which are not, are asked by one thread at a time."""

    def __init__(self, repository: Path) -> None:
        self._repository = os.fspath(repository)
        self._folder = f"{self._repository}/objects/pack"
        self._guard = threading.Lock()
        self._files: dict[str, PackFile | None] = {}
        self._order: list[PackFile] = []
        self._open: list[Repo] = []
        self._process = os.getpid()
        # Packs that are still open when the interpreter goes down make dulwich complain on stderr.
        weakref.finalize(self, _close, self._open)

    def find(self, oid: bytes) -> tuple[bytes, bytes] | None:
        """The kind and body of object `oid` (20 bytes), if a pack that is open here has it and can be read."""
        refused: TooLarge | None = None
        with self._guard:
            for pack in self._order:
                try:
                    found = pack.read(oid)
                except Unreadable:
                    continue
                except TooLarge as error:
                    refused = error  # one of another pack may be whole
                    continue
                if found:
                    if pack is not self._order[0]:
                        self._prefer(pack)
                    return found
        if refused:
            raise refused
        return None

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """The same from any pack there is. Raises IntegrityError when none has it."""
        if found := self.find(oid):
            return found
        with self._guard:
            self._look_again()
        if found := self.find(oid):
            return found
        with self._guard:
            return self._by_dulwich(oid)

    def _prefer(self, pack: PackFile) -> None:
        """What is read together was mostly packed together."""
        self._order.remove(pack)
        self._order.insert(0, pack)
        mapped = [each for each in self._order if each.is_mapped]
        for each in mapped[_MAPPED:]:
            each.release()

    def _look_again(self) -> None:
        """Open packs that came since, close those that are gone."""
        try:
            names = {name for name in os.listdir(self._folder) if name.endswith(".idx")}
        except (FileNotFoundError, NotADirectoryError):
            names = set()
        for name in self._files.keys() - names:
            if gone := self._files.pop(name):
                gone.close()
        for name in names - self._files.keys():
            # None for one that is left to dulwich, or that git has just removed.
            self._files[name] = None
            with contextlib.suppress(Unreadable, OSError):
                self._files[name] = PackFile(f"{self._folder}/{name}")
        self._order = [pack for pack in self._files.values() if pack]

    def _by_dulwich(self, oid: bytes) -> tuple[bytes, bytes]:
        name = ObjectID(oid.hex().encode())
        # git may have replaced a pack since it was last looked at: then everything is opened anew.
        for _ in range(3):
            try:
                with self._read_by_dulwich(f"object {oid.hex()} cannot be read"):
                    kind, body = self._repo().object_store.get_raw(name)
                return _KINDS[kind], body
            except _GONE:
                _close(self._open)
        raise IntegrityError(
            f"object {oid.hex()} is missing", hint="restore it from a mirror of this repository with `git fetch`"
        )

    def has(self, oid: bytes) -> bool:
        """Whether a pack has the object in a form that can be read; loose ones do not count."""
        name = ObjectID(oid.hex().encode())
        with self._guard:
            _close(self._open)
            for pack in self._repo().object_store.packs:
                # A damaged pack is no copy, and nothing that a reader should die of.
                with contextlib.suppress(Exception):
                    return bool(pack.get_raw(name))
        return False

    def beginning(self, prefix: str) -> set[str]:
        """The names of packed objects that begin with `prefix`, at this moment."""
        with self._guard:
            # Packs that were made since are seen by a store that is opened now.
            _close(self._open)
            for _ in range(3):
                try:
                    with self._read_by_dulwich(f"the packs of {self._repository} cannot be listed"):
                        return {name.decode() for name in self._repo().object_store.iter_prefix(prefix.encode())}
                except _GONE:
                    _close(self._open)
        return set()

    def close(self) -> None:
        """Close open packs; reading opens them again."""
        with self._guard:
            _close(self._open)
            for pack in self._order:
                pack.close()
            self._files, self._order = {}, []

    @contextlib.contextmanager
    def _read_by_dulwich(self, failed: str) -> Iterator[None]:
        """dulwich, zlib and struct have many words for a damaged pack: they become one. Raises IntegrityError, OSError,
        and KeyError and PackFileDisappeared for what is not there now.
        """
        try:
            yield
        except (HermesError, OSError, *_GONE):
            raise
        except Exception as error:
            _close(self._open)
            hint = "`hermes-workflows doctor` says what is damaged, and how to repair it"
            raise IntegrityError(f"{failed}: {type(error).__name__}: {error}", hint=hint) from None

    def _repo(self) -> Repo:
        # Nobody needs it for what we and git write, and a small command would spend a tenth of its time on it.
        from dulwich.repo import Repo  # noqa: PLC0415

        if self._process != os.getpid():
            # A fork has the same open files, and with them one place in each for both processes.
            _close(self._open)
            self._process = os.getpid()
        if not self._open:
            try:
                self._open.append(Repo(self._repository))
            except NotGitRepository:
                if not os.path.isdir(self._repository):
                    raise peek.gone(self._repository) from None
                raise IntegrityError(f"{self._repository} is no git repository any more") from None
        return self._open[0]


def _close(repos: list[Repo]) -> None:
    while repos:
        # What was being read when it turned out to be damaged holds its map a little longer.
        with contextlib.suppress(BufferError):
            repos.pop().close()
