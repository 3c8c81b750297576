"""The real system under the same operations: git and SQLite on a disk, the runner's own deciding, a clock that stands.

Executors are the test: what a runner gives them stays in the owner's hands until the test says how it ended.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.contract.queues import FrozenClock, beat
from tests.contract.remotes import ENVIRONMENT, add_remote
from tests.model.body import FLOW, Plan, Receipt
from tests.model.rows import LEASE_SECONDS, Name
from tests.model.world import KEEP

from hermes_workflows import exchange
from hermes_workflows.core import receipts as written
from hermes_workflows.core.receipts import Failure, Provenance
from hermes_workflows.core.summary import RunSummary
from hermes_workflows.registry import Registry, parse
from hermes_workflows.runner import forking
from hermes_workflows.runner.dispatch import Dispatcher
from hermes_workflows.runner.forking import Wish
from hermes_workflows.runner.jobs import Executed, Job, Surroundings
from hermes_workflows.runner.records import Records
from hermes_workflows.runner.results import Finished
from hermes_workflows.runner.slices import Decider
from hermes_workflows.runner.upkeep import Upkeep
from hermes_workflows.store import index, peek
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Ledger
from hermes_workflows.store.queue_port import Change, Lease
from hermes_workflows.store.sqlite_queue import SqliteQueue
from hermes_workflows.workspace import Surroundings as Lent
from hermes_workflows.workspace import Workspace


class Watched(SqliteQueue):
    """Remembers what the last claim gave."""

    claimed: list[Name]

    def apply(self, change: Change, runner: str) -> list[Lease]:
        leases = super().apply(change, runner)
        if change.claim is not None:
            self.claimed = [(lease.work.run_id, lease.work.key) for lease in leases]
        return leases


class Owner:
    """A runner without its loop; what its executors would have in hand is `jobs`."""

    def __init__(self, name: str, workspace: Workspace, decider: Decider) -> None:
        self.name, self.workspace = name, workspace
        self.jobs: dict[str, tuple[Lease, Job]] = {}
        self.records = Records(workspace, name, decider)
        around = Surroundings(workspace.root, workspace.environment, workspace.redactor, workspace.clock)
        self.dispatcher = Dispatcher(self.records, around, self._take, survives=lambda *_: True)
        self.upkeep = Upkeep(self.records, around.agents)

    def _take(self, lease: Lease, job: Job) -> None:
        self.jobs[lease.token] = (lease, job)

    def holding(self) -> dict[Name, tuple[int, bool]]:
        # By their jobs: an execution may go on under another lease than the one it began with.
        active = [each.job for each in self.dispatcher.active.values()]
        return {
            (job.run_id, job.call.key): (job.attempt, job.stop.is_set())
            for _, job in self.jobs.values()
            if any(job is each for each in active)
        }

    def close(self) -> None:
        self.records.bodies.close()
        self.upkeep.polling.close()
        self.upkeep.close()
        self.workspace.close()


class RealSite:
    """A workspace in a folder: one handle for people, and one for each owner."""

    def __init__(self, root: Path, clock: FrozenClock, hub: Path, decider: Decider, *, bursts: bool) -> None:
        root.mkdir()
        self.root, self.clock, self.decider, self.bursts = root, clock, decider, bursts
        (root / "flow.py").write_text(FLOW)
        self.registry: Registry = parse(f'{{"keep_runs": {KEEP}}}', root / ".hermes" / "workflows.registry.json")
        self.paths = self.registry.dbs["default"]
        self.paths.receipts.parent.mkdir()
        self.people = self._open()
        add_remote(self.ledger, hub)
        self.owners: dict[str, Owner] = {}
        self._seen: dict[str, list[Receipt]] = {}
        self._clones = 0

    @property
    def ledger(self) -> GitLedger:
        assert isinstance(self.people.ledger, GitLedger)
        return self.people.ledger

    def _open(self) -> Workspace:
        bursts = self.bursts
        ledger = GitLedger.open(
            self.paths.receipts, create=True, clock=self.clock, durability="process", committer="runner", bursts=bursts
        )
        queue = Watched.open(
            self.paths.sqlite,
            clock=self.clock,
            lease_seconds=LEASE_SECONDS,
            rebuild=lambda: index.all_indexed(ledger),
            home=ledger.home,
        )
        return Workspace(self.registry, self.paths, ledger, queue, Lent(self.clock, ENVIRONMENT))

    def close(self) -> None:
        for owner in self.owners.values():
            owner.close()
        self.people.close()

    # -- what is seen ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        queue = self.people.queue
        heads = {head.run_id: head for head in self.ledger.heads()}
        indexed = queue.list_indexed(limit=10_000)
        return {
            "runs": {run_id: self._receipts(self.ledger, head.tip, run_id) for run_id, head in heads.items()},
            "heads": {run_id: head.sealed for run_id, head in heads.items()},
            "index": {each.summary.run_id: (each.summary.status, each.summary.seq) for each in indexed},
            "reviews": {(row.run_id, row.key): row.status for row in queue.reviews()},
            "rows": {
                (row.work.run_id, row.work.key, row.work.kind): (row.status, row.runner, row.claims)
                for row in queue.work()
            },
            "stuck": {mark.run_id for mark in queue.stuck()},
            "fetched": {head.run_id: self._fetched(head.tip) for _, head in self.ledger.fetched()},
            "hands": {name: owner.holding() for name, owner in self.owners.items()},
        }

    def _receipts(self, ledger: Ledger, tip: str, run_id: str) -> list[Receipt]:
        """A commit never changes, so what it holds is read once."""
        if tip not in self._seen:
            self._seen[tip] = [plain(each) for each in ledger.read(run_id)[1]]
        return self._seen[tip]

    def _fetched(self, tip: str) -> int:
        if tip not in self._seen:
            self._seen[tip] = [plain(each) for each in self.ledger.at(tip)[1]]
        return self._seen[tip][-1].seq

    # -- what people do --------------------------------------------------------------------------------------

    def start(self, run_id: str, plan: Plan) -> str:
        return self.people.start("flow.py:flow", {"stages": [list(stage) for stage in plan]}, run_id=run_id).status

    def answer(self, run_id: str, key: str, payload: str, by: str) -> str:
        given = self.people.answer(run_id, key, payload, somebody(by))
        assert given.response is not None
        assert given.response.execution.provenance is not None
        return given.response.execution.provenance.by

    def cancel(self, run_id: str) -> str:
        return self.people.control(run_id, "cancel", by=somebody("ana")).status

    def fork(self, source: str, key: str | None, new: str) -> int:
        found = self.people.find(source if key is None else f"{source}@{key}")
        return forking.fork(self.people, Wish(found, new, somebody("ana"))).adopted

    def retry(self, run_id: str, new: str) -> int | str:
        done = forking.retry(self.people, Wish(self.people.find(run_id), new, somebody("ana")))
        return done.status if isinstance(done, RunSummary) else done.adopted

    # -- what a runner does ----------------------------------------------------------------------------------

    def claim(self, name: str, limit: int, *, dies: bool = False) -> list[Name]:
        owner = self.owners[name]
        queue = owner.workspace.queue
        assert isinstance(queue, Watched)
        queue.claimed = []
        owner.dispatcher.turn(limit, None)
        claimed = queue.claimed
        self._settle(owner, dies)
        return claimed

    def hand_over(self, name: str, work: Name, status: str, output: Any, *, decide: bool, dies: bool = False) -> None:
        owner = self.owners[name]
        token = next(token for token, (_, job) in owner.jobs.items() if (job.run_id, job.call.key) == work)
        lease, job = owner.jobs.pop(token)
        error = Failure(type="Broken", message="it broke") if status == "failed" else None
        executed = Executed(status, output if status == "completed" else None, error, retryable=True)
        if status == "failed" and job.stop.is_set():
            executed = replace(executed, status="cancelled")
        now = self.clock.now()
        owner.dispatcher.record([Finished(job, lease, executed, now, now)], decide=decide)
        self._settle(owner, dies)

    def heartbeat(self, name: str) -> dict[Name, str]:
        owner = self.owners[name]
        leases = owner.dispatcher.leases()
        owner.workspace.queue.heartbeat(beat(name, self.clock))
        answers = owner.workspace.queue.renew(leases, LEASE_SECONDS)
        owner.dispatcher.stop_withdrawn(answers)
        return {(lease.work.run_id, lease.work.key): answers[lease.token] for lease in leases}

    def sweep(self, name: str) -> None:
        owner = self.owners[name]
        owner.upkeep.sweep()
        self._settle(owner, dies=False)

    def _settle(self, owner: Owner, dies: bool) -> None:
        if dies:
            self.crash(owner.name)
        else:
            owner.records.apply(None)

    def crash(self, name: str) -> None:
        """The process is gone, and another one has its name."""
        if name in self.owners:
            self.owners.pop(name).close()
        self.owners[name] = Owner(name, self._open(), self.decider)

    # -- upkeep ----------------------------------------------------------------------------------------------

    def look(self) -> dict[str, str]:
        return {each.run_id: each.status for each in self.people.runs(limit=10_000)}

    def rebuild(self) -> int:
        return self.people.rebuild_index().changed

    def lose(self) -> None:
        names = list(self.owners)
        self.close()
        self.owners.clear()
        for path in self.paths.sqlite.parent.glob(self.paths.sqlite.name + "*"):
            path.unlink()
        self.people = self._open()
        for name in names:
            self.crash(name)

    def seal(self) -> int:
        return self.ledger.seal(keep=KEEP)

    def maintain(self) -> int:
        done = self.people.maintain()
        assert not done.failed
        return done.sealed

    def clone(self) -> dict[str, list[Receipt]]:
        """What plain git brings elsewhere, read there by somebody who has never seen it."""
        self._clones += 1
        target = self.root / f"clone-{self._clones}.git"
        self.ledger.land()
        subprocess.run(
            [
                *("git", "clone", "--quiet", "--mirror", "--no-local"),
                *("-c", f"hermes.workspace={self.ledger.home}", str(self.paths.receipts), str(target)),
            ],
            check=True,
            env=ENVIRONMENT,
        )
        try:
            opened = GitLedger.open(target, create=False, clock=self.clock, durability="process", committer="somebody")
            with closing(opened) as ledger:
                problems = [each for head in ledger.heads() for each in ledger.verify(head.run_id)]
                assert not problems
                return {head.run_id: [plain(each) for each in ledger.read(head.run_id)[1]] for head in ledger.heads()}
        finally:
            shutil.rmtree(target)

    def push(self) -> dict[str, str]:
        sent = exchange.push(self.people).refs
        assert not [each.reason for each in sent if each.reason]
        return {name: each.state for each in sent if (name := _run_of(each.ref, peek.RUNS))}

    def fetch(self) -> set[str]:
        got = exchange.fetch(self.people)
        assert not got.no_runs
        return {name for each in (*got.new, *got.moved) if (name := _run_of(each, "runs/"))}


def _run_of(ref: str, prefix: str) -> str:
    return ref.removeprefix(prefix) if ref.startswith(prefix) else ""


def somebody(by: str) -> Provenance:
    return Provenance(kind="test", by=by, channel="tests", message_id=f"message of {by}")


def plain(receipt: written.Receipt) -> Receipt:
    """A receipt as the model knows it."""
    execution, by, at = receipt.execution, "", 0.0
    if receipt.path.startswith("steps/"):
        by = execution.runner or ""
    elif receipt.status == "completed" and execution.provenance is not None:
        by = execution.provenance.by
    if receipt.status == "requested" and execution.started_at is not None:
        at = execution.started_at.timestamp()
    status = getattr(receipt, "status", "started")
    return Receipt(receipt.seq, receipt.path, status, getattr(receipt, "output", None), by, at)
