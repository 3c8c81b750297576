"""What `RUN` and `RUN@KEY` mean: the one resolver of every command (SEMANTICS §6).

    RUN         an exact id, else the one id that begins so, else a commit: of a run, or a seal's for the run it sealed
    REMOTE/RUN  the same ids among what was fetched from REMOTE
    …@KEY       the moment after that key's last result; the path of a receipt in the run's folder will do as well

It reads the ledger and, while that is up to date, the index; it writes neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .core import layout
from .core.names import check_run_id, clean_key
from .core.receipts import Receipt
from .core.spelling import nearest, suggestion
from .errors import Conflict, IntegrityError, InvalidInput, NotFound
from .store.ports import Head, Ledger

# Ids named in a message about an ambiguous one.
_SHOWN = 5
_COMMIT = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)

Matching = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True)
class Found:
    """One run as one commit has it; `at` is the key after which the reader stops.

    `receipts` are the oldest first, with a `key` only those up to its last result. `remote` is the remote's name of
    a fetched run; `commit` says that a commit was given, which need not be the run's newest one.
    """

    run_id: str
    head: Head
    receipts: tuple[Receipt, ...]
    remote: str | None = None
    key: str | None = None
    commit: bool = False


@dataclass(frozen=True)
class Place:
    """Which run is meant; what had to be read of it to know that."""

    head: Head
    remote: str | None = None
    commit: bool = False
    receipts: Sequence[Receipt] | None = None


def split(text: str) -> tuple[str, str | None]:
    """`RUN@KEY` in its two halves; neither an id nor a key has an `@` in it."""
    run, at, key = text.rpartition("@")
    return (run, key) if at else (text, None)


def find(ledger: Ledger, text: str, matching: Matching) -> Found:
    """The run that `text` means, with its receipts; `matching` gives the ids of ours that begin so.

    Raises NotFound with the nearest right word, Conflict that names the candidates, IntegrityError.
    """
    name, key = split(text)
    place = locate(ledger, name, matching)
    head, receipts = _read(ledger, place)
    known = receipts if key is None else until(receipts, key, head.run_id)
    return Found(head.run_id, head, tuple(known), place.remote, key, place.commit)


def locate(ledger: Ledger, name: str, matching: Matching) -> Place:
    """The run that `name`, without a key, means. Raises NotFound, Conflict."""
    if not name:
        raise NotFound("no run is named", hint="`hermes-workflows list` shows them")
    if "/" in name:
        return _fetched(ledger, name)
    if (head := _ours(ledger, name)) is not None:
        return Place(head)
    if matches := matching(name, _SHOWN + 1):
        head = _ours(ledger, _only(name, matches))
        if head is not None:
            return Place(head)
    if _COMMIT.fullmatch(name):
        head, receipts = ledger.at(name.lower())
        return Place(head, commit=True, receipts=receipts)
    raise NotFound(f"no run {name!r}", hint=_hint(ledger, name, matching))


def until(receipts: Sequence[Receipt], key: str, run_id: str) -> list[Receipt]:
    """The receipts up to the last result of `key`, or to its last note while it has no result."""
    own = of_key(receipts, key)
    if not own:
        known = dict.fromkeys(receipt.key for receipt in receipts if receipt.key)
        raise NotFound(f"run {run_id} has no key {key!r}", hint=suggestion(key, known, "keys"))
    results = [receipt for receipt in own if receipt.role is layout.Role.RESULT]
    last = (results or own)[-1].seq
    return [receipt for receipt in receipts if receipt.seq <= last]


def of_key(receipts: Iterable[Receipt], key: str) -> list[Receipt]:
    """What is recorded of one key, given as it stands in the run, as the author wrote it, or as a receipt's path."""
    names = {key, _clean(key)}
    return [receipt for receipt in receipts if receipt.path == key or (receipt.key and receipt.key in names)]


def _read(ledger: Ledger, place: Place) -> tuple[Head, Sequence[Receipt]]:
    if place.receipts is not None:
        return place.head, place.receipts
    if place.remote is None:
        return ledger.read(place.head.run_id)
    head, receipts = ledger.at(place.head.tip)
    if head.run_id != place.head.run_id:
        # A foreign ledger may say anything of the commits it names.
        raise IntegrityError(f"{place.remote} has a commit of {head.run_id} as run {place.head.run_id}")
    return replace(head, sealed=place.head.sealed), receipts


def _clean(key: str) -> str:
    try:
        return clean_key(key)
    except InvalidInput:
        return key


def _ours(ledger: Ledger, run_id: str) -> Head | None:
    try:
        return ledger.head(check_run_id(run_id))
    except InvalidInput:
        return None


def _fetched(ledger: Ledger, name: str) -> Place:
    remote, _, run = name.rpartition("/")
    begin: list[Head] = []
    known: list[str] = []
    for origin, head in ledger.fetched():
        if origin == remote and head.run_id == run:
            return Place(head, remote)
        if origin == remote and head.run_id.startswith(run):
            begin.append(head)
        known.append(f"{origin}/{head.run_id}")
    if not begin:
        raise NotFound(f"no fetched run {name!r}", hint=suggestion(name, known, "fetched runs"))
    only = _only(name, [f"{remote}/{head.run_id}" for head in begin])
    return Place(next(head for head in begin if f"{remote}/{head.run_id}" == only), remote)


def _only(name: str, matches: Sequence[str]) -> str:
    if len(matches) == 1:
        return matches[0]
    shown = ", ".join(matches[:_SHOWN]) + (", …" if len(matches) > _SHOWN else "")
    raise Conflict(f"several runs begin with {name!r}: {shown}", hint="write more of the id")


def _hint(ledger: Ledger, name: str, matching: Matching) -> str:
    """The nearest id among ours and fetched ones; when none is near, ours, if there are any."""
    ours = matching("", 200)
    known = [*ours, *(f"{remote}/{head.run_id}" for remote, head in ledger.fetched())]
    return suggestion(name, known if nearest(name, known) or not ours else ours, "runs")
