"""Which rows a claim may take beside what executes already: limits by kind and name, and one suspect a runner.

Both queues ask here, so that they cannot differ. Without limits nothing is counted: a claim costs what it cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .queue_port import Lease, Limits, Work

# A call whose claimer was lost this often executes alone among its like: the next death then says which one it was.
SUSPECT_LOSSES = 2


class Room:
    """`used` are kinds, names and numbers of what executes; `suspected` says whether this runner executes a suspect."""

    def __init__(
        self, limits: Limits, used: Callable[[], Iterable[tuple[str, str, int]]], suspected: Callable[[], bool]
    ) -> None:
        self._left: Counter[str] = Counter(dict(limits))
        self._suspected = suspected
        self.no_suspects = False
        for kind, name, number in used() if limits else ():
            self._take(kind, name, number)

    @property
    def full(self) -> list[str]:
        """The limits that leave no room."""
        return [limit for limit, left in self._left.items() if left <= 0]

    @property
    def is_narrow(self) -> bool:
        return self.no_suspects or bool(self.full)

    def takes(self, work: Work, losses: int) -> bool:
        """Whether a row may be claimed now; it counts from then on."""
        if any(self._left.get(limit, 1) <= 0 for limit in limits_of(work.kind, work.name)):
            return False
        if is_suspicious(work, losses):
            self.no_suspects = self.no_suspects or self._suspected()
            if self.no_suspects:
                return False
            self.no_suspects = True
        self._take(work.kind, work.name, 1)
        return True

    def _take(self, kind: str, name: str, number: int) -> None:
        for limit in limits_of(kind, name):
            if limit in self._left:
                self._left[limit] -= number


def is_suspicious(work: Work, losses: int) -> bool:
    """Runs that end the processes which decide them have a rule of their own (`runner.dispatch`)."""
    return losses >= SUSPECT_LOSSES and work.kind != "workflow"


def is_suspect(lease: Lease) -> bool:
    return is_suspicious(lease.work, len(lease.lost))


def limits_of(kind: str, name: str) -> tuple[str, str]:
    """What a limit on such work may be called: `agent`, `agent:writer`."""
    return kind, f"{kind}:{name}"
