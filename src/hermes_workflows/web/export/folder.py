"""A folder that an export owns: it lists what it has written, and touches nothing else.

A file enters the list before it is written, so an export that was interrupted owns what it left behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...errors import Conflict, InvalidInput
from .names import FILE

LIST: Final = ".hermes-workflows-export"
_HEAD: Final = "Written by `hermes-workflows dashboard export`, which replaces these files:"


class Folder:
    """Write each file once, then `finish`."""

    def __init__(self, root: Path, listed: set[str]) -> None:
        self.root = root
        self._before = listed
        self._listed = set(listed)
        self._written: set[str] = set()

    @classmethod
    def take(cls, root: Path) -> Folder:
        """The folder, made when it is not there. Raises Conflict for one that has something else in it."""
        if root.exists() and not root.is_dir():
            raise InvalidInput(f"{root} is no folder", hint="name a folder, which need not be there yet")
        root.mkdir(parents=True, exist_ok=True)
        listed = _listed(root)
        if listed is None and next(root.iterdir(), None) is not None:
            raise Conflict(f"{root} is not empty, and not of an export", hint="name another folder, or empty this one")
        if listed is None:
            (root / LIST).write_text(f"{_HEAD}\n", encoding="utf-8")
        return cls(root, listed or set())

    def write(self, name: str, data: bytes) -> None:
        target = self._own(name)
        if name not in self._listed:
            self._listed.add(name)
            with (self.root / LIST).open("a", encoding="utf-8") as known:
                known.write(f"{name}\n")
        self._written.add(name)
        if not target.is_file() or target.read_bytes() != data:
            target.write_bytes(data)

    def finish(self) -> int:
        """Take away what an earlier export had and this one has not; returns how many files there are."""
        for name in sorted(self._before - self._written):
            target = self._own(name)
            target.unlink(missing_ok=True)
            for folder in target.relative_to(self.root).parents:
                if folder.parts and not _is_removed(self.root / folder):
                    break
        lines = "".join(f"{name}\n" for name in sorted(self._written))
        (self.root / LIST).write_text(f"{_HEAD}\n{lines}", encoding="utf-8")
        return len(self._written)

    def _own(self, name: str) -> Path:
        """Where `name` lies; its folder is there afterwards. Raises Conflict for what somebody else has put there."""
        target = self.root
        for part in name.split("/")[:-1]:
            target = target / part
            if target.is_symlink() or (target.exists() and not target.is_dir()):
                raise _foreign(target)
            target.mkdir(exist_ok=True)
        target = self.root / name
        if target.is_symlink() or target.is_dir() or (target.exists() and name not in self._listed):
            raise _foreign(target)
        return target


def _foreign(path: Path) -> Conflict:
    return Conflict(f"{path} is not of an export", hint="move it away, or name another folder")


def _listed(root: Path) -> set[str] | None:
    """What the list says; None when there is none of ours."""
    known = root / LIST
    if known.is_symlink() or not known.is_file():
        return None
    head, *names = known.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    # Whoever may write the list cannot make us touch what lies elsewhere, nor the list itself.
    return {name for name in names if FILE.fullmatch(name)} if head == _HEAD else None


def _is_removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
