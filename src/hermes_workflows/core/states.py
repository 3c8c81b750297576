"""The seven states an operator sees, each with why and what to do next: one table, the first rule that holds.

The receipts say only running, waiting or how a run ended. Whether a running one is queued, claimed or stuck is
an observation of the queue and of runners: it comes in as facts and can be made again at any time.
Named tuples, no dataclasses: the fast `status` cannot afford to make such classes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .summary import Status

State = Literal["waiting", "queued", "running", "stuck", "failed", "completed", "cancelled"]

# Queued work that nobody takes for this long, with no healthy runner to be seen, is not about to move.
OLD_SECONDS = 60.0
# SEMANTICS §1: what was claimed this often and never finished takes its claimer down each time.
REPEATED_CLAIMS = 3

DEADLINE_PASSED = "its deadline passed"


def is_deadline(reason: str, by: Mapping[str, str] | None) -> bool:
    """Whether it was its own deadline that asked a run to end, not a person who gave that reason."""
    return reason == "deadline" and (by is None or by == {"kind": "policy", "by": "deadline"})


class Mark(NamedTuple):
    """Why a runner says that a run is stuck."""

    reason: str
    hint: str


class Below(NamedTuple):
    """A child run that is waited for: its state in words, and whom it or a child of its own waits for.

    `asks` are the run and the key of an open question.
    """

    run_id: str
    label: str
    asks: tuple[str, str] | None = None


class Facts(NamedTuple):
    """What is known about one run at one instant.

    `queued` counts rows that a runner could claim now, `oldest` is the age in seconds of the oldest of them.
    `receipts` is the repository and `ref` the run's place in it, for commands that a person can copy.
    `lost` names calls whose claimer is dead or late, `repeated` one that was claimed too often without an end.
    `cancelled` is why and by whom the end was asked for, `paused` the same of a pause, with its time.
    `elsewhere` is the id of the workspace that a run belongs to, when it is not this one.
    `busy` says where a runner's body is that does not come back. `signals` are the names that are waited for.
    """

    run_id: str
    status: Status
    operator: str = "the operator"
    question: str | None = None
    error: str | None = None
    cancel_requested: bool = False
    cancelled: str | None = None
    paused: str | None = None
    marks: tuple[Mark, ...] = ()
    queued: int = 0
    oldest: float = 0.0
    executing: tuple[str, ...] = ()
    busy: str | None = None
    lost: tuple[str, ...] = ()
    repeated: str | None = None
    healthy_runners: int = 0
    due: str | None = None
    receipts: str = ".hermes/workflows.git"
    ref: str = ""
    signals: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    below: tuple[Below, ...] = ()
    elsewhere: str | None = None


class OperationalState(NamedTuple):
    """`state` is for programs, `label` for people; `next_action` is None when there is nothing to do."""

    state: State
    label: str
    reason: str
    next_action: str | None


def operational_state(facts: Facts) -> OperationalState:
    """What an operator is shown for these facts."""
    state, reason, action = next(rule(facts) for applies, rule in _TABLE if applies(facts))
    label = f"Waiting on {facts.operator}" if state == "waiting" else state.capitalize()
    return OperationalState(state, label, reason, action)


_Said = tuple[State, str, str | None]
_RUN = "hermes-workflows runner run"


def _completed(facts: Facts) -> _Said:
    return "completed", "the workflow returned its result", f"review the receipts: {_history(facts)}"


def _failed(facts: Facts) -> _Said:
    reason = facts.error or "the workflow raised an error"
    action = f"read the receipts ({_history(facts)}), mend the cause, then hermes-workflows retry {facts.run_id}"
    return "failed", reason, action


def _cancelled(facts: Facts) -> _Said:
    why = f"cancelled: {facts.cancelled}" if facts.cancelled else None
    return "cancelled", "; ".join(filter(None, (why, facts.error))) or "cancelled, and no receipt says why", None


def _elsewhere(facts: Facts) -> _Said:
    action = f"hermes-workflows fork {facts.run_id} --id NEW makes a run of your own of it"
    return "running", f"it belongs to workspace {facts.elsewhere}, and goes on there only", action


def _paused(facts: Facts) -> _Said:
    still = f"; {_some(facts.executing)} may still finish" if facts.executing else ""
    return "waiting", f"paused {facts.paused}{still}", f"hermes-workflows resume {facts.run_id}"


def _marked(facts: Facts) -> _Said:
    return "stuck", facts.marks[0].reason, facts.marks[0].hint


def _repeated(facts: Facts) -> _Said:
    reason = f"{facts.repeated} was claimed {REPEATED_CLAIMS} times and never finished"
    return "stuck", reason, "hermes-workflows runner doctor, then runner once to watch it"


def _lost(facts: Facts) -> _Said:
    reason = f"the runner that claimed {_some(facts.lost)} died or no longer answers"
    return "stuck", reason, f"{_RUN} takes it over; hermes-workflows runner status shows who claimed it"


def _waiting(facts: Facts) -> _Said:
    return (
        "waiting",
        f"a typed answer to {facts.question} is needed",
        f"hermes-workflows review respond {facts.run_id} {facts.question}",
    )


def _waiting_below(facts: Facts) -> _Said:
    run_id, key = next(each.asks for each in facts.below if each.asks)
    return (
        "waiting",
        f"the child run {run_id} needs a typed answer to {key}",
        f"hermes-workflows review respond {run_id} {key}",
    )


def _busy(facts: Facts) -> _Said:
    return "running", str(facts.busy), "work that takes time belongs in a @step or in bash()"


def _executing(facts: Facts) -> _Said:
    return (
        "running",
        f"executing {_some(facts.executing)}",
        "wait; hermes-workflows runner status when it takes too long",
    )


def _old(facts: Facts) -> _Said:
    reason = f"work has been queued for {facts.oldest:,.0f} s and no healthy runner is to be seen"
    return "stuck", reason, f"{_RUN}, or hermes-workflows runner doctor"


def _queued(facts: Facts) -> _Said:
    why = "a cancel request is queued" if facts.cancel_requested else "work is queued"
    if facts.healthy_runners:
        return "queued", f"{why} and a runner is up", "wait"
    return "queued", f"{why} and nobody has claimed it", f"{_RUN}, or hermes-workflows runner once"


def _sleeping(facts: Facts) -> _Said:
    if facts.healthy_runners:
        return "running", f"sleeping until {facts.due}", None
    return "queued", f"sleeping until {facts.due}, and no runner is up", _RUN


def _signalled(facts: Facts) -> _Said:
    name = facts.signals[0]
    wanted = f"hermes-workflows signal {facts.run_id} {shlex.quote(name)} --json …"
    return "running", f"waiting for the signal {_some(facts.signals)}, an event from outside", wanted


def _parent(facts: Facts) -> _Said:
    first = facts.below[0] if facts.below else None
    known = f" ({first.label})" if first and len(facts.children) == 1 else ""
    return (
        "running",
        f"waiting for the child run {_some(facts.children)}{known}",
        f"hermes-workflows status {facts.children[0]}",
    )


def _forgotten(facts: Facts) -> _Said:
    return "stuck", "nothing is queued for it", "hermes-workflows index rebuild"


def _history(facts: Facts) -> str:
    return f"git -C {facts.receipts} log {facts.ref or facts.run_id}"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# Order matters. An end is final. What keeps a run from moving comes before what it would do if it moved; a
# question comes before work that goes on beside it, because the person is who an operator has to find.
_TABLE: tuple[tuple[Callable[[Facts], bool], Callable[[Facts], _Said]], ...] = (
    (lambda facts: facts.status == "completed", _completed),
    (lambda facts: facts.status == "failed", _failed),
    (lambda facts: facts.status == "cancelled", _cancelled),
    (lambda facts: facts.elsewhere is not None, _elsewhere),
    (lambda facts: facts.paused is not None, _paused),
    (lambda facts: bool(facts.marks), _marked),
    (lambda facts: facts.repeated is not None, _repeated),
    (lambda facts: bool(facts.lost), _lost),
    (lambda facts: facts.busy is not None, _busy),
    (lambda facts: facts.question is not None, _waiting),
    (lambda facts: any(each.asks for each in facts.below), _waiting_below),
    (lambda facts: bool(facts.executing), _executing),
    (lambda facts: facts.queued > 0 and facts.oldest > OLD_SECONDS and not facts.healthy_runners, _old),
    (lambda facts: facts.queued > 0, _queued),
    (lambda facts: bool(facts.signals), _signalled),
    (lambda facts: bool(facts.children), _parent),
    (lambda facts: facts.due is not None, _sleeping),
    (lambda facts: True, _forgotten),
)
