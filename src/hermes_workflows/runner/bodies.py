"""The live bodies a runner holds: rebuilt from receipts when missing, brought up to date when somebody else wrote."""

from __future__ import annotations

import platform
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from ..core import layout
from ..core.divergence import AnyCall, explain
from ..core.history import fold
from ..core.layout import Role
from ..core.live import Decision, End, LiveRun, rebuild
from ..core.receipts import Receipt, RunStarted
from ..core.summary import RunSummary, summarize
from ..errors import Divergence, HermesError, InvalidInput
from ..loader import CannotLoad, LoadedWorkflow
from ..starting import source_files
from ..store.ports import Appended, Head
from ..store.queue_port import PAUSED
from .account import Account
from .reusing import Then, recorded_then
from .slices import Decider, SliceStopped

if TYPE_CHECKING:
    from ..workspace import Workspace

# Eviction is cheap and a rebuild of 200 receipts takes 4 ms: no cleverness is needed.
MAX_BODIES = 1000
# A look costs a `stat` for each source file; a step that does nothing takes a millisecond.
LOOK_SECONDS = 0.05

# What a body may do to the slice it runs in.
_OF_A_BODY = (Divergence, SliceStopped, InvalidInput)


class CannotAdvance(Exception):
    """This runner cannot move the run; `kind` is what the stuck mark says, `code` whose code it is true of."""

    def __init__(self, kind: str, reason: str, hint: str = "", *, key: str = "", code: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.hint = hint
        self.key = key
        self.code = code


def internal(error: Exception) -> CannotAdvance:
    """A fault of ours, or of code of the author's that we call."""
    return CannotAdvance(
        "internal",
        f"{type(error).__name__}: {error}",
        "the traceback is in the runner's log; start a runner again to try once more, or report it",
    )


class Over(Exception):
    """The run has its end: nobody decides anything for it any more."""

    def __init__(self, summary: RunSummary) -> None:
        super().__init__(summary.run_id)
        self.summary = summary


@dataclass
class Held:
    """A run this process has the body of.

    `pending` are receipts that are committed and not delivered yet, `unindexed` those whose inbox rows are not
    written. `unoffered` and `unwithdrawn` are what decisions want from the queue and have not got. `sources` are the
    files of this code, while it has not written to the run yet. `then` is what is known of the run that this one
    reproduces.
    """

    live: LiveRun
    loaded: LoadedWorkflow
    head: Head
    account: Account
    pending: deque[Receipt] = field(default_factory=deque)
    unindexed: list[Receipt] = field(default_factory=list)
    unoffered: dict[str, AnyCall] = field(default_factory=dict)
    unwithdrawn: dict[str, AnyCall] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)
    then: Then = field(default_factory=Then)
    attempts: dict[str, int] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    indexed: str | None = None
    looked_at: float = 0.0
    end_deadline: float | None = None
    cleanup_deadline: float | None = None
    watches_deadline: bool = False
    looked_for_parent: bool = False
    end: End | None = None
    stuck: str | None = None
    logs: list[str] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        return self.live.run_id

    @property
    def summary(self) -> RunSummary:
        return self.account.summary

    def asked(self, key: str) -> Receipt | None:
        """The request of a review that nobody has answered."""
        return self.live.noted.get(layout.request(key)) if key in self.summary.open_reviews else None

    def absorb(self, head: Head, receipts: Iterable[Receipt]) -> None:
        """Committed receipts, in order, which are delivered with the next decision."""
        new = list(receipts)
        self.head = head
        self.account.add(new)
        self.pending.extend(new)
        for each in new:
            self._remember(each)

    def _remember(self, receipt: Receipt) -> None:
        execution = receipt.execution
        if execution.code == self.loaded.code:
            self.sources = {}
        if receipt.kind == "review":
            self.unindexed.append(receipt)
            if receipt.role is Role.RESULT:
                self.closed.append(receipt.key)
        elif receipt.kind in ("agent", "bash", "step") and receipt.role is Role.NOTE and execution.attempt:
            # What has only begun is the attempt that it names; the others were made.
            made = execution.attempt - (receipt.status == "started")
            self.attempts[receipt.key] = max(self.attempts.get(receipt.key, 0), made)

    def decided(self, decision: Decision) -> None:
        for call in decision.requested:
            self.unoffered[call.key] = call
        self.unwithdrawn.update((call.key, call) for call in decision.cancelled)
        self.end = decision.end or self.end
        self.stuck = decision.stuck
        self.logs.extend(decision.logs)


class Bodies:
    def __init__(self, workspace: Workspace, decider: Decider, on_refusal: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._decider = decider
        self._on_refusal = on_refusal
        self._held: OrderedDict[str, Held] = OrderedDict()
        # Bodies whose slice was left behind: their thread may come back, and must find what it stands on.
        self._abandoned: list[Held] = []

    def get(self, run_id: str) -> Held | None:
        return self._held.get(run_id)

    def code_of(self, ref: str) -> str:
        """The identity of a workflow's code without importing it; empty when there is none to be found."""
        try:
            return self._workspace.loader.code_of(ref)
        except HermesError:
            return ""

    def all(self) -> list[Held]:
        return list(self._held.values())

    def current(self, run_id: str) -> Held:
        """The run's body with everything delivered that is committed. Raises CannotAdvance, and Over for an ended run.

        It is another object than before when the code has changed: whoever holds the old one starts over.
        """
        held = self._held.get(run_id)
        if held is not None and self._outdated(held):
            self.drop(run_id)
            held = None
        try:
            if held is None:
                return self._rebuild(run_id)
            self._held.move_to_end(run_id)
            self._catch_up(held)
        except _OF_A_BODY as error:
            raise self._why(run_id, error) from error
        return held

    def deliver(self, held: Held) -> None:
        """Give the body what it has not seen of what this process knows. Raises CannotAdvance."""
        if held.pending:
            try:
                self._decider.run(lambda: _deliver(held), held.run_id)
            except _OF_A_BODY as error:
                raise self._why(held.run_id, error) from error

    def absorb(self, held: Held, appended: Appended) -> None:
        """Take over what was just appended, and what others appended before it."""
        if appended.base == held.head.tip:
            held.absorb(appended.head, appended.receipts)
        else:
            held.absorb(*self._workspace.ledger.read(held.run_id, since=held.head.tip))

    def give_up(self, run_id: str, stopped: SliceStopped) -> NoReturn:
        """What becomes of a run whose slice was stopped in another thread. Raises CannotAdvance."""
        raise self._why(run_id, stopped) from stopped

    def cut_off(self, held: Held, why: str) -> None:
        """End a cancelled run without the rest of its cleanup. Raises CannotAdvance."""
        try:
            held.decided(self._decider.run(lambda: held.live.cut_off(why), held.run_id))
        except _OF_A_BODY as error:
            raise self._why(held.run_id, error) from error

    def drop(self, run_id: str) -> None:
        held = self._held.pop(run_id, None)
        if held is None:
            return
        try:
            refused = self._decider.run(held.live.evict, run_id)
        except SliceStopped as error:
            self._abandoned.append(held)
            refused = [error.message]
        for line in refused:
            self._on_refusal(f"{run_id}: a coroutine refuses to end and is kept: {line}")

    def close(self) -> None:
        for run_id in list(self._held):
            self.drop(run_id)

    # -- inside ----------------------------------------------------------------------------------------------

    def _outdated(self, held: Held) -> bool:
        """Whether the workflow's source has changed on disk; looked at often enough for people, not for each step."""
        now = self._workspace.clock.elapsed()
        if now - held.looked_at < LOOK_SECONDS:
            return False
        held.looked_at = now
        try:
            return self._workspace.loader.fresh(held.loaded).code != held.loaded.code
        except HermesError:
            return True

    def _catch_up(self, held: Held) -> None:
        head = self._workspace.ledger.head(held.run_id)
        if head is not None and head.tip != held.head.tip:
            held.absorb(*self._workspace.ledger.read(held.run_id, since=held.head.tip))
        if held.account.ended:
            self.drop(held.run_id)
            raise Over(held.summary)
        self.deliver(held)

    def _rebuild(self, run_id: str) -> Held:
        head, receipts = self._workspace.ledger.read(run_id)
        history = fold(receipts)
        if history.ended is not None:
            raise Over(summarize(run_id, receipts))
        loaded = self._load(history.started)
        live = LiveRun(
            run_id,
            loaded.definition,
            history.started,
            redactor=self._workspace.declared,
            limits=self._workspace.limits,
            root=str(self._workspace.root),
            secret=self._workspace.secret,
        )
        known = any(receipt.execution.code == loaded.code for receipt in receipts)
        held = Held(live, loaded, head, Account(run_id), sources={} if known else self._sources(loaded))
        held.then = recorded_then(self._workspace.ledger, history.started)
        held.absorb(head, receipts)
        held.pending.clear()
        held.closed.clear()
        self._held[run_id] = held
        held.decided(self._decider.run(lambda: rebuild(live, history), run_id))
        # Whatever the last decision was: after a crash every open call may be missing from the queue.
        held.unoffered = dict(live.outstanding)
        held.unwithdrawn.update(live.withdrawn)
        if history.expected.get(live.after):
            held.logs.clear()  # what this decision asked for stands there: its lines were said
        self._make_room()
        return held

    def _sources(self, loaded: LoadedWorkflow) -> Mapping[str, bytes]:
        try:
            return source_files(loaded, self._workspace.redactor)
        except InvalidInput as error:
            raise CannotAdvance("secret", error.message, error.hint or "", code=loaded.code) from error

    def _make_room(self) -> None:
        while len(self._held) > MAX_BODIES:
            self.drop(next(iter(self._held)))

    def _load(self, started: RunStarted) -> LoadedWorkflow:
        check_home(started, self._workspace.ledger.home)
        try:
            return self._workspace.loader.load(started.request.workflow)
        except HermesError as error:
            kind = "import" if isinstance(error, CannotLoad) else error.code
            code = self.code_of(started.request.workflow)
            raise CannotAdvance(kind, error.message, error.hint or "", code=code) from error

    def _why(self, run_id: str, error: Divergence | SliceStopped | InvalidInput) -> CannotAdvance:
        """One of `_OF_A_BODY`, as a reason not to advance its run."""
        if isinstance(error, Divergence):
            return self._gave_up(run_id, "divergence", error)
        if isinstance(error, InvalidInput):
            return self._gave_up(run_id, "input", error)
        if error.running and (held := self._held.pop(run_id, None)) is not None:
            # Its thread stands in the body: nobody may touch it, and its calls are refused from now on.
            held.live.evicting = True
            self._abandoned.append(held)
            return CannotAdvance("blocked", error.message, error.hint or "", code=held.loaded.code)
        return self._gave_up(run_id, "blocked", error)

    def _gave_up(self, run_id: str, kind: str, error: HermesError) -> CannotAdvance:
        held = self._held.get(run_id)
        code = held.loaded.code if held else ""
        self.drop(run_id)
        key = str((error.details or {}).get("key") or "")
        reason = "\n".join(explain(error)) if isinstance(error, Divergence) else error.message
        return CannotAdvance(kind, reason, error.hint or "", key=key, code=code)


def refuse_paused(held: Held) -> None:
    """Raises CannotAdvance for a run that somebody has paused; what its body has decided already is kept for later."""
    if (paused := held.account.paused) is not None:
        raise CannotAdvance(
            PAUSED, f"paused by {paused['by']}", f"hermes-workflows resume {held.run_id}", code=held.loaded.code
        )


def check_home(started: RunStarted, home: str) -> None:
    """Raises CannotAdvance for a run of another workspace, and of another minor version of Python."""
    execution = started.execution
    if execution.workspace and execution.workspace != home:
        raise CannotAdvance(
            "foreign",
            "the run belongs to another workspace",
            "start a runner in that workspace, or `hermes-workflows fork` the run here",
            code=execution.workspace,
        )
    here = ".".join(platform.python_version_tuple()[:2])
    if execution.python and execution.python != here:
        raise CannotAdvance(
            "python",
            f"the run was started under Python {execution.python}; this runner is Python {here}",
            f"start a runner under Python {execution.python}, or `hermes-workflows fork` the run",
            code=f"python-{here}",
        )


def _deliver(held: Held) -> None:
    while held.pending:
        decision = held.live.take(held.pending.popleft())
        if decision is not None:
            held.decided(decision)
    for key in [key for key in held.unoffered if key not in held.live.outstanding]:
        del held.unoffered[key]
