"""What one commit adds to a run: files, and what the commit says. Its tree follows from them and from its parent's.

A receipt is some hundred bytes, and the trees that lead to it some thousand. So a burst's file keeps additions only
(`ahead_file`), and whoever puts them into git makes the trees, here as for every other commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import commits
from .trees import FILE, Folder, Item, Trees, Write


@dataclass(frozen=True)
class Addition:
    """`files` are contents by path in the commit's tree; `words` is the commit but for its tree."""

    words: bytes
    files: Mapping[str, bytes]

    @property
    def parent(self) -> str:
        """The id of the commit it goes on from, 40 hex digits; "" when there is none."""
        return commits.parent_in(self.words)

    @property
    def size(self) -> int:
        """Bytes of what it adds."""
        return len(self.words) + sum(map(len, self.files.values()))


Note = Callable[[Addition], None]


def add(trees: Trees, root: Folder, addition: Addition, write: Write) -> tuple[bytes, Folder]:
    """Write the commit that brings `addition` to the tree `root`: its id (20 bytes), and its tree.

    Raises InvalidInput when a path leads through a file, and what reading a tree raises.
    """
    items = {path: Item(FILE, write(b"blob", data)) for path, data in addition.files.items()}
    root = trees.put(root, items, write)
    return write(b"commit", commits.with_tree(root.oid, addition.words)), root
