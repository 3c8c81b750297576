"""Entries on their way into the ledger: several runs may share a passage to the disk, and each may need another one."""

from __future__ import annotations

from collections.abc import Sequence

from .planning import Plan
from .ports import Entry, Outcome


class Appending:
    """`waiting` are the positions of what is not settled yet, by run: all entries of a run are settled together."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.waiting: dict[str, list[int]] = {}
        self._outcomes: dict[int, Outcome] = {}
        for position, entry in enumerate(entries):
            self.waiting.setdefault(entry.run_id, []).append(position)

    @property
    def of_one_run(self) -> bool:
        return len(self.waiting) == 1

    @property
    def outcomes(self) -> list[Outcome]:
        """One an entry, when nothing waits any more."""
        return [self._outcomes[position] for position in range(len(self.entries))]

    def of(self, run_id: str) -> list[Entry]:
        return [self.entries[position] for position in self.waiting[run_id]]

    def settle(self, plan: Plan) -> None:
        """What was planned for a run stands."""
        self._outcomes.update(zip(self.waiting.pop(plan.run_id), plan.outcomes, strict=True))
