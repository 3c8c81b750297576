"""The runner's loop over one database: results in, decisions into the queue, claimed work to the executors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.calls import Call
from ..core.receipts import Draft
from ..core.retry import Retry
from ..core.timestamps import render_time
from ..errors import HermesError, NotFound, StoreFailure, TemporarilyLocked
from ..store.queue_port import Claim, Kind, Lease, Stuck, Work
from . import calls, children, drafts, endings
from .agents import AgentAttempt
from .bodies import CannotAdvance, Held
from .executors import Executed, Job, Surroundings
from .records import Records, log

# A run whose slice took its process down this often is not tried again (SEMANTICS §1).
MAX_CLAIMS = 3
# Deciding needs no executor, but many runs must not keep results waiting.
_DECISIONS_AT_ONCE = 16
SHUTDOWN = "the runner ends"


@dataclass(frozen=True)
class Finished:
    """An executed job that waits for its receipt."""

    job: Job
    lease: Lease
    executed: Executed
    started: datetime
    ended: datetime


@dataclass(frozen=True)
class Attempted:
    """An agent's refused answer, to be recorded before the next attempt ends."""

    job: Job
    attempt: AgentAttempt


@dataclass(frozen=True)
class Active:
    """A call that an executor has in hand."""

    lease: Lease
    job: Job


class Dispatcher:
    """Works on one database. Single-threaded: executors hand over what they have through the runner's inbox."""

    def __init__(self, records: Records, around: Surroundings, start: Callable[[Lease, Job], None]) -> None:
        self.records = records
        self.around = around
        self.active: dict[str, Active] = {}
        self._start = start
        self._unrecorded: list[Finished] = []

    @property
    def workspace_name(self) -> str:
        return str(self.records.workspace.paths.sqlite)

    @property
    def busy(self) -> bool:
        return bool(self.active or self._unrecorded)

    # -- results ---------------------------------------------------------------------------------------------

    def record(self, events: Iterable[Finished | Attempted]) -> None:
        """Commit results with one barrier for all; what the disk does not take now is kept for the next turn."""
        waiting = list(self._unrecorded)
        self._unrecorded = []
        made: dict[str, list[Draft]] = {}
        for event in events:
            if isinstance(event, Attempted):
                made.setdefault(event.job.run_id, []).append(self._attempt_note(event))
            else:
                waiting.append(event)
        for finished in waiting:
            if (draft := self._draft(finished)) is not None:
                made.setdefault(finished.job.run_id, []).append(draft)
        try:
            self.records.append_results(made)
        except (StoreFailure, TemporarilyLocked) as error:
            # Not acknowledged and not lost: the results stay here until the disk takes them.
            log.error("cannot record %d results yet: %s", len(waiting), error.message)
            self._unrecorded = waiting
            return
        for finished in waiting:
            self._settle_lease(finished)

    def _attempt_note(self, event: Attempted) -> Draft:
        return drafts.agent_attempt(event.job, event.attempt, self._stamp(event.job))

    def _stamp(self, job: Job) -> drafts.Stamp:
        return self.records.stamp(self.records.bodies.get(job.run_id))

    def _draft(self, finished: Finished) -> Draft | None:
        """The receipt of an execution; None when it is to be given back instead."""
        job, executed = finished.job, finished.executed
        if self._gives_back(finished):
            return None
        make = drafts.finished if self._pause(finished) is None else drafts.attempt_failed
        return make(job, executed, finished.started, finished.ended, self._stamp(job))

    def _gives_back(self, finished: Finished) -> bool:
        error = finished.executed.error
        if finished.executed.status == "cancelled" and finished.job.stop.reason == SHUTDOWN:
            return True
        return error is not None and error.type == "NoAgent"

    def _settle_lease(self, finished: Finished) -> None:
        lease, pending = finished.lease, self.records.pending
        self.active.pop(lease.token, None)
        if self._gives_back(finished):
            pending.release.append(lease)
            if finished.job.stop.reason != SHUTDOWN:
                self._stuck(lease, _NO_AGENT)
            return
        pending.finish.append(lease)
        if (pause := self._pause(finished)) is not None:
            visible = self.around.clock.now().timestamp() + pause
            work = lease.work
            pending.offer.append(Work(work.run_id, work.kind, work.key, work.fingerprint, visible))

    def _pause(self, finished: Finished) -> float | None:
        """Seconds until the call is tried again, or None when this was its last attempt."""
        executed, job = finished.executed, finished.job
        policy = getattr(job.call.spec.options, "retry", None)
        if executed.status != "failed" or not executed.retryable or not isinstance(policy, Retry):
            return None
        if executed.error is not None and policy.forbids(executed.error.type):
            return None
        # The pause is the runner's business and not the body's: chance is allowed here.
        return policy.pause_after(job.attempt, random.random())

    # -- work ------------------------------------------------------------------------------------------------

    def turn(self, slots: int, budget: int | None) -> int:
        """Write what is pending, claim work, advance runs, start executors; returns how many rows were claimed."""
        claimed = 0
        while True:
            left = None if budget is None else budget - claimed
            claim = self._claim(slots - len(self.active), left)
            leases = self.records.apply(claim)
            claimed += len(leases)
            for lease in leases:
                self._serve(lease)
            # Fewer than asked for: nothing more is there, and another transaction would only say so again.
            if not self.records.pending and (claim is None or len(leases) < claim.limit):
                return claimed

    def _claim(self, free: int, left: int | None) -> Claim | None:
        if left is not None and left <= 0:
            return None
        if free > 0:
            return Claim(free if left is None else min(free, left))
        # A run whose timeout fired must move on while all executors are busy.
        limit = _DECISIONS_AT_ONCE if left is None else min(left, _DECISIONS_AT_ONCE)
        return Claim(limit, kinds=_DECIDING)

    def _serve(self, lease: Lease) -> None:
        try:
            _SERVERS.get(lease.work.kind, Dispatcher._serve_call)(self, lease)
        except CannotAdvance as error:
            self._stuck(lease, error)
            self.records.pending.release.append(lease)
        except NotFound:
            self.records.pending.finish.append(lease)  # the run's ref is gone: nothing is left to do
        except (StoreFailure, TemporarilyLocked) as error:
            log.error("%s: %s", lease.work.run_id, error.message)
            self.records.bodies.drop(lease.work.run_id)
            self.records.pending.release.append(lease)
        except HermesError as error:
            self._stuck(lease, CannotAdvance(error.code, error.message, error.hint or ""))
            self.records.pending.release.append(lease)

    def _stuck(self, lease: Lease, error: CannotAdvance) -> None:
        run_id = lease.work.run_id
        log.warning("%s is stuck: %s", run_id, error.reason.splitlines()[0])
        self.records.pending.stuck.append(
            Stuck(
                run_id=run_id,
                kind=error.kind,
                reason=error.reason,
                hint=error.hint,
                key=error.key or lease.work.key,
                code=error.code,
                since=render_time(self.around.clock.now()),
                runner=self.records.runner_id,
            )
        )

    def _advance(self, lease: Lease) -> None:
        if lease.claims > MAX_CLAIMS:
            raise CannotAdvance(
                "poison",
                f"advancing this run has ended its runner's process {MAX_CLAIMS} times",
                "the stacks are in the runner's log; mend the body and start a runner again",
            )
        held = self.records.bodies.current(lease.work.run_id)
        self._settle(held)
        self.records.pending.finish.append(lease)

    def _settle(self, held: Held) -> None:
        """Bring the outside to what the body wants: notes into git, then calls into the queue, or the end."""
        endings.watch_cleanup(self.records, held)
        while held.end is None and (notes := calls.notes(self.records, held)):
            self.records.decide(held, notes)
        for line in held.logs:
            log.info("%s: %s", held.run_id, self.around.redactor.text(line))
        held.logs.clear()
        self._withdraw(held)
        if held.end is not None:
            endings.finish(self.records, held)
            return
        if held.stuck is not None:
            raise CannotAdvance("deadlock", held.stuck, "await a call, or let the body return", code=held.loaded.code)
        offers = (calls.work_of(held, call) for call in held.unoffered.values())
        self.records.pending.offer.extend(work for work in offers if work is not None)
        held.unoffered.clear()
        self.records.index(held)

    def _withdraw(self, held: Held) -> None:
        for key in held.unwithdrawn:
            self.records.pending.withdraw.append((held.run_id, key))
            children.cancel_dropped(self.records, held, key)
            for active in self.active.values():
                if active.job.run_id == held.run_id and active.job.call.key == key:
                    active.job.stop.set("the workflow no longer waits for it")
        held.unwithdrawn.clear()

    def _serve_timer(self, lease: Lease) -> None:
        calls.serve_timer(self.records, lease)

    def _serve_call(self, lease: Lease) -> None:
        held = self.records.bodies.current(lease.work.run_id)
        call = calls.open_call(held, lease)
        if call is None:
            # Answered already, or no longer wanted; the crash that left this row is repaired by removing it.
            self.records.pending.finish.append(lease)
        elif call.kind == "child":
            children.serve(self.records, held, call, lease)
        else:
            calls.promise(self.records, held, call)
            self._execute(lease, held, call)

    def _execute(self, lease: Lease, held: Held, call: Call[Any]) -> None:
        attempt = held.attempts.get(call.key, 0) + 1
        job = Job(held.run_id, call, attempt, self.around)
        self.active[lease.token] = Active(lease, job)
        self._start(lease, job)

    # -- upkeep ----------------------------------------------------------------------------------------------

    def stop_withdrawn(self, answers: dict[str, Any]) -> None:
        """What renewing the leases said: calls that nobody wants any more are stopped, wherever they run."""
        for token, answer in answers.items():
            active = self.active.get(token)
            if active is not None and answer == "withdrawn":
                active.job.stop.set("the workflow no longer waits for it")

    def stop_all(self) -> None:
        for active in self.active.values():
            active.job.stop.set(SHUTDOWN)


_DECIDING: tuple[Kind, ...] = ("workflow", "timer", "child")
_SERVERS: dict[str, Callable[[Dispatcher, Lease], None]] = {
    "workflow": Dispatcher._advance,
    "timer": Dispatcher._serve_timer,
}
_NO_AGENT = CannotAdvance(
    "no-agent",
    "the call needs an agent, and the runner that took it has no agent command",
    "start a runner with --agent-command PROGRAM",
)
