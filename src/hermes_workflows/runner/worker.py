"""The runner: one foreground process that moves the runs of its databases until told otherwise."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..errors import HermesError
from ..facts import busy_line
from ..settings import Agents, AgentSettings
from ..starting import check_id
from ..store.liveness import Process
from ..store.queue_port import Kind, Lease
from . import probing
from .dispatch import Dispatcher
from .executing import Event, Executing
from .jobs import Job, Surroundings
from .keeper import Keeper, Kept, Loop
from .lanes import Lanes
from .records import Records, log
from .results import Attempted, Finished
from .slices import Decider, SliceLimits
from .supervisor import Supervisor
from .upkeep import Upkeep
from .wanting import Wanting

if TYPE_CHECKING:
    from ..workspace import Workspace

# How long the loop sleeps at most when there is nothing to do, in seconds: the delay until it sees what other
# processes wrote. Looking costs two `stat`s, and a pragma when something was written.
POLL_SECONDS = 0.02
# The same of a runner that has had nothing to do for a while: half of its cost is to be woken.
RESTING_SECONDS = 0.06
_RESTING_AFTER = 1.0
# Leases that have expired, marks that no longer hold, and receipts that nobody queued, change nothing that a look
# at the database could see.
SWEEP_SECONDS = 1.0
# A runner does not leave while work is about to become visible, in seconds: a little more than the precedence that a
# run's last runner has, which may be the one that has just died.
SOON_SECONDS = 0.25
# After the first signal executing calls get this long, in seconds, before they are stopped and given back.
DRAIN_SECONDS = 10.0
# What was stopped is killed within this time, in seconds.
LEAVE_SECONDS = 8.0


@dataclass(frozen=True)
class RunnerOptions:
    """`max_commands` counts claimed rows; `idle_exit_after` in seconds, None to run for ever; `once`: one row.

    `only` are the kinds of calls it executes, all when empty. `drain_seconds` is how long calls may go on after the
    first signal, before they are stopped and given back. `agents` go before those of the registry, `agent_fallback`
    before the registry's `*`. `process` is who executes at-most-once steps, this process when None; `survives` says
    whether a process that decides a run lives.
    """

    worker_id: str
    lease_seconds: float = 30.0
    max_commands: int | None = None
    idle_exit_after: float | None = None
    concurrency: int = 4
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    agent_fallback: AgentSettings | None = None
    once: bool = False
    only: tuple[Kind, ...] = ()
    drain_seconds: float = DRAIN_SECONDS
    slices: SliceLimits = field(default_factory=SliceLimits)
    process: Process | None = None
    survives: Callable[[Workspace, str], bool] = probing.survives
    supervisor: Supervisor = field(default_factory=Supervisor)


Reason = Literal["idle", "max-commands", "once", "stopped", "drained", "nothing-queued"]


@dataclass(frozen=True)
class RunnerReport:
    """Why the runner ended and how many rows it claimed."""

    worker_id: str
    commands: int
    reason: Reason


class Runner:
    """Works until it is idle for long enough, has claimed enough, or `request_stop` is called (from any thread)."""

    def __init__(self, workspaces: Sequence[Workspace], options: RunnerOptions) -> None:
        self._workspaces = workspaces
        self._options = options
        for workspace in workspaces:
            check_id("runner's name", options.worker_id, workspace.redactor)
        self._decider = Decider(options.slices)
        self._executing = Executing(max(options.concurrency, 1), self._decider, lambda: self._budget() is None)
        self._dispatchers = [self._dispatcher(each) for each in workspaces]
        self._upkeep = [Upkeep(each.records, each.around.agents) for each in self._dispatchers]
        self._lanes = Lanes(list(zip(self._dispatchers, self._upkeep, strict=True)))
        self._clock = workspaces[0].clock
        self._claimed = 0
        self._rounds = 0
        self._stops = 0
        self._draining = False
        self._stop_by: float | None = None
        self._leave_by: float | None = None
        self._next_visible: float | None = None
        self._waited = 0
        self._stirred = False

    def request_stop(self) -> None:
        """First: take nothing new, let what executes finish for a while. Again: stop everything now."""
        self._stops += 1
        self._executing.wake()

    def request_drain(self) -> None:
        """Take nothing new, and end when everything that executes has finished, however long that takes."""
        if not self._draining:
            self._draining = True
            log.info("draining: what executes is finished, and nothing new is taken")
            self._executing.wake()

    def run(self) -> RunnerReport:
        keeper = self._keeper()
        keeper.start()
        self._options.supervisor.ready()
        try:
            reason = self._loop()
        finally:
            self._options.supervisor.stopping()
            try:
                self._give_back()
            finally:
                self._close(keeper)
        return RunnerReport(self._options.worker_id, self._claimed, reason)

    def _close(self, keeper: Keeper) -> None:
        keeper.close()
        for each in self._upkeep:
            each.polling.close()
        for upkeep in self._upkeep:
            upkeep.close()
        self._executing.close()
        for dispatcher in self._dispatchers:
            dispatcher.records.bodies.close()
            # Who comes after the runner may look with plain git; what the disk refuses now is kept where it is durable.
            with contextlib.suppress(HermesError):
                dispatcher.records.workspace.ledger.land()
        self._decider.close()

    # -- the loop --------------------------------------------------------------------------------------------

    def _loop(self) -> Reason:
        idle_since = self._clock.elapsed()
        swept = idle_since - SWEEP_SECONDS
        again = True
        while True:
            self._rounds += 1
            now = self._clock.elapsed()
            sweep = now - swept >= SWEEP_SECONDS
            rested = not (again or sweep) and self._rest(now, now - idle_since, SWEEP_SECONDS - (now - swept))
            events = self._executing.take(wait=0.0 if again or sweep or rested else POLL_SECONDS)
            if not (events or sweep) and self._is_left_alone:
                again = False
                continue
            with self._executing.alone:
                progress = self._record(events)
                self._executing.check()
                if (reason := self._over()) is not None:
                    return reason
                if sweep:
                    swept = self._clock.elapsed()
                if progress or sweep or self._owes or self._due() or self._changed():
                    self._stirred = False
                    progress = self._turn(sweep) or progress
                again = self._owes
                if progress or again or self._busy() or self._asking():
                    idle_since = self._clock.elapsed()
                elif (reason := self._idle(self._clock.elapsed() - idle_since)) is not None:
                    return reason

    def _due(self, within: float = 0.0) -> bool:
        """Whether a row's time has come: a timer, a retry, a run that another runner had to itself for a moment."""
        return self._next_visible is not None and self._clock.now().timestamp() + within >= self._next_visible

    def _idle(self, seconds: float) -> Reason | None:
        if self._options.once:
            return "nothing-queued"
        limit = self._options.idle_exit_after
        leaving = limit is not None and seconds >= limit and not self._more_soon()
        if leaving and (error := next((each.refused for each in self._dispatchers if each.refused), None)):
            raise error  # not idle: there is work that the disk does not take
        for upkeep in self._upkeep:
            upkeep.seal(now=leaving)
            upkeep.maintain(seconds)
        return "idle" if leaving else None

    def _more_soon(self) -> bool:
        """Whether to stay a moment for work that is about to become visible; counted, since a clock may stand still."""
        self._waited = self._waited + 1 if self._due(within=SOON_SECONDS) else 0
        return 0 < self._waited <= 2 * SOON_SECONDS / POLL_SECONDS

    def _over(self) -> Reason | None:
        if self._stops:
            return "stopped" if self._stopped() else None
        if self._draining:
            return None if self._busy() else "drained"
        if self._budget() == 0 and not self._busy():
            return "once" if self._options.once else "max-commands"
        return None

    def _stopped(self) -> bool:
        now = self._clock.elapsed()
        if self._stop_by is None:
            self._stop_by = now + self._options.drain_seconds
            log.info("stopping; what executes has %g s, and a second signal ends it", self._options.drain_seconds)
        if self._stops > 1 or now >= self._stop_by:
            self._leave_by = now + LEAVE_SECONDS if self._leave_by is None else self._leave_by
            for dispatcher in self._dispatchers:
                dispatcher.stop_all()
            # What remains then is steps that Python cannot stop: they are left.
            return now >= self._leave_by or not any(dispatcher.is_stopping for dispatcher in self._dispatchers)
        return not self._busy()

    @property
    def _owes(self) -> bool:
        return any(dispatcher.has_more for dispatcher in self._dispatchers)

    @property
    def _is_left_alone(self) -> bool:
        """Whether a thread is in a burst that the queue need not be told of yet: to ask for its place would end it."""
        if not self._executing.is_in_a_burst or self._stops or self._draining:
            return False
        bursts = [dispatcher.records.burst for dispatcher in self._dispatchers]
        return any(burst.is_open for burst in bursts) and not any(burst.is_due for burst in bursts)

    def _busy(self) -> bool:
        return any(dispatcher.busy for dispatcher in self._dispatchers)

    def _asking(self) -> bool:
        """Whether a forge is being asked for answers: a runner that waits for them is not idle."""
        return any(upkeep.polling.busy for upkeep in self._upkeep)

    def _budget(self) -> int | None:
        """Rows that may still be claimed; None without a limit."""
        if self._stops or self._draining:
            return 0
        limit = 1 if self._options.once else self._options.max_commands
        return None if limit is None else max(limit - self._claimed, 0)

    def _rest(self, now: float, idle: float, sweep: float) -> bool:
        """Until the next sweep, do nothing but look for changes, when nothing waits; False when something does.

        `idle`: for how long nothing has been done; `sweep`: how long it is until the next one.
        """
        limit = self._options.idle_exit_after
        rest = sweep if limit is None else min(sweep, limit - idle)
        too_early = idle < _RESTING_AFTER or rest <= RESTING_SECONDS or self._stops or self._draining
        if too_early or not all(each.at_rest for each in self._dispatchers):
            return False
        while True:
            # Not with the inbox: that costs half as much again, and only a wish to end could come.
            time.sleep(RESTING_SECONDS)
            if self._due() or self._changed() or not self._executing.is_quiet or self._clock.elapsed() >= now + rest:
                return True

    def _record(self, events: Sequence[Event]) -> bool:
        """Record it; all that is ready now shares one commit barrier."""
        handed: dict[Dispatcher, list[Finished | Attempted]] = {}
        for dispatcher, event in events:
            handed.setdefault(dispatcher, []).append(event)
        decide = self._budget() != 0
        for dispatcher in self._dispatchers:
            dispatcher.record(handed.get(dispatcher, ()), decide=decide)
        return bool(events)

    def _turn(self, sweep: bool) -> bool:
        """One look at each database; True when there was something to do."""
        progress = False
        for dispatcher, upkeep, free in self._lanes.shares(self._options.concurrency):
            if sweep and not self._stops:
                upkeep.sweep()
                upkeep.maintain(0.0)
            claimed = dispatcher.turn(free, self._budget())
            self._claimed += claimed
            progress = progress or claimed > 0
        times = [each.next_visible() for each in self._dispatchers] if not progress else []
        self._next_visible = min((time for time in times if time is not None), default=None)
        return progress

    def _changed(self) -> bool:
        """Whether others have written since the last turn."""
        for workspace, kept in zip(self._workspaces, self._kept, strict=True):
            if workspace.queue.changed():
                self._stirred = True
                kept.withdrawn.set()
        return self._stirred

    def _give_back(self) -> None:
        """Whatever ended the loop: what is ready is recorded, and leases go back."""
        try:
            with self._executing.alone:
                self._executing.end_bursts()
                self._record(self._executing.take(wait=0.0))
                for dispatcher in self._dispatchers:
                    dispatcher.give_back()
        except HermesError as error:
            log.warning("leases could not be given back: %s", error.message)

    # -- parts -----------------------------------------------------------------------------------------------

    def _dispatcher(self, workspace: Workspace) -> Dispatcher:
        around = Surroundings(
            root=workspace.root,
            environment=workspace.environment,
            redactor=workspace.redactor,
            clock=workspace.clock,
            agents=self._agents(workspace),
            recorded=lambda run_id: workspace.ledger.read(workspace.resolve(run_id))[1],
            rules=workspace.registry.environment,
        )
        records = Records(workspace, self._options.worker_id, self._decider, self._options.process)

        def start(lease: Lease, job: Job) -> None:
            self._executing.start(dispatcher, lease, job)

        wanting = Wanting(self._options.only, workspace.registry.limits)
        dispatcher = Dispatcher(records, around, start, self._options.survives, wanting)
        return dispatcher

    def _agents(self, workspace: Workspace) -> Agents:
        options = self._options
        return Agents(options.agents, workspace.registry.agents, options.agent_fallback)

    def _keeper(self) -> Keeper:
        self._kept = [
            Kept(
                database=str(workspace.paths.sqlite),
                renew=workspace.queue.renew,
                heartbeat=workspace.queue.heartbeat,
                goodbye=workspace.queue.goodbye,
                leases=dispatcher.leases,
                answers=dispatcher.stop_withdrawn,
                said=dispatcher.said,
                notes=dispatcher.notes,
                agents=dispatcher.around.agents.names,
                runners=workspace.queue.runners,
            )
            for workspace, dispatcher in zip(self._workspaces, self._dispatchers, strict=True)
        ]
        options = self._options
        return Keeper(
            options.worker_id,
            self._clock,
            options.lease_seconds,
            options.concurrency,
            options.only,
            self._kept,
            Loop(
                self._notes,
                lambda: self._rounds,
                lambda: self._draining or self._stops > 0,
                self.request_drain,
                options.supervisor.alive,
            ),
        )

    def _notes(self) -> list[str]:
        """What operators should know beside the calls that are executing."""
        busy = self._decider.busy
        behind = sum(thread.is_alive() for each in self._dispatchers for thread in each.around.left_behind)
        notes = [busy_line(busy.run_id, busy.since)] if busy else []
        return notes + ([f"$left-behind {behind} steps run on after their deadline"] if behind else [])
