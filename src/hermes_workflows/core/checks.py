"""What must be true of a run's commits, as a fold over them, oldest first: the rules that `verify` applies.

Each rule is one function in `_RULES` that looks at one commit and at what came before it. They judge bytes that
anybody may have written, so nothing is assumed of them and each finding names commit and path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from ..errors import HermesError, IntegrityError
from . import layout
from .identity import code_identity, request_fingerprint
from .layout import Role
from .messages import receipts_message
from .receipt_checks import check_receipt
from .receipts import Receipt, RunStarted, load


@dataclass(frozen=True)
class CommitFacts:
    """One commit of a run against its parent; paths are relative to the run's folder, `outside` ones to the root.

    `odd` are paths that are no plain files (links, executables); `message` is all it says.
    """

    commit: str
    parents: int
    added: Mapping[str, bytes]
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Finding:
    commit: str
    path: str
    message: str


@dataclass
class _Past:
    """What the commits so far add up to."""

    fingerprints: dict[str, str | None] = field(default_factory=dict)
    last_seq: int = -1
    gaps_allowed: bool = False
    ended: bool = False
    source_run: str = ""


@dataclass(frozen=True)
class _Added:
    """A commit and those of its receipts that can be read, in seq order; `unread` when there are others."""

    facts: CommitFacts
    receipts: tuple[Receipt, ...]
    unread: bool = False


def check_run(run_id: str, commits: Iterable[CommitFacts], content: Callable[[str], bytes | None]) -> Iterator[Finding]:
    """Every place where a run is not what a ledger writes, oldest commit first.

    `content` gives a file of the run's folder as it is now; only artifacts are asked for, and one at a time.
    """

    def blob(sha256: str) -> bytes:
        data = content(layout.artifact(sha256))
        if data is None:
            raise IntegrityError(f"its blob {layout.artifact(sha256)} is missing")
        return data

    past = _Past()
    for facts in commits:
        receipts, unread = [], False
        for path, data in facts.added.items():
            try:
                if is_receipt(path):
                    receipts.append(load(path, data, blob))
            except HermesError as error:
                unread = True
                yield Finding(facts.commit, path, error.message)
        added = _Added(facts, tuple(sorted(receipts, key=lambda receipt: receipt.seq)), unread)
        for rule in _RULES:
            for path, message in rule(run_id, added, past):
                yield Finding(facts.commit, path, message)
        _remember(added, past)


def is_receipt(path: str) -> bool:
    """Whether a receipt lies at `path`, rather than a file, something derived, or nothing that may be there."""
    place = layout.place(path)
    return place is not None and place.role in (Role.RESULT, Role.NOTE)


def _remember(added: _Added, past: _Past) -> None:
    for receipt in added.receipts:
        past.fingerprints[receipt.path] = receipt.fingerprint
        past.last_seq = max(past.last_seq, receipt.seq)
        past.ended = past.ended or receipt.path == layout.RESULT
        if isinstance(receipt, RunStarted):
            # A fork adopts receipts with their seqs, and leaves out notes that led to no result.
            past.gaps_allowed = receipt.execution.source is not None
            past.source_run = (receipt.execution.source or {}).get("run", "")


Rule = Callable[[str, _Added, _Past], Iterator[tuple[str, str]]]


def _one_parent(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    if added.facts.parents != 1:
        yield "", f"the commit has {added.facts.parents} parents; a run is a chain"


def _append_only(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for path in added.facts.changed:
        if path != layout.README:
            yield path, "was changed after it was recorded"
    for path in added.facts.removed:
        yield path, "was removed after it was recorded"
    for path in added.facts.outside:
        yield path, "lies outside the run's folder and was touched"


def _something(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    facts = added.facts
    if not (facts.added or facts.changed or facts.removed or facts.outside):
        yield "", "the commit adds nothing"


def _nothing_after_the_end(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    facts, late = added.facts, "was added after the run had its result"
    if past.ended:
        yield next(iter((*facts.added, *facts.changed, *facts.removed)), ""), late
    elif (end := next((each for each in added.receipts if each.path == layout.RESULT), None)) is not None:
        yield from ((receipt.path, late) for receipt in added.receipts if receipt.seq > end.seq)


def _names(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for path in added.facts.added:
        if layout.place(path) is None:
            yield path, "is no name that a run's folder may hold"
    for path in added.facts.odd:
        yield path, "is not a plain file"


def _artifacts(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for path, data in added.facts.added.items():
        place = layout.place(path)
        if place and place.family == "artifact" and path != layout.artifact(hashlib.sha256(data).hexdigest()):
            yield path, "holds something else than its name says"


def _sources(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    """A version of the code comes whole, in one commit, so its name can be made again from what is added."""
    versions: dict[str, dict[str, bytes]] = {}
    for path, data in added.facts.added.items():
        place = layout.place(path)
        if place and place.family == "source":
            versions.setdefault(path.split("/")[1], {})[place.stem] = data
    for code, files in versions.items():
        if (identity := code_identity(files)) != code:
            yield layout.source(code, next(iter(sorted(files)))), f"belongs to code {identity}, not {code}"


def _start(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    if past.last_seq < 0 and layout.RUN not in added.facts.added:
        yield layout.RUN, "is missing; a run starts with it"


def _seqs(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    last = past.last_seq
    for receipt in added.receipts:
        if receipt.seq <= last:
            yield receipt.path, f"has seq {receipt.seq} after {last}"
        elif receipt.seq != last + 1 and not past.gaps_allowed:
            yield receipt.path, f"has seq {receipt.seq} after {last}, and the run is no fork"
        last = max(last, receipt.seq)


def _fingerprints(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for receipt in added.receipts:
        request = receipt.request.model_dump() if isinstance(receipt.request, BaseModel) else receipt.request
        if receipt.fingerprint and request is not None and _identity(receipt.kind, request) != receipt.fingerprint:
            yield receipt.path, "has a fingerprint that is not its request's"


def _identity(kind: str, request: Mapping[str, Any]) -> str | None:
    try:
        return request_fingerprint(kind, request)
    except HermesError:
        return None


def _answers(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    known = {**past.fingerprints, **{receipt.path: receipt.fingerprint for receipt in added.receipts}}
    for receipt in added.receipts:
        question = _QUESTIONS.get(layout.place(receipt.path).family)  # type: ignore[union-attr]  # `_read` has looked
        if question is None:
            continue
        path = receipt.path.rpartition("/")[0] + question
        if path not in known:
            yield receipt.path, f"answers {path}, which is not there"
        elif known[path] != receipt.fingerprint:
            yield receipt.path, f"answers another request than {path}"


def _each_by_itself(run_id: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    run_ids = (run_id, past.source_run) if past.source_run else (run_id,)
    for receipt in added.receipts:
        for message in check_receipt(run_ids, receipt, added.facts.added[receipt.path]):
            yield receipt.path, message


def _message(run_id: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    """Nothing in a message is free: a ledger makes all of it from what the commit adds."""
    if added.unread:
        return
    facts = added.facts
    files = len(facts.added) + len(facts.changed)
    subject, _, rest = facts.message.partition("\n")
    right_subject, _, right_rest = receipts_message(run_id, added.receipts, files).partition("\n")
    if subject != right_subject:
        yield "", f"the commit's subject does not say what it adds, which is {right_subject!r}"
    if rest != right_rest:
        yield "", "the commit's trailers do not say what it adds"


_QUESTIONS = {"response": "/request.json", "timer": "/start.json"}

_RULES: tuple[Rule, ...] = (
    _one_parent,
    _append_only,
    _something,
    _nothing_after_the_end,
    _names,
    _artifacts,
    _sources,
    _start,
    _each_by_itself,
    _seqs,
    _fingerprints,
    _answers,
    _message,
)
