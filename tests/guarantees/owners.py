"""Runners that own calls of one workspace on a disk, held before each of their writes; what they may never do is seen.

An owner is a runner's own dispatcher on its own handles of git and SQLite, with the loop's and the keeper's part played
by the test: their threads wake up by the time of day, so that no order of theirs could be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any

from tests.contract.queues import FrozenClock
from tests.guarantees.turns import Turns

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import Receipt
from hermes_workflows.core.summary import RunSummary, summarize
from hermes_workflows.registry import parse
from hermes_workflows.runner.bodies import Over
from hermes_workflows.runner.dispatch import Dispatcher
from hermes_workflows.runner.executors import execute
from hermes_workflows.runner.jobs import Job, Surroundings
from hermes_workflows.runner.records import Records
from hermes_workflows.runner.results import Finished
from hermes_workflows.runner.slices import Decider, SliceLimits
from hermes_workflows.runner.upkeep import Upkeep
from hermes_workflows.store import index
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.ports import Appended, Entry, Head, Outcome
from hermes_workflows.store.queue_port import Change, Lease
from hermes_workflows.store.sqlite_queue import SqliteQueue
from hermes_workflows.workspace import Surroundings as Lent
from hermes_workflows.workspace import Workspace

LEASE_SECONDS = 30.0
_ROW = "SELECT id, state, token, runner, claims, expires_at, kind FROM work WHERE run_id = ? AND key = ?"


@dataclass
class Watch:
    """What two owners share with the test: `recorded` counts receipts that were acknowledged, by run and path.

    With `reads`, they are held before they look at receipts, too. Time passes with every write to the queue, so that no
    two leases run out at the same moment.
    """

    clock: FrozenClock = field(default_factory=FrozenClock)
    turns: Turns = field(default_factory=Turns)
    recorded: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    reads: bool = False


class HeldLedger(GitLedger):
    watch: Watch

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.watch.turns.before("append " + ", ".join(draft.path for entry in entries for draft in entry.drafts))
        outcomes = super().append(entries)
        for entry, outcome in zip(entries, outcomes, strict=True):
            if isinstance(outcome, Appended):
                self.watch.recorded.update((entry.run_id, draft.path) for draft in entry.drafts)
        return outcomes

    def head(self, run_id: str) -> Head | None:
        self._look()
        return super().head(run_id)

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        self._look()
        return super().read(run_id, since)

    def file(self, run_id: str, path: str) -> bytes | None:
        self._look()
        return super().file(run_id, path)

    def _look(self) -> None:
        if self.watch.reads:
            self.watch.turns.before("look at receipts")


class HeldQueue(SqliteQueue):
    """Sees that no row changes by a token that it does not have any more.

    What is wrong is not raised: it would be in the middle of the runner, which goes on after faults of ours.
    """

    watch: Watch

    def apply(self, change: Change, runner: str) -> list[Lease]:
        self.watch.turns.before(_said(change))
        self.watch.clock.advance(0.001)
        stale = self._stale([*change.enter, *change.finish, *change.release])
        leases = super().apply(change, runner)
        mine = {lease.token for lease in (*leases, *change.enter)}
        taken_back = {(work.run_id, work.key) for work in change.offer} | set(change.withdraw)
        for name, before in stale.values():
            after = self._row(name)
            anybodys = before["token"] is None and name in taken_back
            # Whoever claims finds out that a lease has run out.
            same = after == before or (change.claim is not None and after == {**before, "state": "ready"})
            if not (same or anybodys or (after is not None and after["token"] in mine)):
                self.watch.wrong.append(f"{runner} changed {before} into {after}")
        if leases:
            self.watch.turns.before("look at what was claimed")
        return leases

    def renew(self, leases: Sequence[Lease], seconds: float) -> Any:
        self.watch.turns.before("renew " + _names(leases))
        self.watch.clock.advance(0.001)
        stale = self._stale(leases)
        answers = super().renew(leases, seconds)
        for name, before in stale.values():
            if (after := self._row(name)) != before:
                self.watch.wrong.append(f"a renewal changed {before} into {after}")
        for lease in leases:
            if lease.token in stale and answers[lease.token] != "lost":
                self.watch.wrong.append(f"a renewal of {lease} was {answers[lease.token]}")
        return answers

    def _stale(self, leases: Iterable[Lease]) -> dict[str, tuple[tuple[str, str], dict[str, Any]]]:
        """By the tokens of these leases, the rows that have another token by now."""
        found = {}
        for lease in leases:
            row = self._row(name := (lease.work.run_id, lease.work.key))
            if row is not None and row["token"] != lease.token:
                found[lease.token] = (name, row)
        # Whoever holds the row by another lease as well may do with it what he likes.
        current = {lease.token for lease in leases} - set(found)
        return {token: (name, row) for token, (name, row) in found.items() if row["token"] not in current}

    def _row(self, name: tuple[str, str]) -> dict[str, Any] | None:
        def look(connection: Connection) -> dict[str, Any] | None:
            row = connection.execute(_ROW, name).fetchone()
            return dict(row) if row else None

        return self._attempt(look)


def _said(change: Change) -> str:
    parts = {"enter": change.enter, "finish": change.finish, "release": change.release}
    said = [f"{what} {_names(leases)}" for what, leases in parts.items() if leases]
    return ", ".join([*said, *(["claim"] if change.claim else [])]) or "write the queue"


def _names(leases: Iterable[Lease]) -> str:
    return "+".join(lease.work.key or "workflow" for lease in leases)


class Owner:
    """`jobs` are calls that it has claimed and not executed, `inbox` what was executed and not recorded.

    With `in_bursts`, its hands record the step of a burst and go on with the next one. Whoever works with the
    dispatcher has its `place`, as in `runner.executing`.
    """

    in_bursts = False

    def __init__(self, name: str, workspace: Workspace, watch: Watch, decider: Decider) -> None:
        self.place = Lock()
        self.steps_in_bursts = 0
        self.name, self.workspace, self._turns = name, workspace, watch.turns
        self.records = Records(workspace, name, decider)
        around = Surroundings(workspace.root, workspace.environment, workspace.redactor, workspace.clock)
        self.dispatcher = Dispatcher(self.records, around, self._take, survives=lambda *_: True)
        self.upkeep = Upkeep(self.records, around.agents)
        self._wrong = watch.wrong
        self.jobs: list[tuple[Lease, Job]] = []
        self.inbox: list[Finished] = []

    def _take(self, lease: Lease, job: Job) -> None:
        others = [each.job for token, each in self.dispatcher.active.items() if token != lease.token]
        if any((each.run_id, each.call.key) == (job.run_id, job.call.key) for each in others):
            self._wrong.append(f"{self.name} executes {job.call.key} of {job.run_id} twice at once")
        self.jobs.append((lease, job))

    def own_one(self) -> None:
        """A call from its claim to the end of its lease."""
        self.dispatcher.turn(1, None)
        self.execute()
        self.renew()
        self.record()
        self.write()

    def execute(self) -> None:
        while self.jobs:
            lease, job = self.jobs.pop(0)
            self._turns.before(f"execute {job.call.key}")
            finished = Finished(job, lease, *execute(job, lambda attempt: None))
            if not (self.in_bursts and self._goes_on(finished)):
                self.inbox.append(finished)

    def _goes_on(self, finished: Finished) -> bool:
        if not self.place.acquire(blocking=False):
            return False
        try:
            if self.inbox or not self.dispatcher.goes_on(finished):
                return False
            if following := self.dispatcher.go_on(finished):
                self.steps_in_bursts += 1
                self._take(*following)
            return True
        finally:
            self.place.release()

    def renew(self) -> None:
        if leases := self.dispatcher.leases():
            self.dispatcher.stop_withdrawn(self.workspace.queue.renew(leases, LEASE_SECONDS))

    def record(self) -> None:
        events, self.inbox = self.inbox, []
        self.dispatcher.record(events)

    def write(self) -> None:
        if self.records.pending:
            self.records.apply(None)

    # -- the threads of a runner, until nothing is left to do ------------------------------------------------

    def loop(self, over: Callable[[], bool]) -> None:
        while not over():
            if not self.place.acquire(blocking=False):
                self._turns.before("wait for its place")
                continue
            try:
                self.record()
                self.dispatcher.turn(2, None)
                if self.workspace.queue.stuck():
                    self.upkeep.sweep()
            finally:
                self.place.release()

    def hands(self, over: Callable[[], bool]) -> None:
        while not over():
            self._turns.before("wait for calls")
            self.execute()

    def keeper(self, over: Callable[[], bool]) -> None:
        while not over():
            self._turns.before("wait a while")
            self.renew()

    def view(self, run_id: str) -> tuple[RunSummary, list[str]]:
        """What it knows of a run, and what it waits for."""
        try:
            held = self.records.bodies.current(run_id)
        except Over as over:
            return over.summary, []
        return held.summary, sorted(held.live.outstanding)

    def close(self) -> None:
        self.records.bodies.close()
        self.upkeep.polling.close()
        self.upkeep.close()
        self.workspace.close()


class Place:
    """A workspace with two owners and somebody who starts runs."""

    def __init__(self, root: Path, code: str, *, bursts: bool = False) -> None:
        self.root, self.watch, self._bursts = root, Watch(), bursts
        self.clock = self.watch.clock
        (root / ".hermes").mkdir()
        (root / "flow.py").write_text(code)
        self.decider = Decider(SliceLimits(dead_man=None))
        self.people = self._open()
        self.owners = [Owner(name, self._open(), self.watch, self.decider) for name in ("ada", "bob")]

    def _open(self) -> Workspace:
        registry = parse("{}", self.root / ".hermes" / "workflows.registry.json")
        paths = registry.dbs["default"]
        ledger = HeldLedger.open(
            paths.receipts,
            create=True,
            clock=self.clock,
            durability="process",
            committer="runner",
            bursts=self._bursts,
        )
        assert isinstance(ledger, HeldLedger)
        ledger.watch = self.watch
        queue = HeldQueue.open(
            paths.sqlite,
            clock=self.clock,
            lease_seconds=LEASE_SECONDS,
            rebuild=lambda: index.all_indexed(ledger),
            home=ledger.home,
        )
        assert isinstance(queue, HeldQueue)
        queue.watch = self.watch
        return Workspace(registry, paths, ledger, queue, Lent(self.clock, {}))

    def start(self, run_id: str, given: Any = None) -> None:
        self.people.start("flow.py:flow", given, run_id=run_id)
        self.settle(run_id)

    def expire(self) -> None:
        """All leases run out."""
        self.clock.advance(LEASE_SECONDS + 1)

    def settle(self, run_id: str, *, execute: bool = False) -> None:
        """Until nobody has anything to do, but for calls that are open when they are not to be executed."""
        for _ in range(20):
            for owner in self.owners:
                if self.people.queue.stuck(run_id):
                    owner.upkeep.sweep()
                    owner.write()
                owner.dispatcher.turn(4 if execute else 1 if self.answered(run_id) else 0, None)
                owner.execute()
                owner.record()
                owner.write()
            if self.rests(run_id, execute=execute):
                return
            self.clock.advance(LEASE_SECONDS + 1)
        raise AssertionError([*self.people.queue.work(run_id), *self.people.queue.stuck(run_id)])

    def rests(self, run_id: str, *, execute: bool) -> bool:
        rows = self.people.queue.work(run_id)
        if execute:
            return not rows
        return not self.answered(run_id) and all(row.status == "queued" and row.work.key for row in rows)

    def answered(self, run_id: str) -> bool:
        """Whether there is a row of a call that has its receipt."""
        rows = [row for row in self.people.queue.work(run_id) if row.work.key]
        return any(self.people.ledger.file(run_id, layout.step(row.work.key)) is not None for row in rows)

    def paths(self, run_id: str) -> list[str]:
        return [receipt.path for receipt in self.people.ledger.read(run_id)[1]]

    def is_right(self, run_id: str) -> None:
        """One receipt a path, and everybody knows the same."""
        head, receipts = self.people.ledger.read(run_id)
        assert self.watch.wrong == [], "\n".join([*self.watch.wrong, *self.watch.turns.steps])
        assert all(count == 1 for count in self.watch.recorded.values()), self.watch.recorded.most_common(3)
        assert len({receipt.path for receipt in receipts}) == len(receipts)
        (first, open_calls), second = (owner.view(run_id) for owner in self.owners)
        assert (first, open_calls) == second
        assert first == summarize(run_id, receipts)
        indexed = self.people.queue.indexed(run_id)
        assert indexed is not None
        assert (indexed.summary, indexed.tip) == (first, head.tip)
        assert self.people.queue.stuck(run_id) == []
        assert {row.work.key for row in self.people.queue.work(run_id)} == set(open_calls)

    def is_whole(self) -> None:
        """What is dear to look at: whole histories, and the index beside one that is made anew."""
        ledger = self.people.ledger
        rebuilt = {each.summary.run_id: each for each in index.all_indexed(ledger)}
        for head in ledger.heads():
            assert ledger.verify(head.run_id) == []
        assert {each.summary.run_id: each for each in self.people.queue.list_indexed(limit=10_000)} == rebuilt

    def effects(self) -> Counter[str]:
        file = self.root / "effects"
        return Counter(file.read_text().split() if file.exists() else ())

    def close(self) -> None:
        self.watch.turns.close()
        for owner in self.owners:
            owner.close()
        self.people.close()
        self.decider.close()
