"""What two runs did differently: `diff`, without a repository or a terminal.

Calls are paired by key, then by fingerprint, then by name. What may differ between two equal executions
(`execution`, `usage`) is compared only where that is asked for; the models and files that were used are told beside
the differences and count as none.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .changes import ABSENT, Change, changes
from .outline import OPEN
from .receipts import Receipt
from .told_calls import ToldCall, calls_told
from .usages import Sum, added

# Parts of `execution` that say what was worked with; by these two equal requests may have two answers.
_MEANS: Mapping[str, tuple[str, ...]] = {
    "run": ("code", "python", "versions"),
    "agent": ("model", "preset", "files"),
    "review": ("provenance",),
}
# Of who has answered: the rest (the message, the channel) is never the same twice.
_WHO = ("kind", "by")


@dataclass(frozen=True)
class Part:
    """One difference inside a call: of its request, output, exit code, decision, …"""

    of: str
    change: Change


@dataclass(frozen=True)
class Difference:
    """`what` is `removed` for a call that only the older run has, `added` for one of the newer, else `changed`."""

    what: str
    before: ToldCall | None
    after: ToldCall | None
    parts: tuple[Part, ...] = ()

    @property
    def call(self) -> ToldCall:
        found = self.before or self.after
        assert found is not None  # one of the two has it
        return found


@dataclass(frozen=True)
class Comparison:
    """`differences` are in the order in which the runs were decided: the first one is where they part.

    `beside` are models, files and code that differ and may be why; `usage` what each run consumed.
    """

    differences: tuple[Difference, ...]
    beside: tuple[Difference, ...]
    same: int
    usage: tuple[Sum, Sum]

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def first(self) -> Difference | None:
        return self.differences[0] if self.differences else None


@dataclass(frozen=True)
class Asked:
    """What is compared beyond what was requested and what came of it."""

    execution: bool = False
    usage: bool = False


def compare(before: Iterable[Receipt], after: Iterable[Receipt], asked: Asked | None = None) -> Comparison:
    """Compare the receipts of two runs, or of one run at two moments."""
    asked = asked or Asked()
    old, new = calls_told(before), calls_told(after)
    differences, beside, same = [], [], 0
    for one, other in _in_order(old, new, _paired(old, new)):
        found = _difference(one, other, asked)
        if found is not None:
            differences.append(found)
        else:
            same += 1
        if one and other and not asked.execution and (means := tuple(_means(one, other))):
            beside.append(Difference("changed", one, other, means))
    return Comparison(tuple(differences), tuple(beside), same, (_total(old), _total(new)))


# -- which call is which -----------------------------------------------------------------------------------------


def _paired(old: Sequence[ToldCall], new: Sequence[ToldCall]) -> dict[int, int]:
    """Places in `old` and the places in `new` of the same calls."""
    pairs: dict[int, int] = {}
    for same in (_by_key, _by_fingerprint, _by_name):
        free: dict[Hashable, deque[int]] = defaultdict(deque)
        taken = set(pairs.values())
        for place, call in enumerate(new):
            if place not in taken and (identity := same(call)) is not None:
                free[identity].append(place)
        for place, call in enumerate(old):
            if place not in pairs and free.get(same(call)):
                pairs[place] = free[same(call)].popleft()
    return pairs


def _by_key(call: ToldCall) -> Hashable:
    # What is no call has a place of its own, whatever keys authors choose.
    return (call.kind if call.kind in ("run", "result", "control", "signal") else "call", call.key)


def _by_fingerprint(call: ToldCall) -> Hashable:
    return (call.kind, call.fingerprint) if call.fingerprint else None


def _by_name(call: ToldCall) -> Hashable:
    return (call.kind, call.name)


def _in_order(
    old: Sequence[ToldCall], new: Sequence[ToldCall], pairs: Mapping[int, int]
) -> Iterator[tuple[ToldCall | None, ToldCall | None]]:
    """All pairs as the older run was decided; what only the newer one has stands before what follows it there."""
    places = {there: here for here, there in pairs.items()}
    lines: list[tuple[tuple[int, int, int], ToldCall | None, ToldCall | None]] = [
        ((here, 1, 0), call, new[pairs[here]] if here in pairs else None) for here, call in enumerate(old)
    ]
    ahead = len(old)
    for there in range(len(new) - 1, -1, -1):
        ahead = places.get(there, ahead)
        if there not in places:
            lines.append(((ahead, 0, there), None, new[there]))
    for _, one, other in sorted(lines, key=lambda line: line[0]):
        yield one, other


# -- what differs between two calls ------------------------------------------------------------------------------


def _difference(one: ToldCall | None, other: ToldCall | None, asked: Asked) -> Difference | None:
    if one is None or other is None:
        return Difference("added" if one is None else "removed", one, other)
    parts = tuple(_parts(one, other, asked))
    return Difference("changed", one, other, parts) if parts else None


def _parts(one: ToldCall, other: ToldCall, asked: Asked) -> Iterator[Part]:
    for name in ("kind", "key"):
        if getattr(one, name) != getattr(other, name):
            yield Part(name, Change("", getattr(one, name), getattr(other, name)))
    yield from _within("request", one.request, other.request)
    yield from _within("status", one.status, other.status)
    # Without a result there is nothing to compare one with: the status says so.
    if OPEN not in (one.status, other.status):
        yield from _within(lambda place: _outcome(one.kind, place), one.output, other.output)
        yield from _within("error", one.error, other.error)
    if asked.usage:
        yield from _within("usage", one.usage or {}, other.usage or {})
    if asked.execution:
        yield from _within("execution", one.execution or {}, other.execution or {})


def _within(of: str | Callable[[str], str], before: Any, after: Any) -> Iterator[Part]:
    for change in changes(before, after):
        yield Part(of if isinstance(of, str) else of(change.place), change)


def _outcome(kind: str, place: str) -> str:
    """What people call a part of an output."""
    if kind == "review":
        return "decision"
    return "exit code" if kind == "bash" and place == "/exit_code" else "output"


def _means(one: ToldCall, other: ToldCall) -> Iterator[Part]:
    old, new = one.execution or {}, other.execution or {}
    for name in _MEANS.get(one.kind, ()):
        before, after = old.get(name, ABSENT), new.get(name, ABSENT)
        if name == "provenance":
            before, after = _who(before), _who(after)
        if before is not after:
            yield from _within(name, before, after)


def _who(provenance: Any) -> Any:
    return provenance if provenance is ABSENT else {name: provenance.get(name) for name in _WHO}


def _total(calls: Iterable[ToldCall]) -> Sum:
    total: Sum = {}
    for call in calls:
        total = added(total, call.usage or {})
    return total
