"""The whole system, said a second time and in memory: workspaces with their runs, queue, index and owners.

An operation does what the promises say it does and returns the reply; `state` is what everybody should see afterwards.
Nothing here reads what the real system has written, but for one thing: which rows a claim took (`rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.model.body import ANSWER_SECONDS, ATTEMPTS, RETRY_SECONDS, Call, Plan, Receipt, Thought, calls_of, think
from tests.model.rows import Change, Lease, Name, Rows

KEEP = 3
END, EXPIRY = "$end", "$expiry/"
GRACE_SECONDS = 10.0
MAX_LOSSES = 3


class Refused(Exception):
    """The name of the error that an operation ends with."""


@dataclass
class Time:
    now: float
    elapsed: float


@dataclass
class Run:
    plan: Plan
    receipts: list[Receipt]
    ended_at: float | None = None
    sealed: bool = False
    living: bool = True

    @property
    def paths(self) -> dict[str, Receipt]:
        return {each.path: each for each in self.receipts}

    @property
    def ended(self) -> bool:
        return "result.json" in self.paths

    @property
    def cancelled(self) -> bool:
        return any(each.status == "cancel" for each in self.receipts)

    def open_questions(self) -> list[str]:
        return [key for key, status in questions(self.receipts).items() if status == "open"]


def questions(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Keys and statuses, as the two receipts of each say; the end of a run leaves none open."""
    found: dict[str, str] = {}
    for each in receipts:
        if each.path.startswith("reviews/"):
            found[each.path.split("/")[1]] = "open" if each.status == "requested" else each.status
    return found


def status_of(receipts: Sequence[Receipt]) -> str:
    if receipts[-1].path == "result.json":
        return receipts[-1].status
    return "waiting" if "open" in questions(receipts).values() else "running"


@dataclass
class Refs:
    """The runs that a repository between workspaces has: those with a ref, and those that each workspace has sealed."""

    runs: dict[str, list[Receipt]] = field(default_factory=dict)
    ledgers: dict[str, dict[str, list[Receipt]]] = field(default_factory=dict)

    def all(self) -> dict[str, list[Receipt]]:
        sealed = {run_id: receipts for ledger in self.ledgers.values() for run_id, receipts in ledger.items()}
        return sealed | self.runs


@dataclass
class Hand:
    """A call that an owner executes."""

    lease: Lease
    attempt: int
    stopped: bool = False


@dataclass
class Body:
    """A run that a process has in memory: what it has put into the queue, and how many receipts it had seen then.

    One that is made again from receipts offers all that is open, and gives up what has no result.
    """

    seen: int
    offered: set[str] = field(default_factory=set)
    gave_up: bool = False


@dataclass
class Owner:
    """A runner's process."""

    name: str
    bodies: dict[str, Body] = field(default_factory=dict)
    leave_by: dict[str, float] = field(default_factory=dict)
    hands: dict[int, Hand] = field(default_factory=dict)

    def drop(self, run_id: str) -> None:
        self.bodies.pop(run_id, None)
        self.leave_by.pop(run_id, None)

    def stop(self, run_id: str, key: str | None = None) -> None:
        for hand in self.hands.values():
            if hand.lease.name[0] == run_id and key in (None, hand.lease.name[1]):
                hand.stopped = True


class Site:
    """One workspace. `hub` is the repository that all of them share, `remote` what this one has fetched of it."""

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

    # -- what a runner does ----------------------------------------------------------------------------------

    def claim(self, name: str, limit: int, taken: Sequence[Name], *, dies: bool = False) -> None:
        """A turn of a runner: what it decides, and what it begins to execute."""
        owner, out = self.owners[name], Change()
        leases = self.rows.claim(name, limit, taken, self.time.now, self.time.elapsed)
        suspect = next((each for each in leases if each.kind == "workflow" and each.claims > 1), None)
        if suspect is not None and len(leases) > 1:
            self.rows.apply(Change(release=[each for each in leases if each is not suspect]), name)
            leases = [suspect]
        for lease in leases:
            self._serve(owner, lease, out)
        self._settle(owner, out, dies)

    def hand_over(self, name: str, work: Name, status: str, output: Any, *, decide: bool, dies: bool = False) -> None:
        """What an owner's executor brings: it is recorded, whoever holds the row by now."""
        owner, out = self.owners[name], Change()
        hand = next(each for each in owner.hands.values() if each.lease.name == work)
        del owner.hands[hand.lease.token]
        run, call = self.runs[work[0]], self._call(work)
        status = "cancelled" if status == "failed" and hand.stopped else status
        again = status == "failed" and call.kind == "twice" and hand.attempt < ATTEMPTS
        path = call.attempt(hand.attempt) if again else call.result
        if path in run.paths:
            out.wake(work[0])
        elif not run.ended:
            self._append(run, path, status, output if status == "completed" else None, name)
            out.index[work[0]] = len(run.receipts)
            out.wake(work[0])
        out.finish.append(hand.lease)
        woken = bool(out.offer)
        if again:
            out.offer.append((work, "step", self.time.now + RETRY_SECONDS))
        if decide and woken and work[0] in owner.bodies:
            del out.offer[0]  # the body is at hand: it decides now, instead of being queued
            self._advance(owner, work[0], out)
        self._settle(owner, out, dies)

    def heartbeat(self, name: str) -> dict[Name, str]:
        owner = self.owners[name]
        answers = self.rows.renew([hand.lease for hand in owner.hands.values()], name, self.time.elapsed)
        for hand in owner.hands.values():
            hand.stopped = hand.stopped or answers[hand.lease.name] == "withdrawn"
        return answers

    def sweep(self, name: str) -> None:
        """Runs whose news stand in git only are queued, and cancelled ones that are stuck may end."""
        self.look()
        freed = [run_id for run_id in self.rows.stuck if self.runs[run_id].cancelled]
        change = Change(unstuck=freed)
        for run_id in freed:
            change.wake(run_id)
        self._settle(self.owners[name], change, dies=False)

    def crash(self, name: str) -> None:
        self.owners[name] = Owner(name)
        self.rows.held.pop(name, None)

    # -- upkeep ----------------------------------------------------------------------------------------------

    def look(self) -> dict[str, str]:
        for run_id in self.runs:
            self._refresh(run_id)
        return {run_id: status_of(run.receipts) for run_id, run in self.runs.items()}

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

    # -- inside: runs ----------------------------------------------------------------------------------------

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

    def _settle(self, owner: Owner, change: Change, dies: bool) -> None:
        """The queue hears of it, unless the process dies when git has heard and the queue has not."""
        if dies:
            self.crash(owner.name)
        else:
            self._apply(change, owner.name)

    def _call(self, work: Name) -> Call:
        return next(call for stage in calls_of(self.plans[work[0]]) for call in stage if call.key == work[1])

    # -- inside: deciding ------------------------------------------------------------------------------------

    def _serve(self, owner: Owner, lease: Lease, out: Change) -> None:
        run_id, key = lease.name
        out.finish.append(lease)
        if lease.kind == "step":
            self._serve_call(owner, lease, out)
        elif lease.kind == "workflow" and lease.claims > MAX_LOSSES:
            out.wake(run_id)  # a probe says that it is not this run that ends processes
        elif lease.kind == "workflow":
            self._advance(owner, run_id, out)
        elif self._body(owner, run_id, out) is None:
            pass
        elif key == END:
            owner.leave_by[run_id] = self.time.now
            out.wake(run_id)
        elif key.removeprefix(EXPIRY) in self.runs[run_id].open_questions():
            self._append(self.runs[run_id], f"reviews/{key.removeprefix(EXPIRY)}/response.json", "expired")
            out.index[run_id] = len(self.runs[run_id].receipts)
            out.wake(run_id)

    def _serve_call(self, owner: Owner, lease: Lease, out: Change) -> None:
        run_id, call = lease.name[0], self._call(lease.name)
        if lease.claims > 1 and call.result in self.runs[run_id].paths:
            out.wake(run_id)
            return
        thought = self._body(owner, run_id, out)
        if thought is None:
            return
        if call not in thought.open:
            if thought.end is not None:
                out.wake(run_id)
        elif lease.lost >= MAX_LOSSES:
            out.stuck.append(run_id)
            out.offer.append((lease.name, "step", 0.0))
        else:
            out.finish.remove(lease)
            made = sum(call.attempt(number) in self.runs[run_id].paths for number in range(1, ATTEMPTS))
            owner.hands[lease.token] = Hand(lease, made + 1)

    def _body(self, owner: Owner, run_id: str, out: Change) -> Thought | None:
        """What the body wants now; None for a run that is over, of which nothing is left behind."""
        run = self.runs[run_id]
        if run.ended:
            owner.drop(run_id)
            owner.stop(run_id)
            self._clear_up(run_id, out)
            out.index[run_id] = len(run.receipts)
            return None
        owner.bodies.setdefault(run_id, Body(len(run.receipts)))
        return think(run.plan, run.receipts)

    def _advance(self, owner: Owner, run_id: str, out: Change) -> None:
        thought = self._body(owner, run_id, out)
        if thought is None:
            return
        run = self.runs[run_id]
        for call in thought.open:
            if call.is_question and call.request not in run.paths:
                self._append(run, call.request, "requested", at=self.time.now)
        body = owner.bodies[run_id]
        if thought.dropped and not body.gave_up:
            body.gave_up = True
            heard = any(each.status == "cancel" for each in run.receipts[body.seen :])
            for call in thought.dropped if heard else thought.given_up:
                self._give_up(owner, run_id, call, out)
        if thought.end is not None:
            self._end(owner, run_id, thought, out)
        else:
            self._queue(body, run_id, thought.open, out)
        out.index[run_id] = len(run.receipts)

    def _queue(self, body: Body, run_id: str, wanted: Sequence[Call], out: Change) -> None:
        run = self.runs[run_id]
        out.offer += self._wanted(run_id, [call for call in wanted if call.key not in body.offered])
        closed = [each for each in run.receipts[body.seen :] if each.path.endswith("/response.json")]
        out.withdraw += [(run_id, EXPIRY + each.path.split("/")[1]) for each in closed]
        body.offered.update(call.key for call in wanted)
        body.seen = len(run.receipts)

    def _wanted(self, run_id: str, calls: Iterable[Call]) -> Iterator[tuple[Name, str, float]]:
        for call in calls:
            if call.kind == "soon":
                due = self.runs[run_id].paths[call.request].at + ANSWER_SECONDS
                yield (run_id, EXPIRY + call.key), "timer", due
            elif not call.is_question:
                yield (run_id, call.key), "step", 0.0

    def _give_up(self, owner: Owner, run_id: str, call: Call, out: Change) -> None:
        run = self.runs[run_id]
        if call.request in run.paths and call.result not in run.paths:
            self._append(run, call.result, "withdrawn")
        out.withdraw += [(run_id, call.key), (run_id, EXPIRY + call.key)]
        owner.stop(run_id, call.key)

    def _end(self, owner: Owner, run_id: str, thought: Thought, out: Change) -> None:
        run = self.runs[run_id]
        at_work = {
            key for key, row in self.rows.of(run_id) if row.standing(self.time.elapsed) in ("leased", "withdrawn")
        }
        if any(call.key in at_work for call in thought.given_up if not call.is_question):
            if run_id not in owner.leave_by:
                owner.leave_by[run_id] = self.time.now + GRACE_SECONDS
                out.offer.append(((run_id, END), "timer", owner.leave_by[run_id]))
            if self.time.now < owner.leave_by[run_id]:
                return
        assert thought.end is not None
        self._append(run, "result.json", thought.end, thought.output)
        run.ended_at = self.time.elapsed
        owner.drop(run_id)
        self._clear_up(run_id, out)

    def _clear_up(self, run_id: str, out: Change) -> None:
        out.withdraw += [(run_id, key) for key, row in self.rows.of(run_id) if row.kind != "workflow"]


def adopted(plan: Plan, receipts: list[Receipt], key: str | None) -> list[Receipt]:
    """What a fork begins with: results, and the notes of calls that have one. Up to a key, all of it; else up to the
    failure, or the cancel request, that ended the run.
    """
    if key is not None:
        own = [each for each in receipts if _about(plan, key, each)]
        results = [each for each in own if _is_result(each)]
        receipts = [each for each in receipts if each.seq <= (results or own)[-1].seq]
    stop = next((each.seq for each in receipts if each.status == "cancel"), None)
    if key is not None and stop is not None:
        raise Refused("InvalidInput")
    if key is None and (failed := think(plan, receipts).failed):
        stop = min(each.seq for each in receipts if each.path in {call.result for call in failed})
    left = [each for each in receipts if stop is None or each.seq < stop]
    paths = {each.path for each in left}
    done = [call for stage in calls_of(plan) for call in stage if call.result in paths]
    return [each for each in left if any(call.owns(each.path) for call in done)]


def _about(plan: Plan, key: str, receipt: Receipt) -> bool:
    return any(call.key == key and call.owns(receipt.path) for stage in calls_of(plan) for call in stage)


def _is_result(receipt: Receipt) -> bool:
    return receipt.path.endswith("/response.json") or (
        receipt.path.startswith("steps/") and ".attempt-" not in receipt.path
    )
