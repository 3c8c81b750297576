"""What a workspace keeps: receipts, the index and the queue that follow from them, and what everybody sees of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.model.body import Plan, Receipt
from tests.model.owners import Owner
from tests.model.rows import Change, Rows
from tests.model.runs import Refs, Run, questions, status_of


@dataclass
class Time:
    now: float
    elapsed: float


class Books:
    """`hub` is the repository that all workspaces share, `remote` what this one has fetched of it."""

    def __init__(self, name: str, time: Time, hub: Refs, plans: dict[str, Plan]) -> None:
        self.name, self.time, self.hub, self.plans = name, time, hub, plans
        self.runs: dict[str, Run] = {}
        self.index: dict[str, int] = {}
        self.rows = Rows()
        self.remote = Refs()
        self.owners: dict[str, Owner] = {}

    # -- what is seen ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        known = {run_id: self.runs[run_id].receipts[:count] for run_id, count in self.index.items()}
        return {
            "runs": {run_id: list(run.receipts) for run_id, run in self.runs.items()},
            "heads": {run_id: not run.living for run_id, run in self.runs.items()},
            "index": {run_id: (status_of(seen), seen[-1].seq) for run_id, seen in known.items()},
            "reviews": {(run_id, key): said for run_id, seen in known.items() for key, said in questions(seen).items()},
            "rows": {
                (*name, row.kind): (row.standing(self.time.elapsed), row.holder, row.claims)
                for name, row in self.rows.rows.items()
            },
            "stuck": set(self.rows.stuck),
            "fetched": {run_id: receipts[-1].seq for run_id, receipts in self.remote.all().items()},
            "hands": {
                name: {hand.lease.name: (hand.attempt, hand.stopped) for hand in owner.hands.values()}
                for name, owner in self.owners.items()
            },
        }

    def look(self) -> dict[str, str]:
        for run_id in self.runs:
            self._refresh(run_id)
        return {run_id: status_of(run.receipts) for run_id, run in self.runs.items()}

    # -- what is written -------------------------------------------------------------------------------

    def _begin(self, run_id: str, plan: Plan, taken: list[Receipt]) -> None:
        self.plans[run_id] = plan
        self.runs[run_id] = Run(plan, [Receipt(0, "run.json", "started"), *taken])
        self._refresh(run_id)

    def _append(self, run: Run, path: str, status: str, output: Any = None, by: str = "", at: float = 0.0) -> None:
        assert path not in run.paths
        assert not run.ended
        run.receipts.append(Receipt(run.receipts[-1].seq + 1, path, status, output, by, at))

    def _refresh(self, run_id: str) -> None:
        """Whoever finds the index behind brings it up to date, and queues the run."""
        run = self.runs[run_id]
        if self.index.get(run_id) == len(run.receipts):
            return
        change = Change(index={run_id: len(run.receipts)})
        if not run.ended:
            change.wake(run_id)
        self._apply(change, "")

    def _wake(self, run_id: str) -> None:
        self._refresh(run_id)
        if not self.runs[run_id].ended:
            change = Change()
            change.wake(run_id)
            self._apply(change, "")

    def _apply(self, change: Change, owner: str) -> None:
        self.rows.apply(change, owner)
        for run_id, count in change.index.items():
            self.index[run_id] = max(count, self.index.get(run_id, 0))
            if self.runs[run_id].ended:
                self.rows.stuck.discard(run_id)
