"""Commit objects: their bytes, and what their messages say (FORMAT §6).

Subjects and trailers are an index for people and for `git log`, never the truth. Everything in them that comes from
users or agents goes through `one_line`, so nobody's text can start a line and pose as a trailer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ..core import layout
from ..core.receipts import Author, Receipt
from ..errors import IntegrityError

SUBJECT_LENGTH = 72

# RFC 2606 keeps .invalid free, so no forge will show a stranger's face beside a receipt.
_EMAIL = "noreply@hermes-workflows.invalid"
_TRAILER = re.compile(r"^Hermes-(\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Commit:
    """A commit as git keeps it; ids are 20 bytes, `time` is in seconds since 1970."""

    tree: bytes
    parents: tuple[bytes, ...]
    message: str
    author: Author
    committer: Author
    time: int

    def serialise(self) -> bytes:
        lines = [f"tree {self.tree.hex()}", *(f"parent {parent.hex()}" for parent in self.parents)]
        lines += [f"{role} {_identity(who)} {self.time} +0000" for role, who in self._people()]
        return "\n".join([*lines, "", self.message]).encode("utf-8", "surrogateescape")

    def _people(self) -> tuple[tuple[str, Author], tuple[str, Author]]:
        return ("author", self.author), ("committer", self.committer)

    def trailers(self) -> list[dict[str, str]]:
        """One mapping a receipt, in order, as `{"Run": …, "Key": …}`."""
        blocks = self.message.split("\n\n")[1:]
        return [dict(_TRAILER.findall(block)) for block in blocks if _TRAILER.search(block)]


def parse(data: bytes, oid: bytes) -> Commit:
    """Raises IntegrityError for bytes that are no commit."""
    head, _, message = data.decode("utf-8", "surrogateescape").partition("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.split("\n"):
        name, _, value = line.partition(" ")
        fields.setdefault(name, []).append(value)
    try:
        return Commit(
            tree=bytes.fromhex(fields["tree"][0]),
            parents=tuple(bytes.fromhex(parent) for parent in fields.get("parent", ())),
            message=message,
            author=_person(fields["author"][0]),
            committer=_person(fields["committer"][0]),
            time=int(fields["committer"][0].split()[-2]),
        )
    except (KeyError, ValueError, IndexError):
        raise IntegrityError(f"commit {oid.hex()} is damaged") from None


def one_line(text: str) -> str:
    """`text` without line ends, control and direction characters: it fills one line and stays on it."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    return " ".join(spaced.split())


def receipts_message(run_id: str, receipts: Sequence[Receipt], files: int) -> str:
    """The message of a commit that adds these receipts, or only files."""
    blocks = "\n\n".join(_trailer_block(run_id, receipt) for receipt in receipts)
    if len(receipts) == 1:
        subject = receipt_subject(run_id, receipts[0])
    elif receipts:
        subject = f"{len(receipts)} receipts: {', '.join(_label(run_id, receipt) for receipt in receipts)}"
    else:
        subject, blocks = f"{files} files", f"Hermes-Run: {run_id}"
    return f"{_cut(subject)}\n\n{blocks}\n"


def receipt_subject(run_id: str, receipt: Receipt) -> str:
    """`research/docs: completed (agent review_topic, 1.2 s)`."""
    execution = receipt.execution
    facts = [" ".join(filter(None, (receipt.kind, one_line(_name(receipt)))))]
    if execution.attempt and execution.attempt > 1:
        facts.append(f"attempt {execution.attempt}")
    if execution.duration_seconds is not None:
        facts.append(f"{execution.duration_seconds:.1f} s")
    return f"{_label(run_id, receipt)}: {receipt.status} ({', '.join(facts)})"


def seal_message(run_id: str, tip: bytes, status: str) -> str:
    trailers = f"Hermes-Run: {run_id}\nHermes-Tip: {tip.hex()}\nHermes-Status: {status}\n"
    return f"{_cut(f'seal {run_id}: {status}')}\n\n{trailers}"


def commit_time(now: datetime) -> int:
    return int(now.timestamp())


def first_author(authors: Iterable[Author], default: Author) -> Author:
    """A commit has one author; receipts of several people or calls name the one of the first."""
    return next(iter(authors), default)


def receipt_trailers(run_id: str, receipt: Receipt) -> dict[str, str]:
    """What a commit says of a receipt it adds, by trailer, without the `Hermes-`."""
    values = {
        "Run": run_id,
        "Key": one_line(receipt.key),
        "Kind": receipt.kind,
        "Status": receipt.status,
        "Seq": str(receipt.seq),
    }
    return {name: value for name, value in values.items() if value}


def _trailer_block(run_id: str, receipt: Receipt) -> str:
    return "\n".join(f"Hermes-{name}: {value}" for name, value in receipt_trailers(run_id, receipt).items())


def _label(run_id: str, receipt: Receipt) -> str:
    return run_id if receipt.path in (layout.RUN, layout.RESULT) else one_line(receipt.key) or receipt.path


def _name(receipt: Receipt) -> str:
    request = receipt.request
    if isinstance(request, dict):
        return str(request.get("name") or "")
    return str(getattr(request, "workflow", ""))


def _cut(subject: str) -> str:
    return subject if len(subject) <= SUBJECT_LENGTH else subject[: SUBJECT_LENGTH - 1] + "…"


@lru_cache(maxsize=256)
def _identity(who: Author) -> str:
    name = one_line(who.name.translate({ord("<"): None, ord(">"): None})).strip(" .,:;\"'\\") or "unknown"
    email = "".join(who.email.translate({ord("<"): None, ord(">"): None}).split())
    return f"{name} <{one_line(email) or _EMAIL}>"


def _person(line: str) -> Author:
    name, _, rest = line.partition(" <")
    return Author(name, rest.partition(">")[0])
