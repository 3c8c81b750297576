"""The whole system, said a second time and in memory: workspaces with their runs, queue, index and owners.

An operation does what the promises say it does and returns the reply; `state` is what everybody should see afterwards.
Nothing here reads what the real system has written, but for one thing: which rows a claim took (`rows`).
"""

from __future__ import annotations

from tests.model.body import ANSWER_SECONDS, Plan, Receipt
from tests.model.rows import Change, Rows
from tests.model.runners import Runners
from tests.model.runs import Refused, adopted, status_of

KEEP = 3


class Site(Runners):
    """One workspace."""

    # -- what people do --------------------------------------------------------------------------------------

    def start(self, run_id: str, plan: Plan) -> str:
        if run_id in self.runs:
            if self.runs[run_id].plan != plan:
                raise Refused("Conflict")
            self._wake(run_id)
        else:
            self._begin(run_id, plan, [])
        self._refresh(run_id)
        return status_of(self.runs[run_id].receipts)

    def answer(self, run_id: str, key: str, payload: str, by: str) -> str:
        """`by` is who sends the message, too: what comes from the same name is the same message."""
        self._refresh(run_id)
        run = self.runs[run_id]
        given, asked = f"reviews/{key}/response.json", run.paths.get(f"reviews/{key}/request.json")
        if asked is None:
            raise Refused("NotFound")
        first = run.paths.get(given)
        expired = key.startswith("soon") and self.time.now >= asked.at + ANSWER_SECONDS
        if first is None and not run.ended and not expired:
            self._append(run, given, "completed", payload, by)
            self._refresh(run_id)
            return by
        if first is not None and (first.status, first.by, first.output) == ("completed", by, payload):
            return by
        self._wake(run_id)
        answered = first is not None and first.status == "completed" and first.by != by
        raise Refused("AlreadyAnswered" if answered else "Conflict")

    def cancel(self, run_id: str) -> str:
        self._refresh(run_id)
        run = self.runs[run_id]
        if not run.cancelled and run.ended:
            raise Refused("Conflict")
        if not run.cancelled:
            self._append(run, "control/1-cancel.json", "cancel")
            self._refresh(run_id)
        return status_of(run.receipts)

    def fork(self, source: str, key: str | None, new: str) -> int:
        """How many receipts the new run begins with; `source` may be one that was fetched."""
        fetched = source.startswith("origin/")
        receipts = self.remote.all()[source.removeprefix("origin/")] if fetched else self.runs[source].receipts
        plan = self.plans[source.removeprefix("origin/")]
        taken = adopted(plan, receipts, key)
        self._begin(new, plan, taken)
        return len(taken)

    def retry(self, run_id: str, new: str) -> int | str:
        run = self.runs[run_id]
        status = status_of(run.receipts)
        if status in ("failed", "cancelled"):
            return self.fork(run_id, None, new)
        if status != "completed":
            self._refresh(run_id)
        if run_id not in self.rows.stuck:
            raise Refused("Conflict")
        change = Change(unstuck=[run_id])
        change.wake(run_id)
        self.rows.apply(change, "")
        return status

    # -- upkeep ----------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Every run is read again, and those that go on are queued."""
        change = Change(index={run_id: len(run.receipts) for run_id, run in self.runs.items()})
        for run_id, run in self.runs.items():
            if not run.ended:
                change.wake(run_id)
        self._apply(change, "")
        return len(self.runs)

    def lose(self) -> None:
        """SQLite is gone while nobody works."""
        self.rows, self.index = Rows(), {}
        for name in self.owners:
            self.crash(name)
        self.rebuild()

    def seal(self) -> int:
        living = [run for run in self.runs.values() if run.ended and run.living]
        new = [run for run in living if not run.sealed]
        for run in new:
            run.sealed = True
        by_end = sorted((run.ended_at, run_id) for run_id, run in self.runs.items() if run.ended and run.living)
        for _, run_id in by_end[: max(len(by_end) - KEEP, 0)]:
            self.runs[run_id].living = False
        return len(new)

    def clone(self) -> dict[str, list[Receipt]]:
        return {run_id: list(run.receipts) for run_id, run in self.runs.items()}

    def push(self) -> dict[str, str]:
        """What becomes of each run with a ref of its own, here or there. What is sealed goes as one branch, too,
        which git counts as fetched.
        """
        told = {}
        for run_id, run in self.runs.items():
            there = self.hub.runs.get(run_id)
            if run.living or there not in (None, run.receipts):
                told[run_id] = "unchanged" if there == run.receipts else "sent"
                self.hub.runs[run_id] = list(run.receipts)
        if sealed := {run_id: run.receipts for run_id, run in self.runs.items() if run.sealed}:
            self.hub.ledgers[self.name] = self.remote.ledgers[self.name] = sealed
        return told

    def fetch(self) -> set[str]:
        """The runs of others that are new, or have moved on."""
        news = {run_id for run_id, there in self.hub.runs.items() if self.remote.runs.get(run_id) != there}
        self.remote.runs.update((run_id, list(receipts)) for run_id, receipts in self.hub.runs.items())
        self.remote.ledgers.update(self.hub.ledgers)
        return news - set(self.runs)
