"""Packed objects, read by dulwich: what `git gc` and `git repack` made of ours."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
import zlib
from pathlib import Path

from dulwich.errors import ApplyDeltaError, ChecksumMismatch, NotGitRepository
from dulwich.objects import ObjectID
from dulwich.repo import Repo

from ..errors import IntegrityError
from . import peek

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


class Packs:
    """The packs of one repository. Thread-safe: dulwich, which is not, is asked by one thread at a time."""

    def __init__(self, repository: Path) -> None:
        self._repository = os.fspath(repository)
        self._guard = threading.Lock()
        self._open: list[Repo] = []
        # Packs that are still open when the interpreter goes down make dulwich complain on stderr.
        weakref.finalize(self, _close, self._open)

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        """The kind and body of object `oid` (20 bytes). Raises IntegrityError when no pack has it."""
        name = ObjectID(oid.hex().encode())
        with self._guard:
            # git may have replaced a pack since it was last looked at: then everything is opened anew.
            for _ in range(3):
                try:
                    kind, body = self._repo().object_store.get_raw(name)
                except (KeyError, FileNotFoundError):
                    _close(self._open)
                    continue
                return _KINDS[kind], body
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
                with contextlib.suppress(KeyError, OSError, zlib.error, ApplyDeltaError, ChecksumMismatch):
                    return bool(pack.get_raw(name))
        return False

    def beginning(self, prefix: str) -> set[str]:
        """The names of packed objects that begin with `prefix`, at this moment."""
        with self._guard:
            # Packs that were made since are seen by a store that is opened now.
            _close(self._open)
            for _ in range(3):
                try:
                    return {name.decode() for name in self._repo().object_store.iter_prefix(prefix.encode())}
                except FileNotFoundError:
                    _close(self._open)
        return set()

    def close(self) -> None:
        """Close open packs; reading opens them again."""
        with self._guard:
            _close(self._open)

    def _repo(self) -> Repo:
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
        repos.pop().close()
