"""The runner's work on one database: results in, decisions into the queue, claimed work to the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ..core import layout
from ..core.calls import Call
from ..errors import HermesError, NotFound, StoreFailure, TemporarilyLocked
from ..facts import refused_line
from ..store.queue_port import Lease, Work
from . import calls, children, endings, intents, probing, timing
from .about import about
from .advance import advance
from .bodies import CannotAdvance, Held, Over, internal, refuse_paused
from .bursts import is_anothers, is_quick, may_follow, put_off
from .jobs import Job, Surroundings
from .notices import Notices
from .poison import MAX_CLAIMS, POISON, is_poison_call, is_suspect, poisoned_call, poisoned_run
from .records import Records, log
from .results import SHUTDOWN, Active, Attempted, Backoff, Finished, Results
from .wanting import Wanting

if TYPE_CHECKING:
    from ..workspace import Workspace
    from .slices import SliceStopped

_UNWANTED = "the workflow no longer waits for it"


class Dispatcher:
    """For one thread at a time: executors hand over what they have through the runner's inbox.

    `active` are the calls that executors have in hand, by lease token; `start` gives one to them.
    `survives` says whether a process that decides a run lives, `wanting` what is claimed.
    """

    def __init__(
        self,
        records: Records,
        around: Surroundings,
        start: Callable[[Lease, Job], None],
        survives: Callable[[Workspace, str], bool] = probing.survives,
        wanting: Wanting | None = None,
    ) -> None:
        self.records = records
        self.around = around
        self.active: dict[str, Active] = {}
        self._results = Results(records, around.clock, self.active)
        self._start = start
        self._survives = survives
        self._wanting = wanting or Wanting()
        self._notices = Notices(records, around)
        self._serving: Sequence[Lease] = ()
        # The runs whose newest receipts were asked for since the leases in `_serving` were claimed.
        self._asked: set[str] = set()
        self._full = False
        self._backoff = Backoff(around.clock)
        # What the disk, or another writer, said the last time: there is work that could not be taken.
        self.refused: HermesError | None = None

    @property
    def workspace_name(self) -> str:
        return str(self.records.workspace.paths.sqlite)

    @property
    def busy(self) -> bool:
        return bool(self.active or self._results.waiting or self._notices.busy)

    @property
    def at_rest(self) -> bool:
        """Whether only others can bring something to do: nothing executes, and nothing is to be tried again."""
        return not (self.busy or self.records.pending or self._full or self._backoff.waits or self.refused)

    @property
    def is_stopping(self) -> bool:
        """Whether something executes that ends when it is told to."""
        return any(active.job.can_be_stopped for active in self.active.values())

    @property
    def has_more(self) -> bool:
        """Whether another turn has something to write, or got as much as it asked for."""
        pending, burst = self.records.pending, self.records.burst
        # In a burst it can wait for a moment.
        owes = burst.is_due or pending.is_urgent if burst.is_open else bool(pending)
        return (owes or self._full) and not self._backoff.waits

    def leases(self) -> list[Lease]:
        """Everything this process holds, for whoever renews it; called from another thread."""
        active = [self.records.burst.known(each.lease) for each in list(self.active.values())]
        return [*active, *self._notices.leases(), *self._serving]

    def said(self) -> dict[str, str]:
        """The last lines of what executes, by run and key; called from another thread."""
        return {shown(each.lease): line for each in list(self.active.values()) if (line := each.job.last.text)}

    def notes(self) -> list[str]:
        """What operators of this database should know; called from another thread."""
        refused = self.refused
        return [refused_line(refused.message)] if refused else []

    def record(self, events: Iterable[Finished | Attempted], *, decide: bool = True) -> None:
        """Commit what executors have handed over; with `decide`, the bodies held here go on with it at once."""
        before = len(self.records.pending.offer)
        self.records.contested.clear()
        self._results.record(events)
        if decide:
            self._decide_at_once(self.records.pending.offer[before:])
        self._notices.settle()

    def goes_on(self, finished: Finished) -> bool:
        """Whether a result may be followed by another step without the queue: it is all that executes here."""
        alone = len(self.active) == 1 and not self.records.pending.is_urgent
        return alone and self.records.workspace.registry.bursts and is_quick(finished)

    def go_on(self, finished: Finished) -> tuple[Lease, Job] | None:
        """Record such a result; the step to be executed next, at once, if that is all there is to do."""
        self.record([finished])
        held = self.records.bodies.get(finished.job.run_id)
        if self.active or held is None or len(held.live.outstanding) != 1 or self._wanting.limits("step"):
            return None
        (call,) = held.live.outstanding.values()
        if not isinstance(call, Call) or not may_follow(call.spec.options):
            return None
        lease = self.records.burst.goes_on(finished.lease, call.key, self.records.pending)
        return (lease, self._begun(lease, held, call)) if lease else None

    def give_up(self, run_id: str, stopped: SliceStopped) -> None:
        """In place of the thread that recorded a result, and was left behind in the slice that came after."""
        self._tried(Work(run_id, "workflow"), lambda: self.records.bodies.give_up(run_id, stopped))

    # -- work ------------------------------------------------------------------------------------------------

    def turn(self, free: int, budget: int | None) -> int:
        """Write what is pending, claim work, advance runs, start executors; returns how many rows were claimed.

        `free` are the executors it may use. One transaction: what comes meanwhile is looked at between two turns.
        """
        if self._backoff.waits:
            return 0
        self._full = False
        try:
            leases = self._claimed(free, budget)
            claimed = len(leases)
            self._serve_all(self._one_suspect(leases))
        except (StoreFailure, TemporarilyLocked) as error:
            self._refuse(error)
            return 0
        self.refused = None
        if claimed:
            self._backoff.succeeded()
        return claimed

    def next_visible(self) -> float | None:
        """When the next row's time comes; None as well while the queue cannot be asked, which another turn tries."""
        if self._backoff.waits:
            return None
        try:
            return self.records.workspace.queue.next_visible()
        except (StoreFailure, TemporarilyLocked) as error:
            # A database that is gone is made anew even to be read, and a full disk does not take it.
            self._refuse(error)
            return None

    def _refuse(self, error: HermesError) -> None:
        log.error("%s: %s", self.workspace_name, error.message)
        self.refused = error
        self._backoff.failed()

    def _claimed(self, free: int, left: int | None) -> Sequence[Lease]:
        claim = self._wanting.claim(free, left, notices=self._notices.has_room)
        leases = self.records.apply(claim)
        # Fewer than asked for: nothing more is there, and another transaction would only say so again. Notices take no
        # executor: those that stood before calls have left it to them.
        told = any(lease.work.kind == "notify" for lease in leases)
        self._full = claim is not None and len(leases) >= (claim.limit if told else claim.most)
        return leases

    def _one_suspect(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        """All of them, or the one that may have ended the process of its last claimer, alone.

        So that the others, which were only claimed together with it, do not come under suspicion.
        """
        suspect = next((lease for lease in leases if is_suspect(lease)), None)
        if suspect is None or len(leases) == 1:
            return leases
        self.records.pending.release.extend(lease for lease in leases if lease is not suspect)
        self.records.apply(None)
        return [suspect]

    def _serve_all(self, leases: Sequence[Lease]) -> None:
        self._serving = leases
        self._asked.clear()
        try:
            for place, lease in enumerate(leases):
                try:
                    self._serve(lease)
                except (StoreFailure, TemporarilyLocked):
                    # What is left is for another time, or for a runner whose disk takes it.
                    self.records.bodies.drop(lease.work.run_id)
                    self.records.pending.release.extend(leases[place:])
                    raise
        finally:
            self._serving = ()

    def _serve(self, lease: Lease) -> None:
        serve = _SERVERS.get(lease.work.kind, Dispatcher._serve_call)
        outcome = self._tried(lease.work, lambda: serve(self, lease))
        if outcome != "served":
            (self.records.pending.release if outcome == "kept" else self.records.pending.finish).append(lease)

    def _tried(self, work: Work, serve: Callable[[], None]) -> Literal["served", "kept", "done with"]:
        """Do what a row asks for, or say what becomes of the row when that cannot be done."""
        with about(work.run_id, work.key):
            return self._outcome(work, serve)

    def _outcome(self, work: Work, serve: Callable[[], None]) -> Literal["served", "kept", "done with"]:
        run_id = work.run_id
        try:
            serve()
        except (StoreFailure, TemporarilyLocked):
            raise
        except Over as over:
            self._over(over)
        except CannotAdvance as error:
            self.records.stuck(run_id, error, work.key)
            # A poisoned row starts to count anew when somebody mends the body.
            return "done with" if error.kind == POISON else "kept"
        except NotFound:
            pass  # the run's ref is gone: nothing is left to do
        except HermesError as error:
            self.records.stuck(run_id, CannotAdvance(error.code, error.message, error.hint or ""), work.key)
            return "kept"
        except Exception as error:
            # A fault of ours, or of code of the author's that we call: it must not take the other runs along.
            log.exception("it could not be served")
            self.records.bodies.drop(run_id)
            self.records.stuck(run_id, internal(error), work.key)
            return "kept"
        else:
            return "served"
        return "done with"

    def _decide_at_once(self, offered: Sequence[Work]) -> None:
        """Advance the runs whose bodies are here, instead of offering their rows to be claimed: a transaction less.

        A process that dies of this leaves the rows of the recorded calls; see `_serve_call`.
        """
        pending = self.records.pending
        for work in offered:
            # Who was second leaves the run to its row, since the first one may be in a burst.
            elsewhere = work.run_id in self.records.contested
            if work.kind != "workflow" or elsewhere or self.records.bodies.get(work.run_id) is None:
                continue
            try:
                outcome = self._tried(work, lambda work=work: advance(self.records, work.run_id, self._stop))  # type: ignore[misc]
            except (StoreFailure, TemporarilyLocked) as error:
                self.records.bodies.drop(work.run_id)
                self._refuse(error)
                return
            if outcome != "kept":
                pending.offer.remove(work)

    def _over(self, over: Over) -> None:
        """The run ended elsewhere, or its runner died before it had cleared up."""
        run_id = over.summary.run_id
        self._stop(run_id)
        endings.clear_up(self.records, self.records.index_from_receipts(run_id))

    def _advance(self, lease: Lease) -> None:
        run_id = lease.work.run_id
        if lease.claims > MAX_CLAIMS and not self._survives(self.records.workspace, run_id):
            raise poisoned_run(self.records, run_id)
        if lease.claims > MAX_CLAIMS:
            log.info("its runners' processes were ended by something else")
            self.records.pending.offer.append(Work(run_id, "workflow"))
        elif is_anothers(self.records, run_id):
            self.records.pending.offer.append(put_off(self.records, lease.work))
        else:
            advance(self.records, run_id, self._stop)
        self.records.pending.finish.append(lease)

    def _serve_timer(self, lease: Lease) -> None:
        timing.serve(self.records, lease)

    def _serve_notice(self, lease: Lease) -> None:
        self._notices.serve(lease)

    def _serve_call(self, lease: Lease) -> None:
        pending, work = self.records.pending, lease.work
        if lease.claims > 1:
            # Its holder has died, or was suspended for longer than its lease: nothing that it recorded may be missed.
            self.records.workspace.ledger.take_over(work.run_id)
        if lease.claims > 1 and self.records.is_answered(work):
            # Its holder died when it was recorded already, perhaps of the slice that came after. It is the workflow's
            # row that counts such deaths.
            pending.finish.append(lease)
            pending.offer.append(Work(work.run_id, "workflow"))
            return
        held = self._current(work.run_id)
        refuse_paused(held)
        call = calls.open_call(held, lease)
        if call is None:
            # Answered already, or no longer wanted; the crash that left this row is repaired by removing it.
            pending.finish.append(lease)
            if calls.changed_request(held, lease):
                pending.offer.append(replace(work, fingerprint=held.live.outstanding[work.key].fingerprint))
            elif held.end is not None or held.unoffered:
                # Nobody else offers what a body that was rebuilt for this row waits for, should that be lost as well.
                pending.offer.append(Work(work.run_id, "workflow"))
        elif is_poison_call(lease):
            # Its losses are told by the mark; whoever lifts that finds a row that counts anew.
            self.records.stuck(work.run_id, poisoned_call(held, call, lease), work.key)
            pending.finish.append(lease)
            pending.offer.append(work)
        elif (active := self._in_hand(held, call)) is not None:
            # Its lease ran out, and whoever had it then has lost it too: the same execution goes on under the new one.
            self.active[lease.token] = replace(self.active.pop(active.lease.token), lease=lease)
            pending.release.append(active.lease)
        elif call.kind == "child":
            children.serve(self.records, held, call, lease)
        elif intents.promise(self.records, held, call):
            self._start(lease, self._begun(lease, held, call))
        else:
            pending.release.append(lease)

    def _current(self, run_id: str) -> Held:
        """The run's body; what others wrote is asked for once for all calls that were claimed together."""
        held = self.records.bodies.get(run_id)
        if held is None or run_id not in self._asked or held.pending or held.account.ended:
            held = self.records.bodies.current(run_id)
            self._asked.add(run_id)
        return held

    def _in_hand(self, held: Held, call: Call[Any]) -> Active | None:
        """What executes for this very call here, and is still wanted."""
        for active in self.active.values():
            job = active.job
            # Keys first, since all that executes is looked through for each call that is claimed.
            same = job.call.key == call.key and job.run_id == held.run_id and job.call.fingerprint == call.fingerprint
            if same and not job.stop.is_set():
                return active
        return None

    def _begun(self, lease: Lease, held: Held, call: Call[Any]) -> Job:
        made = held.attempts.get(call.key, 0)
        notes = (held.live.noted.get(layout.attempt(call.key, number)) for number in range(1, made + 1))
        earlier = tuple(note for note in notes if note is not None and note.status == "failed")
        # What bodies have named by now, of this run and of others, and what this run hides by its value.
        redactor = self.records.workspace.redactor.extended(held.live.hidden)
        around = self.around if redactor is self.around.redactor else replace(self.around, redactor=redactor)
        loaded = held.loaded
        job = Job(held.run_id, call, made + 1, loaded.ref, loaded.code, around, earlier)
        log.debug("%s started, attempt %d", call.kind, job.attempt)
        self.active[lease.token] = Active(lease, job)
        return job

    # -- stopping --------------------------------------------------------------------------------------------

    def _stop(self, run_id: str, key: str | None = None) -> None:
        for active in self.active.values():
            if active.job.run_id == run_id and key in (None, active.job.call.key):
                active.job.stop.set(_UNWANTED)

    def stop_withdrawn(self, answers: Mapping[str, Any]) -> None:
        """What renewing the leases said: calls that nobody wants any more are stopped, wherever they run."""
        for token, answer in answers.items():
            active = self.active.get(token)
            if active is not None and answer == "withdrawn":
                active.job.stop.set(_UNWANTED)

    def stop_all(self) -> None:
        for active in self.active.values():
            active.job.stop.set(SHUTDOWN)
        self._notices.stop_all()

    def give_back(self) -> None:
        """Release every lease, so that nobody has to wait for it to expire."""
        self.stop_all()
        # The keeper's thread may be looking at what is active.
        for active in list(self.active.values()):
            self.records.pending.release.append(active.lease)
        self.active.clear()
        self._notices.give_back()
        self.records.apply(None)


def shown(lease: Lease) -> str:
    """How a heartbeat names what its runner has in hand."""
    return f"{lease.work.run_id} {lease.work.key}".strip()


_SERVERS: dict[str, Callable[[Dispatcher, Lease], None]] = {
    "workflow": Dispatcher._advance,
    "timer": Dispatcher._serve_timer,
    "notify": Dispatcher._serve_notice,
}
