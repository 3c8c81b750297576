"""A run's receipts, sorted into what deciding needs: the start, the deliveries in order, what was requested when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ..errors import IntegrityError
from . import layout
from .layout import Role
from .receipts import Receipt, RunEnded, RunStarted

# Receipts that show what the decision at their `requested_after` asked for.
_PROOFS = frozenset({"step", "attempt", "start", "request", "timer-start"})


@dataclass(frozen=True)
class History:
    """`deliveries` are results in seq order; `expected` maps a decision (its seq) to what it must have requested."""

    started: RunStarted
    deliveries: tuple[Receipt, ...] = ()
    notes: tuple[Receipt, ...] = ()
    expected: Mapping[int, Sequence[Receipt]] = field(default_factory=dict)
    ended: RunEnded | None = None

    @property
    def seq(self) -> int:
        """The newest receipt's place in the order of delivery."""
        ended = [self.ended] if self.ended else []
        return max(receipt.seq for receipt in (self.started, *self.deliveries, *self.notes, *ended))


def fold(receipts: Iterable[Receipt]) -> History:
    """Sort receipts; raises IntegrityError when there is no run.json."""
    started: RunStarted | None = None
    ended: RunEnded | None = None
    deliveries: list[Receipt] = []
    notes: list[Receipt] = []
    expected: dict[int, list[Receipt]] = defaultdict(list)
    for receipt in sorted(receipts, key=attrgetter("execution.seq")):
        # By the exact type: whether a model is an instance of another one takes longer than all else here.
        if type(receipt) is RunStarted:
            started = receipt
        elif type(receipt) is RunEnded:
            ended = receipt
        else:
            place = layout.place(receipt.path)
            assert place is not None  # a receipt is only made for a path of the table
            (deliveries if place.role is Role.RESULT else notes).append(receipt)
            if place.family in _PROOFS and (asked := receipt.execution.requested_after) is not None:
                expected[asked].append(receipt)
    if started is None:
        raise _without_start()
    return History(started, tuple(deliveries), tuple(notes), dict(expected), ended)


def start_of(receipts: Iterable[Receipt]) -> RunStarted:
    """How a run began, for whoever wants nothing else of it. Raises IntegrityError as `fold` does."""
    for receipt in receipts:
        if isinstance(receipt, RunStarted):
            return receipt
    raise _without_start()


def _without_start() -> IntegrityError:
    return IntegrityError("the run has no run.json", hint="run `hermes-workflows verify` on it")
