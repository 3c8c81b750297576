"""What executors have handed over: kept until the ledger has taken it, then the leases are settled."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from ..authoring.bash import BashOptions
from ..authoring.step import Step
from ..core.calls import TIMEOUT
from ..core.clock import Clock
from ..core.receipts import Draft, Failure
from ..core.retry import Retry
from ..errors import BashFailed, StoreFailure, TemporarilyLocked
from ..store.queue_port import Lease
from . import drafts
from .about import about
from .agents import AgentAttempt
from .bodies import CannotAdvance
from .jobs import Executed, Job
from .records import Records, log

SHUTDOWN = "the runner ends"
# What a mark says it is true of: runners that have no agent of the name after it.
AGENT = "agent-"
# After a write that failed, in seconds: the first pause, and the longest.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class Finished:
    """An executed job that waits for its receipt."""

    job: Job
    lease: Lease
    executed: Executed
    started: datetime
    ended: datetime

    @property
    def said(self) -> str:
        """How it ended, in a line."""
        error = f": {self.executed.error.type}" if self.executed.error else ""
        return f"{self.executed.status} after {(self.ended - self.started).total_seconds():.3f} s{error}"

    @property
    def given_back(self) -> bool:
        """Somebody else will execute it: this runner ends, has no agent, or one that cannot be started."""
        error = self.executed.error
        if self.executed.status == "cancelled" and self.job.stop.reason == SHUTDOWN:
            return True
        return error is not None and self.job.call.kind == "agent" and error.type in ("NoAgent", "NotStarted")


@dataclass(frozen=True)
class Attempted:
    """An agent's refused answer; the agent is being asked again."""

    job: Job
    attempt: AgentAttempt

    @property
    def ended(self) -> datetime:
        return self.attempt.finished_at


@dataclass(frozen=True)
class Active:
    """A call that an executor has in hand."""

    lease: Lease
    job: Job


class Backoff:
    """When to write again after the disk, or another writer, refused."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._until = 0.0

    @property
    def waits(self) -> bool:
        return self._clock.elapsed() < self._until

    def failed(self) -> None:
        self._seconds = min(max(2 * self._seconds, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._until = self._clock.elapsed() + self._seconds

    def succeeded(self) -> None:
        self._seconds = self._until = 0.0


class Results:
    """Nothing handed over is acknowledged, and nothing is lost, before it stands in the ledger."""

    def __init__(self, records: Records, clock: Clock, active: dict[str, Active]) -> None:
        self._records = records
        self._clock = clock
        self._active = active
        self._backoff = Backoff(clock)
        self._waiting: list[Finished | Attempted] = []

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def record(self, events: Iterable[Finished | Attempted]) -> None:
        """Commit what is ready with one barrier for all; what the disk does not take now stays."""
        self._waiting += events
        if not self._waiting or self._backoff.waits:
            return
        # Delivery is in the order of the ledger, which within one batch is the order of time.
        batch = sorted(self._waiting, key=lambda event: event.ended)
        try:
            self._records.append_results(self._drafts(batch))
        except (StoreFailure, TemporarilyLocked) as error:
            log.error("%d results cannot be recorded yet: %s", len(batch), error.message)
            self._backoff.failed()
            return
        self._backoff.succeeded()
        self._waiting = []
        for event in batch:
            if isinstance(event, Finished):
                self._settle(event)

    def _drafts(self, batch: Iterable[Finished | Attempted]) -> dict[str, list[Draft]]:
        made: dict[str, dict[str, Draft]] = {}
        for event in batch:
            draft = self._draft(event)
            if draft is not None:
                # A call that was executed twice has one path; the first is first here too.
                made.setdefault(event.job.run_id, {}).setdefault(draft.path, draft)
        return {run_id: list(each.values()) for run_id, each in made.items()}

    def _draft(self, event: Finished | Attempted) -> Draft | None:
        """The receipt of an execution; None when it is to be given back instead."""
        stamp = drafts.Stamp(self._records.runner_id, event.job.code)
        if isinstance(event, Attempted):
            return drafts.agent_attempt(event.job, event.attempt, stamp)
        if event.given_back:
            return None
        if pause_after(event) is None:
            return drafts.finished(event.job, event.executed, event.started, event.ended, stamp)
        failed = replace(event.executed, status="failed", error=failure_to_mend(event))
        return drafts.attempt_failed(event.job, failed, event.started, event.ended, stamp)

    def _settle(self, finished: Finished) -> None:
        lease, pending = self._lease_of(finished), self._records.pending
        self._active.pop(lease.token, None)
        with about(lease.work.run_id, lease.work.key):
            log.debug("%s %s", lease.work.kind, finished.said)
        if finished.given_back:
            pending.release.append(lease)
            if finished.job.stop.reason != SHUTDOWN:
                self._records.stuck(lease.work.run_id, _no_agent(finished), lease.work.key)
            return
        pending.finish.append(lease)
        if (pause := pause_after(finished)) is not None:
            visible = self._clock.now().timestamp() + pause
            work = lease.work
            pending.offer.append(replace(work, visible_at=visible))

    def _lease_of(self, finished: Finished) -> Lease:
        """The lease it was started under, or the one that has taken its place."""
        if finished.lease.token in self._active:
            return finished.lease
        return next((each.lease for each in self._active.values() if each.job is finished.job), finished.lease)


def pause_after(finished: Finished) -> float | None:
    """Seconds until the call is tried again, or None when this was its last attempt."""
    executed, options = finished.executed, finished.job.call.spec.options
    policy = getattr(options, "retry", None)
    failure = failure_to_mend(finished)
    if failure is None or not executed.retryable or not isinstance(policy, Retry):
        return None
    if isinstance(options, Step) and options.at_most_once:
        return None
    # A command or an agent that was killed at its deadline is what a step calls a TimeoutError.
    if policy.forbids(TimeoutError.__name__ if failure.type == TIMEOUT else failure.type):
        return None
    # The pause is the runner's business and not the body's: chance is allowed here.
    return policy.pause_after(executed.attempt or finished.job.attempt, random.random())


def failure_to_mend(finished: Finished) -> Failure | None:
    """What another attempt may mend: a failure, or under `check=True` an exit status that the body will not take."""
    executed, options = finished.executed, finished.job.call.spec.options
    if executed.status == "failed":
        return executed.error or Failure(type="Failed", message="failed")
    if executed.status != "completed" or not isinstance(options, BashOptions) or not options.check:
        return None
    code = executed.output["exit_code"] if isinstance(executed.output, dict) else 0
    return None if code == 0 else Failure(type=BashFailed.__name__, message=f"exited {code!r}")


def _no_agent(finished: Finished) -> CannotAdvance:
    name, error = str(finished.job.call.request["name"]), finished.executed.error
    if error is not None and error.type == "NotStarted":
        # A mistyped program is the operator's fault, and no reason to end a run that cost money so far.
        return CannotAdvance(
            "agent-not-started",
            f"the agent {name!r} was not asked: {error.message}",
            "mend the runner's --agent-command, --agent or the registry's agents, and start it again",
        )
    return CannotAdvance(
        "no-agent",
        f"the call asks the agent {name!r}, and the runner that took it has nobody of this name",
        f"name it in the registry's agents, or start a runner with --agent {name}=PRESET or --agent-command PROGRAM",
        code=AGENT + name,
    )
