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
from .artifacts import artifacts_of
from .identity import code_identity, request_fingerprint
from .layout import Role
from .messages import person_name, receipts_message
from .receipt_checks import check_receipt
from .receipts import Receipt, RunStarted, load


@dataclass(frozen=True)
class CommitFacts:
    """One commit of a run against its parent; paths are relative to the run's folder, `outside` ones to the root.

    `odd` are paths that are no plain files (links, executables), `unreadable` ones added with a content nobody can
    read, and why. `message` is all the commit says, `author` the name it gives, "" when that is not known.
    `whole` says that what came before cannot be read, so everything the run's folder holds is `added`.
    """

    commit: str
    parents: int
    added: Mapping[str, bytes]
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    message: str = ""
    author: str = ""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything the commit adds, readable or not."""
        return (*self.added, *self.unreadable)


@dataclass(frozen=True)
class Finding:
    """What is wrong, and where."""

    commit: str
    path: str
    message: str


Content = Callable[[str], bytes | None]


@dataclass
class _Past:
    """What the commits so far add up to. `unread` are receipts that are there and say nothing.

    `hole` says that the newest receipts are among them.
    """

    fingerprints: dict[str, str | None] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    last_seq: int = -1
    hole: bool = False
    ended: bool = False


@dataclass(frozen=True)
class _Added:
    """A commit and those of its receipts that can be read, in seq order; `unread` when there are others."""

    facts: CommitFacts
    receipts: tuple[Receipt, ...]
    unread: frozenset[str]
    content: Content

    @property
    def adopts(self) -> bool:
        """Whether a run starts here with receipts of another one."""
        return any(isinstance(each, RunStarted) and each.execution.source for each in self.receipts)


def check_run(run_id: str, commits: Iterable[CommitFacts], content: Content) -> Iterator[Finding]:
    """Every place where a run is not what a ledger writes, oldest commit first.

    `content` gives a file of the run's folder as it is now; only artifacts are asked for, and one at a time.
    """

    past = _Past()
    told: set[tuple[str, str]] = set()
    for facts in commits:
        if facts.whole:
            # Its receipts may have been met before the break; what was wrong with them is told once.
            past = _Past()
        added, findings = _read(facts, content)
        for rule in _RULES:
            findings += rule(run_id, added, past)
        for path, message in findings:
            if not path or (path, message) not in told:
                told.add((path, message))
                yield Finding(facts.commit, path, message)
        _remember(added, past)


def _read(facts: CommitFacts, content: Content) -> tuple[_Added, list[tuple[str, str]]]:
    """The receipts of a commit, and what is wrong with those that cannot be read."""

    def blob(sha256: str) -> bytes:
        data = content(layout.artifact(sha256))
        if data is None:
            raise IntegrityError(f"its blob {layout.artifact(sha256)} is missing")
        return data

    receipts, wrong = [], list(facts.unreadable.items())
    for path, data in facts.added.items():
        try:
            if is_receipt(path):
                receipts.append(load(path, data, blob))
        except HermesError as error:
            wrong.append((path, error.message))
    in_order = tuple(sorted(receipts, key=lambda receipt: receipt.seq))
    return _Added(facts, in_order, frozenset(path for path, _ in wrong if is_receipt(path)), content), wrong


def is_receipt(path: str) -> bool:
    """Whether a receipt lies at `path`, rather than a file, something derived, or nothing that may be there."""
    place = layout.place(path)
    return place is not None and place.role in (Role.RESULT, Role.NOTE)


def _remember(added: _Added, past: _Past) -> None:
    past.unread |= added.unread
    past.hole = bool(added.unread) or (past.hole and not added.receipts)
    for receipt in added.receipts:
        past.fingerprints[receipt.path] = receipt.fingerprint
        past.last_seq = max(past.last_seq, receipt.seq)
        past.ended = past.ended or receipt.path == layout.RESULT


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
    if not (facts.paths or facts.changed or facts.removed or facts.outside):
        yield "", "the commit adds nothing"


def _nothing_after_the_end(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    facts, late = added.facts, "was added after the run had its result"
    if past.ended:
        yield next(iter((*facts.paths, *facts.changed, *facts.removed)), ""), late
    elif (end := next((each for each in added.receipts if each.path == layout.RESULT), None)) is not None:
        yield from ((receipt.path, late) for receipt in added.receipts if receipt.seq > end.seq)


def _names(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for path in added.facts.paths:
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
    if past.last_seq < 0 and layout.RUN not in {*added.facts.paths, *past.unread}:
        yield layout.RUN, "is missing; a run starts with it"


def _seqs(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    last = past.last_seq
    # A fork adopts receipts with their seqs, and leaves out notes that led to no result.
    gaps_allowed = added.adopts or past.hole or bool(added.unread)
    for receipt in added.receipts:
        if receipt.seq <= last:
            yield receipt.path, f"has seq {receipt.seq} after {last}"
        elif receipt.seq != last + 1 and not gaps_allowed:
            yield receipt.path, f"has seq {receipt.seq} after {last}: what was between them is gone"
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
        if path in past.unread or path in added.unread:
            continue
        if path not in known:
            yield receipt.path, f"answers {path}, which is not there"
        elif known[path] != receipt.fingerprint:
            yield receipt.path, f"answers another request than {path}"


def _each_by_itself(run_id: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for receipt in added.receipts:
        for message in check_receipt(None if added.adopts else run_id, receipt, added.facts.added[receipt.path]):
            yield receipt.path, message


def _message(run_id: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    """Nothing in a message is free: a ledger makes all of it from what the commit adds."""
    facts = added.facts
    if added.unread or facts.whole:
        return
    files = len(facts.paths) + len(facts.changed)
    subject, _, rest = facts.message.partition("\n")
    right_subject, _, right_rest = receipts_message(run_id, added.receipts, files).partition("\n")
    if subject != right_subject:
        yield "", f"the commit's subject does not say what it adds, which is {right_subject!r}"
    if rest != right_rest:
        yield "", "the commit's trailers do not say what it adds"


def _provenance(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    """What people did says who did it, and the commit says the same."""
    for receipt in added.receipts:
        place = layout.place(receipt.path)
        spoken = place is not None and (place.family in _SPOKEN or (place.family, receipt.status) == _ANSWERED)
        if spoken and receipt.execution.provenance is None:
            yield receipt.path, "does not say who did it: it has no provenance"
    first = next(iter(added.receipts), None)
    if first is None or added.unread or added.facts.whole or not added.facts.author:
        return
    by = first.execution.provenance
    if by is None or (by.kind == "policy" and added.facts.author == _RULE_AUTHOR):
        return
    if (name := person_name(by.by)) != added.facts.author:
        yield first.path, f"is by {name!r}, and its commit by {added.facts.author!r}"


def _kept(_: str, added: _Added, past: _Past) -> Iterator[tuple[str, str]]:
    for kept in artifacts_of(added.receipts):
        path = layout.artifact(kept.sha256)
        try:
            data = added.content(path)
        except IntegrityError as error:
            yield path, error.message
            continue
        if data is None:
            yield path, f"is missing; artifact {kept.key} is kept there"


# A rule of the workflow itself, such as one for expiry, has nobody to name.
_RULE_AUTHOR = "workflow"
_SPOKEN = frozenset({"signal", "cancel", "control"})
_ANSWERED = ("response", "completed")
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
    _provenance,
    _kept,
    _message,
)
