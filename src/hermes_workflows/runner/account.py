"""What a run's receipts come to for those who look at it: its sums, its calls, and what else its README tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.layout import Role
from ..core.readme import outline_of, render, tells
from ..core.receipts import Receipt
from ..core.summary import RunSummary

_MOST_WAITING = 256
_OF_CALLS = ("step", "agent", "bash")


class Account:
    """Receipts in, in order, and an account of them out.

    What calls came to is counted when somebody asks, since nobody does in a loop of steps that take no time: counted
    one by one, it was a twelfth of such a step.
    """

    def __init__(self, run_id: str) -> None:
        self._summary = RunSummary(run_id)
        self._outline = outline_of(())
        self._telling: list[Receipt] = []
        self._waiting: list[Receipt] = []

    def add(self, receipts: Iterable[Receipt]) -> None:
        of_calls = True
        for receipt in receipts:
            self._waiting.append(receipt)
            of_calls = of_calls and receipt.kind in _OF_CALLS and receipt.role is Role.RESULT
        if not of_calls or len(self._waiting) > _MOST_WAITING:
            self._count()

    @property
    def ended(self) -> bool:
        """Whether the run has ended, which no result of a call says."""
        return self._summary.ended

    @property
    def paused(self) -> Mapping[str, str] | None:
        """Who has paused it, which no result of a call changes."""
        return self._summary.paused

    @property
    def summary(self) -> RunSummary:
        self._count()
        return self._summary

    @property
    def reviews(self) -> list[Receipt]:
        """All receipts of its questions."""
        return [receipt for receipt in self._telling if receipt.kind == "review"]

    def readme(self, new: list[Receipt]) -> bytes:
        """Its README as it will be with `new` ones."""
        return render(self.summary.apply(new), [*self._telling, *new], self._outline.with_(new))

    def _count(self) -> None:
        if waiting := self._waiting:
            self._waiting = []
            self._summary = self._summary.apply(waiting)
            self._outline.add(waiting)
            self._telling += filter(tells, waiting)
