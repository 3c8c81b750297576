"""The workspace: what the command line, a web page, a plugin and the runner ask and tell one database.

Every write goes the same way: into the ledger first, then one transaction that refreshes the run's row in the
index and offers its continuation. A process that dies in between is repaired by whoever looks next.
"""

from __future__ import annotations

import platform
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .core import layout
from .core.clock import Clock
from .core.differences import first_difference
from .core.encoding import Limits, Plain
from .core.names import check_run_id, slug
from .core.receipts import Author, ControlReceipt, Execution, Provenance, Receipt, RunRequest, RunStarted, draft
from .core.redaction import Redactor
from .core.spelling import suggestion
from .core.states import OperationalState
from .core.summary import RunSummary
from .errors import Conflict, InvalidInput, NotFound
from .facts import Observed, state_of
from .importing import said_where
from .loader import LoadedWorkflow, Loader
from .registry import DatabasePaths, Registry
from .review.answer import Answer, Review, answer, find_review
from .store import index
from .store.ports import Appended, Ended, Entry, Ledger, PathTaken, Problem
from .store.queue_port import Change, Queue, ReviewRow, Work
from .versions import versions

_CANCEL_ATTEMPTS = 20


@dataclass(frozen=True)
class Surroundings:
    """What the world lends a workspace: a clock and the environment's variables, both given by the caller."""

    clock: Clock
    environment: Mapping[str, str]


class Workspace:
    """One database of a registry: its ledger, its queue and the code of its workflows. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        paths: DatabasePaths,
        ledger: Ledger,
        queue: Queue,
        surroundings: Surroundings,
        loader: Loader | None = None,
    ) -> None:
        self.registry = registry
        self.paths = paths
        self.ledger = ledger
        self.queue = queue
        self.clock = surroundings.clock
        self.environment = surroundings.environment
        self.loader = loader or Loader(registry)
        self.limits = Limits()
        named = {name: value for name in registry.redact if (value := self.environment.get(name))}
        self.redactor = Redactor(named, self.environment)

    @property
    def root(self) -> Path:
        """The folder that commands start in and that file refs are relative to."""
        return self.registry.root

    # -- runs ------------------------------------------------------------------------------------------------

    def start(
        self, ref: str, given: Plain = None, *, run_id: str | None = None, start: Path | None = None
    ) -> RunSummary:
        """Record the start of a run and queue it; an id that exists with the same input shows its state.

        `ref` is an alias, `module:function` or a file, seen from the folder `start`. Raises NotFound, CannotLoad,
        InvalidInput that names the field, and Conflict for an id that exists with another input.
        """
        loaded = self.loader.load(ref, start)
        started = self.started(loaded, given)
        name = check_run_id(run_id or self._new_id(loaded))
        if self.ledger.head(name) is not None:
            return self._same_start(name, started)
        try:
            self.begin(name, loaded, started)
        except Conflict:
            # Somebody was faster; an id that differs in case only is no state to show.
            if self.ledger.head(name) is None:
                raise
            return self._same_start(name, started)
        return self.summary(name)

    def started(self, loaded: LoadedWorkflow, given: Plain, parent: Mapping[str, str] | None = None) -> RunStarted:
        """The receipt that a run of `loaded` begins with. Raises InvalidInput for what does not fit its input type."""
        counts: Counter[str] = Counter()
        value = self.redactor.plain(_input_of(loaded, given), counts)
        if counts:
            _check_redacted(loaded, value)
        execution = Execution(
            started_at=self.clock.now(),
            workspace=self.ledger.home,
            code=loaded.code,
            python=".".join(platform.python_version_tuple()[:2]),
            versions=versions(),
            seed=secrets.token_hex(16),
            parent=dict(parent) if parent else None,
            redactions=dict(counts) or None,
        )
        return RunStarted(
            path=layout.RUN, key="", request=RunRequest(workflow=loaded.ref, input=value), execution=execution
        )

    def begin(self, run_id: str, loaded: LoadedWorkflow, started: RunStarted) -> Appended:
        """Put a run into the ledger and its first work into the queue. Raises Conflict when the id exists."""
        for path, data in loaded.sources.items():
            if self.redactor.finds(data):
                raise InvalidInput(
                    f"{path} contains a secret, and sources are kept in the receipts as they are",
                    hint="read it from the environment in a step",
                )
        files = {layout.source(loaded.code, path): data for path, data in loaded.sources.items()}
        entry = Entry(run_id, (draft(started, Author("workflow"), self.limits),), files=files)
        moment = started.execution.started_at or self.clock.now()
        appended = self.ledger.create(entry, moment.strftime("%Y-%m-%d"))
        self.went_on(run_id)
        return appended

    def went_on(self, run_id: str) -> None:
        """The ledger has a new receipt of this run: refresh its row and offer it to the runners."""
        index.refresh(self.ledger, self.queue, run_id)
        self.queue.apply(Change(offer=[Work(run_id, "workflow")]), "workspace")

    def resolve(self, run_id: str) -> str:
        """The run that is meant: an exact id, else the one id that begins so. Raises NotFound, Conflict."""
        if self.queue.indexed(run_id) is not None or self._in_ledger(run_id):
            return run_id
        known = [head.run_id for head in self.ledger.heads()]
        matches = [name for name in known if run_id and name.startswith(run_id)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise Conflict(f"{len(matches)} runs begin with {run_id!r}", hint=f"for example {', '.join(matches[:5])}")
        raise NotFound(f"no run {run_id!r} in {self.paths.receipts}", hint=suggestion(run_id, known, "runs"))

    def summary(self, run_id: str) -> RunSummary:
        """What a run's receipts add up to; the index is refreshed when the ledger has moved on."""
        indexed = index.refresh(self.ledger, self.queue, run_id)
        if indexed is None:
            raise NotFound(f"no run {run_id!r} in {self.paths.receipts}")
        return indexed.summary

    def runs(self, *, status: str | None = None, limit: int = 50, offset: int = 0) -> list[RunSummary]:
        """A page of runs, newest first."""
        index.refresh_all(self.ledger, self.queue)
        return [row.summary for row in self.queue.list_indexed(status=status, limit=limit, offset=offset)]

    def state(self, run_id: str) -> OperationalState:
        """What operators are shown: one of seven states, why, and what to do next."""
        return self.observe(self.summary(run_id))

    def observe(self, summary: RunSummary) -> OperationalState:
        run_id = summary.run_id
        seen = Observed(summary, self.queue.work(run_id), self.queue.stuck(run_id), self.queue.runners())
        return state_of(seen, self.registry.operator, self.clock)

    def cancel(self, run_id: str, *, reason: str, by: Provenance) -> RunSummary:
        """Ask a run to end. It ends when a runner has delivered the request; a second request adds nothing.

        Raises Conflict when the run has completed or failed.
        """
        for _ in range(_CANCEL_ATTEMPTS):
            summary = self.summary(run_id)
            if summary.cancel_requested or summary.status == "cancelled":
                return summary
            if summary.ended:
                raise Conflict(f"{run_id} is {summary.status}", hint="only a run that goes on can be cancelled")
            _, receipts = self.ledger.read(run_id)
            entry = Entry(run_id, (draft(self._cancel_request(receipts, reason, by), Author(by.by)),))
            outcome = self.ledger.append([entry])[0]
            # Another control took the number, or the run ended meanwhile: look again.
            if not isinstance(outcome, PathTaken | Ended):
                self.went_on(run_id)
                return self.summary(run_id)
        raise Conflict(f"{run_id} changes faster than a cancel request can be recorded", hint="try again")

    # -- reviews ---------------------------------------------------------------------------------------------

    def reviews(self, *, run_id: str | None = None, status: str | None = "open") -> list[ReviewRow]:
        """The inbox, oldest question first; `status` None shows answered ones too."""
        index.refresh_all(self.ledger, self.queue)
        return self.queue.reviews(run_id=run_id, status=status)

    def review(self, run_id: str, key: str) -> Review:
        """One question with its evidence, its form and its answer. Raises NotFound."""
        return find_review(run_id, key, self.ledger.read(run_id)[1])

    def answer(self, run_id: str, key: str, payload: Plain, provenance: Provenance) -> Review:
        """Record an answer and offer the continuation; see `review.answer` for what it refuses."""
        try:
            answer(self.ledger, Answer(run_id, key, payload, provenance, self.clock.now()), self.redactor)
        finally:
            # Also after a refusal: an expired question is something for a runner to record.
            self.went_on(run_id)
        return self.review(run_id, key)

    # -- upkeep ----------------------------------------------------------------------------------------------

    def rebuild_index(self) -> int:
        """Make the index and the queue again from the receipts; returns how many runs there are."""
        return index.rebuild(self.ledger, self.queue)

    def verify(self, run_id: str | None = None) -> Mapping[str, list[Problem]]:
        """What does not add up in the receipts, by run."""
        names = [run_id] if run_id is not None else [head.run_id for head in self.ledger.heads()]
        return {name: self.ledger.verify(name) for name in names}

    def close(self) -> None:
        self.queue.close()
        self.ledger.close()

    # -- inside ----------------------------------------------------------------------------------------------

    def _new_id(self, loaded: LoadedWorkflow) -> str:
        name = slug(loaded.definition.name.lower())[:60].strip("._-") or "run"
        return f"{name}-{self.clock.now():%Y%m%d}-{secrets.token_hex(4)}"

    def _in_ledger(self, run_id: str) -> bool:
        try:
            return self.ledger.head(run_id) is not None
        except InvalidInput:
            return False

    def _same_start(self, run_id: str, started: RunStarted) -> RunSummary:
        recorded = next(receipt for receipt in self.ledger.read(run_id)[1] if receipt.path == layout.RUN)
        hint = "leave --id out for a new run, or choose another id"
        if recorded.request.workflow != started.request.workflow:
            raise Conflict(f"{run_id} is a run of {recorded.request.workflow}", hint=hint)
        if (place := first_difference(recorded.request.input, started.request.input)) is not None:
            raise Conflict(f"{run_id} exists with another input, which differs at {place or '/'}", hint=hint)
        self.went_on(run_id)
        return self.summary(run_id)

    def _cancel_request(self, receipts: list[Receipt], reason: str, by: Provenance) -> ControlReceipt:
        places = filter(None, (layout.place(receipt.path) for receipt in receipts))
        number = 1 + max((place.number for place in places if place.family in ("cancel", "control")), default=0)
        return ControlReceipt(
            path=layout.control(number, "cancel"),
            key="cancel",
            status="cancel",
            request={"reason": self.redactor.text(reason)},
            execution=Execution(finished_at=self.clock.now(), provenance=by),
        )


def _input_of(loaded: LoadedWorkflow, given: Plain) -> Plain:
    """The input as the workflow's type says it, defaults filled in: equal inputs are recorded equally."""
    definition = loaded.definition
    with said_where(loaded.ref):
        takes = definition.input_codec
    if takes is None:
        if given:
            raise InvalidInput(f"{loaded.ref} takes no input", hint="leave --input-json out")
        return None
    try:
        arguments = definition.arguments(given)
    except InvalidInput as error:
        if given is None:
            raise InvalidInput(f"{loaded.ref} needs an input: {error.message}", hint="pass --input-json") from error
        raise
    return definition.encode_input(arguments[0]) if arguments else None


def _check_redacted(loaded: LoadedWorkflow, value: Plain) -> None:
    try:
        loaded.definition.arguments(value)
    except InvalidInput as error:
        raise InvalidInput(
            f"the input holds a secret and does not fit its type without it: {error.message}",
            hint="pass the name of an environment variable instead, and read it in a step",
        ) from error
