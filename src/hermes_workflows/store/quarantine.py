"""A pack from elsewhere, looked at before anything of ours can see it.

It is unpacked beside our objects, in a repository of its own that reads ours as well. Every object must be well made
and everything it names must be there; only then does the pack move in, under its final name and durable.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import BinaryIO

from dulwich.errors import ChecksumMismatch, ObjectFormatException
from dulwich.objects import Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.repo import Repo

from ..core.redaction import Redactor
from ..errors import IntegrityError, StoreFailure
from . import git_binary
from .durability import Disk
from .git_binary import DISK_IS_FULL
from .verify import HashedObjects

_FOLDER = "hermes/arriving"
_LONGEST = 86_400.0

# What git calls a pack that no repack may touch, and how we know ours.
_KEEP, _MARK = ".keep", "arriving in hermes-workflows\n"

# A commit of another repository, which is never here.
_SUBMODULE = 0o160000


class Quarantine:
    """One arrival. Use it as a context: whatever is not admitted is gone afterwards."""

    def __init__(self, repository: Path, disk: Disk, git: str | None = None) -> None:
        """`git` is the git program, which checks faster; without it dulwich does."""
        self._repository = repository
        self._disk = disk
        self._git = git
        self._kept: list[Path] = []
        self.path = repository / _FOLDER / secrets.token_hex(8)

    def __enter__(self) -> Quarantine:
        for folder in ("objects/info", "objects/pack", "refs"):
            (self.path / folder).mkdir(parents=True)
        self._sweep()
        (self.path / "HEAD").write_text("ref: refs/heads/main\n")
        (self.path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        (self.path / "objects/info/alternates").write_text(f"{self._repository.absolute() / 'objects'}\n")
        self.objects = HashedObjects(self.path, self._disk)
        return self

    def __exit__(self, *_: object) -> None:
        self.objects.close()
        for kept in self._kept:
            kept.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def take(self, pack: BinaryIO) -> None:
        """Read a pack and check all of it. Raises IntegrityError."""
        if self._git:
            self._index(self._git, pack)
        else:
            self._check(pack)

    def admit(self) -> None:
        """Let in what was taken: it is ours to read now. Refs to it are made before this context ends.

        Until then no ref leads to the pack, and a repack would drop it.
        """
        target = self._repository / "objects/pack"
        packs = self.path / "objects/pack"
        for found in packs.glob("*.pack"):
            self._kept.append(target / found.with_suffix(_KEEP).name)
            self._kept[-1].write_text(_MARK)
        # The index last: a pack without one is not seen.
        for found in sorted(packs.iterdir(), key=lambda path: path.suffix == ".idx"):
            with open(found, "rb") as file:
                self._disk.sync_file(file.fileno())
            os.rename(found, target / found.name)
        self._disk.sync_folder(target)

    def _sweep(self) -> None:
        """Remove what was left by a process that was killed; a day is longer than any arrival takes."""
        now = self.path.stat().st_mtime
        keeping = (self._repository / "objects/pack").glob(f"*{_KEEP}")
        for left in (*self.path.parent.iterdir(), *keeping):
            with contextlib.suppress(FileNotFoundError):
                if now - left.stat().st_mtime <= _LONGEST:
                    continue
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                elif left.read_text(errors="replace") == _MARK:
                    left.unlink()

    def _index(self, git: str, pack: BinaryIO) -> None:
        # git reads from where the file stands, not from where our buffer does.
        os.lseek(pack.fileno(), pack.tell(), os.SEEK_SET)
        done = subprocess.run(
            [git, "index-pack", "--stdin", "--fix-thin", "--strict", "--threads=1"],
            cwd=self.path,
            env={**git_binary.ENVIRONMENT, "GIT_DIR": str(self.path)},
            stdin=pack,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = Redactor().text(" ".join(done.stderr.split()))
            if DISK_IS_FULL.search(said):
                raise self._full()
            raise _refused(said.removeprefix("fatal: ").removeprefix("error: "))

    def _check(self, pack: BinaryIO) -> None:
        repo = Repo(str(self.path))
        try:
            taken = repo.object_store.add_thin_pack(pack.read, None)
            names = {ObjectID(oid) for oid in taken}
            for name in names:
                found = repo.object_store[name]
                found.check()
                for needed in _links(found):
                    if needed not in names and needed not in repo.object_store:
                        raise _refused(f"{name.decode()} names {needed.decode()}, which is missing")
        except IntegrityError:
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full() from error
            raise _refused(f"{type(error).__name__}: {error}") from error
        except (AssertionError, ChecksumMismatch, EOFError, KeyError, ObjectFormatException, ValueError) as error:
            raise _refused(str(error) or type(error).__name__) from error
        except Exception as error:
            # dulwich and zlib have many words for a pack that is none.
            raise _refused(f"{type(error).__name__}: {error}") from error
        finally:
            repo.close()

    def _full(self) -> StoreFailure:
        # What arrived may well be sound: nobody should ask for it to be sent again.
        return StoreFailure(
            f"cannot write to {self._repository}: {os.strerror(errno.ENOSPC)}",
            hint="nothing was taken; free some space and run the same command again",
        )


def _links(found: ShaFile) -> list[ObjectID]:
    if isinstance(found, Commit):
        return [found.tree, *found.parents]
    if isinstance(found, Tree):
        return [sha for _, mode, sha in found.iteritems() if mode != _SUBMODULE]
    if isinstance(found, Tag):
        return [found.object[1]]
    return []


def _refused(why: str) -> IntegrityError:
    return IntegrityError(
        f"what arrived is no sound pack of objects: {why}",
        hint="nothing was taken from it; have it sent, or exported, again",
    )
