"""Commit objects: their bytes. What the messages of a run's commits say is in `core.messages`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from ..core.messages import cut, one_line, person_name, trailers
from ..core.receipts import Author
from ..errors import IntegrityError

# What git writes without signatures and encodings. Everything else is taken apart line by line.
_USUAL = re.compile(
    r"tree ([0-9a-f]{40})\n(?:parent ([0-9a-f]{40})\n)?(?:parent ([0-9a-f]{40})\n)?"
    r"author ([^\n]*)\ncommitter ([^\n]* (-?[0-9]{1,18}) [-+][0-9]{4})"
)
_PARENT = re.compile(rb"parent ([0-9a-f]{40})\n")

# RFC 2606 keeps .invalid free, so no forge will show a stranger's face beside a receipt.
_EMAIL = "noreply@hermes-workflows.invalid"


class Commit(NamedTuple):
    """A commit as git keeps it; ids are 20 bytes, `time` is in seconds since 1970."""

    tree: bytes
    parents: tuple[bytes, ...]
    message: str
    author: Author
    committer: Author
    time: int

    def serialise(self) -> bytes:
        return with_tree(self.tree, words(self.parents, self.message, self.author, self.committer, self.time))

    def trailers(self) -> list[dict[str, str]]:
        """One mapping a receipt, in order, as `{"Run": …, "Key": …}`."""
        return trailers(self.message)


def words(parents: Iterable[bytes], message: str, author: Author, committer: Author, time: int) -> bytes:
    """A commit but for its first line, which names the tree."""
    lines = [f"parent {parent.hex()}" for parent in parents]
    lines += [f"author {_identity(author)} {time} +0000", f"committer {_identity(committer)} {time} +0000"]
    return "\n".join([*lines, "", message]).encode("utf-8", "surrogateescape")


def with_tree(tree: bytes, words: bytes) -> bytes:
    """The whole commit."""
    return b"tree %s\n%s" % (tree.hex().encode(), words)


def parent_in(words: bytes) -> str:
    """The first parent that a commit names, 40 hex digits, or ""."""
    found = _PARENT.match(words)
    return found[1].decode() if found else ""


def parse(data: bytes, oid: bytes) -> Commit:
    """Raises IntegrityError for bytes that are no commit."""
    head, _, message = data.decode("utf-8", "surrogateescape").partition("\n\n")
    if usual := _USUAL.fullmatch(head):
        tree, first, second, author, committer, time = usual.groups()
        parents = tuple(map(bytes.fromhex, (first, second) if second else (first,) if first else ()))
        return Commit(bytes.fromhex(tree), parents, message, _person(author), _person(committer), int(time))
    fields: dict[str, list[str]] = {}
    for line in head.split("\n"):
        name, _, value = line.partition(" ")
        fields.setdefault(name, []).append(value)
    try:
        return Commit(
            tree=_oid(fields["tree"][0]),
            parents=tuple(map(_oid, fields.get("parent", ()))),
            message=message,
            author=_person(fields["author"][0]),
            committer=_person(fields["committer"][0]),
            time=int(fields["committer"][0].split()[-2]),
        )
    except (KeyError, ValueError, IndexError):
        raise IntegrityError(f"commit {oid.hex()} is damaged") from None


def seal_message(run_id: str, tip: bytes, status: str) -> str:
    trailers = f"Hermes-Run: {run_id}\nHermes-Tip: {tip.hex()}\nHermes-Status: {status}\n"
    return f"{cut(f'seal {run_id}: {status}')}\n\n{trailers}"


def commit_time(now: datetime) -> int:
    return int(now.timestamp())


def first_author(authors: Iterable[Author], default: Author) -> Author:
    """A commit has one author; receipts of several people or calls name the one of the first."""
    return next(iter(authors), default)


@lru_cache(maxsize=256)
def _identity(who: Author) -> str:
    email = "".join(one_line(who.email.translate({ord("<"): None, ord(">"): None})).split())
    return f"{person_name(who.name)} <{email or _EMAIL}>"


def _oid(text: str) -> bytes:
    # `fromhex` passes over spaces: what is as long as an id may still be less.
    oid = bytes.fromhex(text)
    if len(oid) != 20 or len(text) != 40:
        raise ValueError("no id")
    return oid


@lru_cache(maxsize=256)
def _person(line: str) -> Author:
    name, _, rest = line.partition(" <")
    return Author(name, rest.partition(">")[0])
