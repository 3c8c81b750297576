"""`fork` and `retry`: a new run that begins with what another one has recorded (SEMANTICS §6).

The present code says how much of it. Nothing is executed here: the new run is queued, and a runner goes on from the
last result that was adopted. People are asked again what lies behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.encoding import Plain
from ..core.layout import Role
from ..core.live import LiveRun
from ..core.names import check_run_id
from ..core.plain import command_line
from ..core.prefix import Prefix, longest_prefix, whole_prefix
from ..core.receipts import Author, Draft, Execution, Provenance, Receipt, RunStarted, draft
from ..core.spelling import suggestion
from ..core.summary import RunSummary, summarize
from ..core.timestamps import render_time
from ..errors import Conflict, Divergence, InvalidInput, NotFound
from ..finding import Found, of_key
from ..starting import check_id, following, recorded_names, secrets_named
from ..store.ports import Adopted
from .found_code import check_found, is_ours, load_found
from .slices import Decider, SliceLimits

if TYPE_CHECKING:
    from ..loader import LoadedWorkflow
    from ..workspace import Workspace

_RETRIED = re.compile(r"-retry-\d+\Z")
# What somebody can answer in the stead of whoever did: timers fire, and what operators did is theirs.
_ANSWERS = frozenset({"agent", "bash", "step", "child", "review", "signal"})


@dataclass(frozen=True)
class Wish:
    """A run `run_id` that begins with what is recorded of `source`, up to its key if it has one.

    `given` is another input, in a tuple of one. `answers` are results by key that take the place of recorded ones,
    on the word of `by`.
    """

    source: Found
    run_id: str
    by: Provenance
    given: tuple[Plain, ...] = ()
    answers: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True)
class Forked:
    """What began. `after` is the key it goes on after, `stopped` why no more was adopted.

    `again` are at-most-once steps that were begun in the other run and are not adopted: in this one they run again.
    """

    run_id: str
    source: Found
    adopted: int
    after: str | None
    stopped: str | None
    again: tuple[str, ...] = ()


def fork(workspace: Workspace, wish: Wish) -> Forked:
    """Begin a run with receipts of another one, and queue it.

    Raises Conflict for an id that exists, InvalidInput for an input or an answer that does not fit, NotFound for an
    answer to a key that has no result, IntegrityError for a run from elsewhere that is not sound, and Divergence when
    the present code does not fit what is recorded up to the key that the source names.
    """
    name = check_run_id(wish.run_id)
    check_id("run id", name, workspace.redactor)
    if workspace.ledger.head(name) is not None:
        raise Conflict(f"run {name} exists already", hint="choose another id")
    check_found(workspace, wish.source)
    there = next(each for each in wish.source.receipts if isinstance(each, RunStarted))
    loaded = load_found(workspace, wish.source)
    for secret in (*secrets_named(loaded), *recorded_names(wish.source.receipts)):
        workspace.secret(secret)
    began = workspace.started(loaded, wish.given[0] if wish.given else there.request.input)
    answered = {each.path: each for each in _answered(workspace, wish)}
    receipts = [answered.get(each.path, each) for each in wish.source.receipts]
    started = _forked(began, there, wish)
    prefix = _fitting(_Bodies(workspace, loaded, started, wish), receipts)
    if not prefix.receipts:
        # Nothing of the other run's time has passed in this one.
        started = following(began, there, _source(wish))
    instead = [draft(each, Author(wish.by.by), workspace.limits) for each in prefix.receipts if each.path in answered]
    taken = [each.path for each in prefix.receipts if each.path not in answered]
    adopted = Adopted(wish.source.head.tip, tuple(taken), tuple(instead))
    workspace.begin(name, loaded, _naming(started, prefix, instead), adopted)
    # Also what came after the key that was named: whoever goes back behind a payment should hear of it.
    _, whole = workspace.ledger.at(wish.source.head.tip)
    again = tuple(sorted(_begun(whole) - {each.key for each in prefix.receipts}))
    return Forked(name, wish.source, len(prefix.receipts), prefix.last_key, prefix.stopped, again)


def retry_id(workspace: Workspace, run_id: str) -> str:
    """The id of a run that tries again what `run_id` did: the first that is free."""
    stem, number = _RETRIED.sub("", run_id), 1
    while workspace.ledger.head(name := f"{stem}-retry-{number}") is not None:
        number += 1
    return name


def retry(workspace: Workspace, wish: Wish) -> Forked | RunSummary:
    """Try again: a stuck run in place, a failed or cancelled one by a fork.

    Raises Conflict for a run that goes on, or has completed, and one that waits for a decision about a step.
    """
    run_id = wish.source.run_id
    summary = summarize(run_id, wish.source.receipts)
    if summary.status in ("failed", "cancelled") or not is_ours(workspace, wish.source):
        return fork(workspace, wish)
    if summary.ended:
        raise Conflict(f"{run_id} is completed", hint=f"`hermes-workflows fork {run_id}@KEY --id NEW` goes back in it")
    state = workspace.state(run_id)
    if state.state != "stuck":
        raise Conflict(f"{run_id} is {state.state}: {state.reason}", hint=state.next_action or "nothing to do")
    if summary.open_intents:
        key = summary.open_intents[0]
        raise Conflict(
            f"{key} of {run_id} was begun and left no result; it may have happened",
            hint=f"`{command_line('resolve', run_id, key)}` says which, and lets the run go on",
        )
    workspace.revive(run_id)
    return workspace.summary(run_id)


# -- inside ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bodies:
    """Makes bodies of the present code, which are asked what they would decide."""

    workspace: Workspace
    loaded: LoadedWorkflow
    started: RunStarted
    wish: Wish

    def make(self) -> LiveRun:
        # Under the other run's id: what is said of a divergence is said of its receipts.
        return LiveRun(
            self.wish.source.run_id,
            self.loaded.definition,
            self.started,
            redactor=self.workspace.declared,
            limits=self.workspace.limits,
            root=str(self.workspace.root),
            secret=self.workspace.secret,
        )


def _fitting(bodies: _Bodies, receipts: list[Receipt]) -> Prefix:
    wish = bodies.wish
    decider = Decider(SliceLimits(dead_man=None))
    try:
        if wish.source.key is None:
            prefix = decider.run(lambda: longest_prefix(bodies.make, receipts, wish.answers), wish.source.run_id)
        else:
            prefix = decider.run(lambda: whole_prefix(bodies.make, receipts), wish.source.run_id)
    except Divergence as error:
        raise _refused(wish, error) from error
    finally:
        decider.close()
    if prefix.divergence is not None and _key_of(prefix.divergence) in wish.answers:
        raise _refused(wish, prefix.divergence)
    adopted = {each.key for each in prefix.receipts}
    if lost := [key for key in wish.answers if not any(each.key in adopted for each in of_key(receipts, key))]:
        raise InvalidInput(f"the answer to {lost[0]} comes too late: {prefix.stopped}", hint="mend what comes first")
    return prefix


def _refused(wish: Wish, error: Divergence) -> InvalidInput | Divergence:
    key, run_id = _key_of(error), wish.source.run_id
    if key in wish.answers:
        # Of a value that was just typed the reason alone is news, not that it differs from what is recorded.
        why = getattr(error.__cause__, "message", None) or error.message
        return InvalidInput(f"the answer to {key} does not fit: {why}", hint="nothing was recorded")
    before = (error.details or {}).get("fits_until")
    refused = Divergence(
        error.message,
        hint=f"`hermes-workflows fork {run_id} --id NEW` adopts as much as still fits"
        + (f", which ends after {before}" if before else ""),
    )
    refused.details = error.details
    return refused


def _begun(receipts: Iterable[Receipt]) -> set[str]:
    """Steps of which an intent says that their effect may have happened."""
    return {each.key for each in receipts if each.kind == "step" and each.status == "started"}


def _key_of(error: Divergence) -> str:
    return str((error.details or {}).get("key") or "")


def _forked(began: RunStarted, there: RunStarted, wish: Wish) -> RunStarted:
    """The start of a run whose time goes on from the other one's."""
    execution = there.execution
    clock = (execution.source or {}).get("clock") or (
        render_time(execution.started_at) if execution.started_at else None
    )
    return following(began, there, _source(wish) | ({"clock": clock} if clock else {}))


def _source(wish: Wish) -> dict[str, str]:
    return {"run": wish.source.run_id, "commit": wish.source.head.tip, "how": "fork"}


def _naming(started: RunStarted, prefix: Prefix, instead: Iterable[Draft]) -> RunStarted:
    """The start says up to which seq receipts are the other run's, and which of them somebody gave instead."""
    told = {"seq": str(prefix.seq)} if prefix.receipts else {}
    if keys := " ".join(each.receipt.key for each in instead):
        told["set"] = keys
    execution = started.execution
    return started.model_copy(
        update={"execution": execution.model_copy(update={"source": {**(execution.source or {}), **told}})}
    )


def _answered(workspace: Workspace, wish: Wish) -> Iterator[Receipt]:
    """The results that somebody gives in the stead of recorded ones, at their place in the order."""
    by = workspace.without_secrets(wish.by)
    # Nobody is asked here, so nobody's approval is recorded: not even that of whoever types this.
    by = by if by.kind == "test" else by.model_copy(update={"kind": "manual"})
    for key, output in wish.answers.items():
        own = [each for each in of_key(wish.source.receipts, key) if each.role is Role.RESULT]
        if not own:
            known = [each.key for each in wish.source.receipts if each.role is Role.RESULT and each.kind in _ANSWERS]
            raise NotFound(
                f"{wish.source.run_id} has no result of {key!r} to replace", hint=suggestion(key, known, "results")
            )
        if own[-1].kind not in _ANSWERS:
            raise InvalidInput(f"{key} is a {own[-1].kind}; nobody answers it")
        yield _instead(own[-1], workspace, output, by)


def _instead(recorded: Receipt, workspace: Workspace, output: Plain, by: Provenance) -> Receipt:
    status = "received" if recorded.kind == "signal" else "completed"
    execution = Execution(
        seq=recorded.seq,
        requested_after=recorded.execution.requested_after,
        finished_at=workspace.clock.now(),
        provenance=by,
    )
    fields = {"status": status, "output": workspace.redactor.plain(output), "error": None, "execution": execution}
    return recorded.model_copy(update=fields)
