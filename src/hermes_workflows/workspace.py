"""The workspace: what the command line, a web page, a plugin and the runner ask and tell one database.

Every write goes the same way: into the ledger first, then one transaction that refreshes the run's row in the
index and offers its continuation. A process that dies in between is repaired by whoever looks next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from . import finding, verifying
from .core import layout
from .core.artifacts import Kept, artifacts_of, find_artifact
from .core.clock import Clock
from .core.differences import first_difference
from .core.encoding import Plain
from .core.names import check_run_id
from .core.plain import command_line
from .core.receipts import Author, ControlReceipt, Provenance, RunStarted, draft
from .core.states import OperationalState
from .core.summary import RunSummary
from .errors import Conflict, IntegrityError, InvalidInput, NewerSchema, NotFound
from .facts import Observed, observed_in, state_of
from .loader import LoadedWorkflow, Loader
from .recorded import Recorded
from .registry import DatabasePaths, Registry
from .review.answer import Answer, Review, answer, find_review
from .review.controls import Control, Verb, request
from .review.resolving import Resolution, resolve
from .review.signals import Sent, Signal, send
from .starting import (
    Start,
    check_deadline,
    check_id,
    new_run_id,
    recorded_names,
    secrets_named,
    source_files,
    start_receipt,
)
from .store import index, peek
from .store.index import IndexQueue
from .store.maintenance import Housekeeper, Maintained
from .store.ports import Adopted, Appended, Entry, Ledger, Problem
from .store.project import commit_of
from .store.queue_port import Change, ReviewRow, Work
from .store.wanted import EVERY, Wanted


@dataclass(frozen=True)
class Surroundings:
    """What the world lends a workspace, given by the caller: a clock, the environment, and help in reading runs."""

    clock: Clock
    environment: Mapping[str, str]
    share: index.Share = index.alone


class Workspace(Recorded):
    """One database of a registry: its ledger, its queue and the code of its workflows. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        paths: DatabasePaths,
        ledger: Ledger,
        queue: IndexQueue,
        surroundings: Surroundings,
        loader: Loader | None = None,
    ) -> None:
        super().__init__(registry, paths, ledger, surroundings.clock, surroundings.environment, loader)
        self.queue = queue
        self._share = surroundings.share

    def without_secrets(self, by: Provenance) -> Provenance:
        clean = self.redactor.text
        message = None if by.message_id is None else clean(by.message_id)
        origin = None if by.origin is None else {name: clean(value) for name, value in by.origin.items()}
        cleaned = {"by": clean(by.by), "channel": clean(by.channel), "message_id": message, "origin": origin}
        return by.model_copy(update=cleaned)

    # -- runs ------------------------------------------------------------------------------------------------

    def start(
        self,
        ref: str,
        given: Plain = None,
        *,
        run_id: str | None = None,
        start: Path | None = None,
        deadline: datetime | None = None,
    ) -> RunSummary:
        """Record the start of a run and queue it; an id that exists with the same input shows its state.

        `ref` is an alias, `module:function` or a file, seen from the folder `start`. A run that has not ended at its
        `deadline` (that of its alias when left out) is cancelled. Raises NotFound, CannotLoad, InvalidInput that names
        the field or a deadline that lies behind, and Conflict for an id that exists with another input.
        """
        loaded = self.loader.load(ref, start)
        self._learn(secrets_named(loaded))
        now = self.clock.now()
        deadline = deadline or self._deadline_of(ref, now)
        started = self.started(loaded, given, deadline=deadline)
        name = check_run_id(new_run_id(loaded.definition.name, self.clock.now()) if run_id is None else run_id)
        check_id("run id", name, self.redactor)
        if self.ledger.head(name) is not None:
            return self._same_start(name, started)
        check_deadline(deadline, now)
        try:
            self.begin(name, loaded, started)
        except Conflict:
            # Somebody was faster; an id that differs in case only is no state to show.
            if self.ledger.head(name) is None:
                raise
            return self._same_start(name, started)
        return self.summary(name)

    def started(
        self,
        loaded: LoadedWorkflow,
        given: Plain,
        parent: Mapping[str, str] | None = None,
        deadline: datetime | None = None,
    ) -> RunStarted:
        """The receipt that a run of `loaded` begins with. Raises InvalidInput for what does not fit its input type."""
        start = Start(self.clock.now(), self.ledger.home, parent, deadline, commit_of(self.root))
        return start_receipt(loaded, given, start, self.redactor)

    def begin(
        self, run_id: str, loaded: LoadedWorkflow, started: RunStarted, adopted: Adopted | None = None
    ) -> Appended:
        """Put a run into the ledger, with what it adopts from another one, and its first work into the queue.

        Raises Conflict when the id exists.
        """
        check_id("run id", run_id, self.redactor)
        if self.queue.indexed(run_id) is not None:
            # Somebody may have deleted its ref: the run comes back, and keeps its id.
            self.went_on(run_id)
        files = source_files(loaded, self.redactor)
        entry = Entry(run_id, (draft(started, Author("workflow"), self.limits),), files=files)
        moment = started.execution.started_at or self.clock.now()
        appended = self.ledger.create(entry, moment.strftime("%Y-%m-%d"), adopted)
        self.went_on(run_id)
        return appended

    def went_on(self, run_id: str) -> None:
        """The ledger has a new receipt of this run: refresh its row, which offers its continuation."""
        index.refresh(self.ledger, self.queue, run_id)

    def wake(self, run_id: str) -> None:
        """Offer a run to the runners although nothing is new; harmless when it is queued already."""
        summary = self.summary(run_id)
        if not summary.ended and summary.home == self.ledger.home:
            self.queue.apply(Change(offer=[Work(run_id, "workflow")]), "workspace")

    def resolve(self, text: str) -> str:
        """The run of ours that is meant, by its id, the beginning of it, or a commit. Raises NotFound, Conflict."""
        if self.queue.indexed(text) is not None:
            return text
        run_id = finding.locate(self.ledger, text, self._matching).head.run_id
        if "/" in text or self.ledger.head(run_id) is None:
            hint = f"`{command_line('show', text)}` shows it; `fork` makes a run of your own of it"
            raise Conflict(f"{text} was fetched: only its own workspace goes on with it", hint=hint)
        return run_id

    def refresh(self) -> index.Refreshed:
        """Bring the whole index up to date; one look at the refs' folder when nothing has moved."""
        return index.refresh_all(self.ledger, self.queue, self._stamp())

    def summary(self, run_id: str) -> RunSummary:
        """What a run's receipts add up to; the index is refreshed when the ledger has moved on."""
        indexed = index.refresh(self.ledger, self.queue, run_id)
        if indexed is None:
            raise NotFound(f"no run {run_id!r} in {self.paths.receipts}")
        return indexed.summary

    def runs(self, wanted: Wanted = EVERY, *, limit: int = 50, offset: int = 0) -> list[RunSummary]:
        """A page of runs, newest first."""
        self.refresh()
        return [row.summary for row in self.queue.list_indexed(wanted, limit=limit, offset=offset)]

    def state(self, run_id: str) -> OperationalState:
        """What operators are shown: one of seven states, why, and what to do next."""
        return self.observe(self.summary(run_id))

    def observe(self, summary: RunSummary) -> OperationalState:
        return state_of(self.observed(summary), self.registry.operator, self.clock, self.paths, self.ledger.home)

    def observed(self, summary: RunSummary) -> Observed:
        """What is known of a run beyond its receipts, and of the child runs it waits for."""
        queue = self.queue
        return observed_in(queue, queue.work, self._child, summary, self.registry, self.paths, self.clock)

    def _child(self, run_id: str) -> RunSummary | None:
        try:
            known = index.refresh(self.ledger, self.queue, run_id)
        except (IntegrityError, NewerSchema):
            # A child that cannot be read does not hide its parent.
            known = self.queue.indexed(run_id)
        return known.summary if known else None

    def control(
        self,
        run_id: str,
        verb: Verb,
        *,
        reason: str = "",
        by: Provenance,
        now: bool = False,
        superseded_by: str | None = None,
    ) -> RunSummary:
        """Ask a run to end, to stop for a while, or to go on. A runner delivers the request; a second adds nothing.

        A paused run decides nothing and starts nothing; what is executing finishes. A run that is cancelled `now` ends
        without its cleanup, and so do its children. Raises Conflict when it has ended, and InvalidInput for a run that
        is to be its own successor.
        """
        if superseded_by == run_id:
            raise InvalidInput(f"{run_id} cannot be superseded by itself", hint="name the run that takes its place")
        index.check_own(self.ledger, self.queue, run_id)
        self._learn_from(run_id)
        given = Control(
            run_id, verb, self.redactor.text(reason), self.without_secrets(by), self.clock.now(), now, superseded_by
        )
        if request(self.ledger, given):
            (self.revive if verb == "resume" else self.went_on)(run_id)
        return self.summary(run_id)

    def revive(self, run_id: str) -> None:
        """Lift the marks of a stuck run, of which a person has just removed the reason, and queue it."""
        self.went_on(run_id)
        self.queue.apply(Change(unstuck=[run_id], offer=[Work(run_id, "workflow")]), "workspace")

    def resolve_step(self, given: Resolution) -> ControlReceipt:
        """Record what became of an at-most-once step; see `review.resolving` for what is refused."""
        index.check_own(self.ledger, self.queue, given.run_id)
        self._learn_from(given.run_id)
        note = resolve(self, given)
        self.revive(given.run_id)
        return note

    def artifacts(self, run: str) -> list[Kept]:
        """The files that a run, ours or fetched, has kept, oldest first."""
        return artifacts_of(self.find(run).receipts)

    def artifact(self, run: str, name: str) -> tuple[Kept, bytes]:
        """One of them by name, key or the beginning of its sha256. Raises NotFound, Conflict, IntegrityError."""
        found = self.find(run)
        kept = find_artifact(found.run_id, name, artifacts_of(found.receipts))
        data = self.ledger.content(found.head.tip, layout.artifact(kept.sha256))
        if data is None:
            raise IntegrityError(f"artifact {kept.name} of {run} is missing", hint="hermes-workflows verify")
        return kept, data

    def signal(self, run_id: str, name: str, payload: Plain, provenance: Provenance) -> Sent:
        """Record an event from outside and offer the continuation; see `review.signals` for what is refused."""
        index.check_own(self.ledger, self.queue, run_id)
        self._learn_from(run_id)
        by = self.without_secrets(provenance)
        given = Signal(run_id, self.redactor.text(name), payload, by, self.clock.now())
        sent = send(self.ledger, given, self.redactor)
        self.went_on(run_id)
        return sent

    # -- reviews ---------------------------------------------------------------------------------------------

    def reviews(self, *, run_id: str | None = None, status: str | None = "open") -> list[ReviewRow]:
        """The inbox, oldest question first; `status` None shows answered ones too."""
        self.refresh()
        return self.queue.reviews(run_id=run_id, status=status)

    def review(self, run: str, key: str) -> Review:
        """One question, of a run of ours or a fetched one, with evidence, form and answer. Raises NotFound."""
        found = self.find(run)
        return find_review(found.run_id, key, found.receipts)

    def answer(self, run_id: str, key: str, payload: Plain, provenance: Provenance) -> Review:
        """Record an answer and offer the continuation; see `review.answer` for what it refuses."""
        index.check_own(self.ledger, self.queue, run_id)
        receipts = self.ledger.read(run_id)[1]
        self._learn(recorded_names(receipts))
        by = self.without_secrets(provenance)
        try:
            review = answer(self.ledger, Answer(run_id, key, payload, by, self.clock.now()), receipts, self.redactor)
        except Conflict:
            # An expired question is something for a runner to record.
            self.wake(run_id)
            raise
        self.went_on(run_id)
        return review

    # -- upkeep ----------------------------------------------------------------------------------------------

    def rebuild_index(self) -> index.Refreshed:
        """Read every run again into the index and offer the unfinished ones."""
        return index.rebuild(self.ledger, self.queue, self._share)

    def verify(self, text: str | None = None) -> Mapping[str, list[Problem]]:
        """What does not add up in the receipts, by run: in all of them, or in the one that `text` means.

        A run that cannot be read is a problem, and hides no other. Raises NotFound, Conflict.
        """
        if text is None:
            return verifying.verify_all(self.ledger, self.queue)
        place = verifying.locate(self.ledger, self.queue, text, self._matching)
        return {place.head.run_id: verifying.verify_place(self.ledger, self.queue, place)}

    def maintain(self, housekeeper: Housekeeper | None = None, *, full: bool = False) -> Maintained:
        """Seal what has finished, drop the refs of old runs, and have git pack what is loose.

        Raises TemporarilyLocked while somebody else does it, NotFound without git, StoreFailure.
        """
        keeper = housekeeper or Housekeeper(self.paths.receipts)
        with keeper.leased():
            before = keeper.size()
            sealed = self.ledger.seal(keep=self.registry.keep_runs)
            failed = keeper.tidy(full=full)
            return Maintained(sealed, before, keeper.size(), failed)

    def close(self) -> None:
        self.queue.close()
        super().close()

    # -- inside ----------------------------------------------------------------------------------------------

    def _learn_from(self, run_id: str) -> None:
        """What the bodies of a run have named, whichever process they live in."""
        if self.ledger.head(run_id) is not None:
            self._learn(recorded_names(self.ledger.read(run_id)[1]))

    def _matching(self, prefix: str, limit: int) -> list[str]:
        """Ids of ours that begin so, from the index only while it is fresh: looking brings nothing up to date."""
        if self._stamp() and self.queue.stamp() == self._stamp():
            return self.queue.matching(prefix, limit)
        return super()._matching(prefix, limit)

    def _stamp(self) -> str:
        return str(peek.stamp(self.paths.receipts)) if self.paths.receipts.is_dir() else ""

    def _deadline_of(self, ref: str, now: datetime) -> datetime | None:
        entry = self.registry.workflows.get(ref)
        return None if entry is None or entry.deadline is None else now + timedelta(seconds=entry.deadline)

    def _same_start(self, run_id: str, started: RunStarted) -> RunSummary:
        recorded = next(receipt for receipt in self.ledger.read(run_id)[1] if receipt.path == layout.RUN)
        hint = "leave --id out for a new run, or choose another id"
        if recorded.request.workflow != started.request.workflow:
            raise Conflict(f"{run_id} is a run of {recorded.request.workflow}", hint=hint)
        if (place := first_difference(recorded.request.input, started.request.input)) is not None:
            raise Conflict(f"{run_id} exists with another input, which differs at {place or '/'}", hint=hint)
        self.wake(run_id)
        return self.summary(run_id)
