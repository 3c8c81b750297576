"""`accept`: keeping recorded answers although the present code asks otherwise (SEMANTICS §3).

The body is decided again from its receipts, under the present code, as often as there is something new to accept.
Nothing is recorded unless everything that was asked for can be accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core import layout
from ..core.history import History, fold
from ..core.live import LiveRun, rebuild
from ..core.names import clean_key
from ..core.readme import render
from ..core.receipts import Author, ControlReceipt, Execution, Provenance, Receipt, draft
from ..core.summary import summarize
from ..errors import Conflict, Divergence, InvalidInput, TemporarilyLocked
from ..review.resolving import next_control
from ..starting import source_files
from ..store.ports import Appended, Entry
from .bodies import CannotAdvance, check_home
from .slices import Decider, SliceLimits

if TYPE_CHECKING:
    from ..loader import LoadedWorkflow
    from ..workspace import Workspace

_ATTEMPTS = 5


@dataclass(frozen=True)
class Wish:
    """What is to be accepted: one key, or with None every changed request; and on whose word."""

    run_id: str
    key: str | None
    why: str
    by: Provenance
    as_manual: bool = False


@dataclass(frozen=True)
class Changed:
    """A recorded answer that now stands for another request; `diff` shows both."""

    key: str
    kind: str
    diff: str


@dataclass(frozen=True)
class Acceptance:
    """What was accepted. `remaining` says where the run still diverges."""

    accepted: tuple[Changed, ...]
    remaining: str | None = None


@dataclass
class _Replay:
    """One body of the present code after another, each knowing what was accepted so far."""

    workspace: Workspace
    run_id: str
    loaded: LoadedWorkflow
    history: History
    decider: Decider = field(default_factory=lambda: Decider(SliceLimits(dead_man=None)))
    accepted: list[tuple[Mapping[str, str], Changed]] = field(default_factory=list)

    def divergence(self) -> Divergence | None:
        """Where the present code still decides otherwise."""
        live = LiveRun(
            self.run_id,
            self.loaded.definition,
            self.history.started,
            redactor=self.workspace.declared,
            limits=self.workspace.limits,
            root=str(self.workspace.root),
            secret=self.workspace.secret,
        )
        for told, _ in self.accepted:
            live.accepted.add(told["key"], told["recorded"], told["present"])
        try:
            self.decider.run(lambda: rebuild(live, self.history), self.run_id)
        except Divergence as error:
            return error
        finally:
            self.decider.run(live.evict, self.run_id)
        return None


def accept(workspace: Workspace, wish: Wish) -> Acceptance:
    """Record that answers are kept, lift the mark, and queue the run.

    Raises Conflict for a run that has ended or cannot go on here, InvalidInput when there is nothing to accept, and
    Divergence for what cannot be: an output that no longer fits, another kind of call, one that vanished, a question
    without `as_manual`.
    """
    for _ in range(_ATTEMPTS):
        _, receipts = workspace.ledger.read(wish.run_id)
        replay = _replay(workspace, wish.run_id, receipts)
        try:
            remaining = _collect(replay, wish)
        finally:
            replay.decider.close()
        if _record(workspace, wish, receipts, replay):
            workspace.revive(wish.run_id)
            changed = tuple(each for _, each in replay.accepted)
            return Acceptance(changed, remaining.message if remaining else None)
    raise TemporarilyLocked(f"{wish.run_id} changes faster than anything can be accepted", hint="try again")


def _replay(workspace: Workspace, run_id: str, receipts: Sequence[Receipt]) -> _Replay:
    history = fold(receipts)
    if history.ended is not None:
        raise Conflict(f"{run_id} is {history.ended.status}", hint="only a run that goes on can accept something")
    try:
        check_home(history.started, workspace.ledger.home)
    except CannotAdvance as error:
        raise Conflict(error.reason, hint=error.hint) from None
    return _Replay(workspace, run_id, workspace.loader.load(history.started.request.workflow), history)


def _collect(replay: _Replay, wish: Wish) -> Divergence | None:
    """Accept what is wished for, as long as there is something; what remains when it was one key."""
    wanted = clean_key(wish.key) if wish.key is not None else None
    while (error := replay.divergence()) is not None:
        details = error.details or {}
        key = str(details.get("key"))
        accepted = [told["key"] for told, _ in replay.accepted]
        if wanted is not None and wanted in accepted and key != wanted:
            return error
        told = details.get("accept")
        if wanted not in (None, key):
            raise _elsewhere(error, key, str(wanted))
        if told is None or key in accepted:
            raise _refused(error)
        if told["kind"] == "review" and not wish.as_manual:
            raise _for_people(error, key)
        replay.accepted.append((told, Changed(key, told["kind"], str(details.get("request_diff") or ""))))
    if not replay.accepted:
        raise InvalidInput(f"the present code decides {wish.run_id} as it was recorded; there is nothing to accept")
    return None


def _elsewhere(error: Divergence, key: str, wanted: str) -> InvalidInput:
    return InvalidInput(
        f"nothing can be accepted for {wanted} before {key}: {error.message}",
        hint=f"accept {key} first, or pass --all",
    )


def _refused(error: Divergence) -> Divergence:
    refused = Divergence(
        error.message, hint="this cannot be accepted: restore the code that was recorded, or fork the run before it"
    )
    refused.details = error.details
    return refused


def _for_people(error: Divergence, key: str) -> Divergence:
    refused = Divergence(
        f"{key} was a question to people, and what they answered was another question",
        hint="--as-manual keeps the answer, and the receipts say that nobody gave it for the question as it is now",
    )
    refused.details = error.details
    return refused


def _record(workspace: Workspace, wish: Wish, receipts: Sequence[Receipt], replay: _Replay) -> bool:
    """False when the run has moved on meanwhile."""
    by = workspace.without_secrets(wish.by)
    request: dict[str, Any] = {
        "accepted": [dict(told) for told, _ in replay.accepted],
        "why": workspace.redactor.text(wish.why),
        "as_manual": wish.as_manual,
    }
    note = ControlReceipt(
        path=layout.control(next_control(receipts), "accept"),
        key="accept",
        status="accept",
        request=request,
        execution=Execution(finished_at=workspace.clock.now(), provenance=by, code=replay.loaded.code),
    )
    told = [*receipts, note]
    seq = replay.history.seq
    after = summarize(wish.run_id, receipts).apply([note.at(seq + 1)])
    entry = Entry(
        wish.run_id,
        (draft(note, Author(by.by)),),
        decided_at=seq,
        # This code has decided in the run now, also if it never writes anything else to it.
        files={**source_files(replay.loaded, workspace.redactor), layout.README: render(after, told)},
    )
    return isinstance(workspace.ledger.append([entry])[0], Appended)
