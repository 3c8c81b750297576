"""The rules of the seven states, in their order: when each holds, and what an operator is then told.

One table: `states.py` takes the first rule that holds, and the page of the documentation is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from .durations import lasting
from .plain import command_line, git_line
from .state_facts import FULL_BYTES, OLD_SECONDS, REPEATED_CLAIMS, Facts

State = Literal["waiting", "queued", "running", "stuck", "failed", "completed", "cancelled"]
STATES: tuple[State, ...] = get_args(State)
# Those that receipts alone tell: what has ended stays as it is.
ENDS: tuple[State, ...] = ("completed", "failed", "cancelled")
Said = tuple[str, str | None]

_RUN = "hermes-workflows runner run"
_DOCTOR = "hermes-workflows runner doctor"


class Rule(NamedTuple):
    """`when` says for people what `applies` says for programs; `says` are the reason and the next action."""

    state: State
    when: str
    applies: Callable[[Facts], bool]
    says: Callable[[Facts], Said]


# -- ends, and what keeps a run from moving ----------------------------------------------------------------------


def _completed(facts: Facts) -> Said:
    return "the workflow returned its result", f"review the receipts: {_history(facts)}"


def _failed(facts: Facts) -> Said:
    reason = facts.error or "the workflow raised an error"
    if facts.failed_at and facts.failed_at not in reason:
        reason += f", at {facts.failed_at}"
    return reason, f"read the receipts ({_history(facts)}), mend the cause, then hermes-workflows retry {facts.run_id}"


def _cancelled(facts: Facts) -> Said:
    why = f"cancelled: {facts.cancelled}" if facts.cancelled else None
    return "; ".join(filter(None, (why, facts.error))) or "cancelled, and no receipt says why", None


def _elsewhere(facts: Facts) -> Said:
    action = f"hermes-workflows fork {facts.run_id} --id NEW makes a run of your own of it"
    return f"it belongs to workspace {facts.elsewhere}, and goes on there only", action


def _paused(facts: Facts) -> Said:
    still = f"; {_some(facts.executing)} may still finish" if facts.executing else ""
    return f"paused {facts.paused}{still}", f"hermes-workflows resume {facts.run_id}"


def _full(facts: Facts) -> Said:
    reason = f"the disk that holds {facts.receipts} is full: {facts.free:,} bytes are free"
    return reason, "make room; runners go on by themselves"


def _marked(facts: Facts) -> Said:
    mark = facts.marks[0]
    return mark.reason, mark.hint or f"hermes-workflows retry {facts.run_id}"


def _repeated(facts: Facts) -> Said:
    reason = f"{facts.repeated} was claimed {REPEATED_CLAIMS} times and never finished"
    return reason, f"{_DOCTOR}, then runner once to watch it"


def _lost(facts: Facts) -> Said:
    by = facts.lost_by or "died or no longer answers"
    reason = f"the runner that claimed {_some(facts.lost)} {by}"
    if facts.healthy_runners:
        return reason, "wait; another runner is about to take it over"
    return reason, f"{_RUN} takes it over; hermes-workflows runner status shows who claimed it"


def _deaf(facts: Facts) -> Said:
    what = f"; it has {_some(facts.executing)} in hand" if facts.deaf_executing else ""
    return f"{facts.deaf[0]}{what}", "end that process and start the runner again; its log may say what it hangs in"


def _refused(facts: Facts) -> Said:
    return f"a runner cannot write: {facts.refused}", "mend that; the runner tries again by itself"


# -- a person, work, time, others --------------------------------------------------------------------------------


def _busy(facts: Facts) -> Said:
    return str(facts.busy), "work that takes time belongs in a @step or in bash()"


def _waiting(facts: Facts) -> Said:
    asked = facts.asked
    reason = f"a typed answer to {facts.question} is needed"
    reason += f" since {_second(asked.since)}" if asked.since else ""
    if asked.until and asked.late:
        return f"{reason}; its time was over at {_second(asked.until)}, which a runner records", _wake(facts)
    reason += f", until {_second(asked.until)}" if asked.until else ""
    return reason, command_line("review", "respond", facts.run_id, str(facts.question))


def _waiting_below(facts: Facts) -> Said:
    run_id, key = next(each.asks for each in facts.below if each.asks)
    reason = f"the child run {run_id} needs a typed answer to {key}"
    return reason, command_line("review", "respond", run_id, key)


def _paused_below(facts: Facts) -> Said:
    paused = facts.below[0].paused
    return f"the child run {paused} is paused", f"hermes-workflows resume {paused}"


def _executing(facts: Facts) -> Said:
    reason, longest = f"executing {_some(facts.executing)}", facts.longest
    if longest is not None:
        which = f"; {longest.key}" if len(facts.executing) > 1 else ""
        reason += f"{which} on {longest.runner} for {lasting(longest.seconds)}"
        reason += f": {longest.line}" if longest.line else ""
    return reason, f"wait; hermes-workflows watch {facts.run_id} shows what it prints"


def _old(facts: Facts) -> Said:
    reason = f"work has been queued for {lasting(facts.oldest)} and no healthy runner is to be seen"
    return f"{reason}{_because(facts)}", f"{_RUN}, or {_DOCTOR}"


def _queued(facts: Facts) -> Said:
    why = "a cancel request is queued" if facts.cancel_requested else "work is queued"
    if facts.healthy_runners:
        return f"{why} and a runner is up", "wait"
    nobody = "no living runner can take it" if facts.unable else "nobody has claimed it"
    return f"{why} and {nobody}{_because(facts)}", f"{_RUN}, or hermes-workflows runner once"


def _sleeping(facts: Facts) -> Said:
    if facts.healthy_runners:
        return f"sleeping until {facts.due}", None
    return f"sleeping until {facts.due}, and no runner is up{_because(facts)}", _RUN


def _signalled(facts: Facts) -> Said:
    name = facts.signals[0]
    wanted = f"{command_line('signal', facts.run_id, name, '--json')} …"
    return f"waiting for the signal {_some(facts.signals)}, an event from outside", wanted


def _parent(facts: Facts) -> Said:
    first = facts.below[0] if facts.below else None
    known = f" ({first.label})" if first and len(facts.children) == 1 else ""
    reason = f"waiting for the child run {_some(facts.children)}{known}"
    return reason, f"hermes-workflows status {facts.children[0]}"


def _forgotten(facts: Facts) -> Said:
    return "nothing is queued for it", "wait; a runner queues it again" if facts.healthy_runners else _RUN


# -- words -------------------------------------------------------------------------------------------------------


def _history(facts: Facts) -> str:
    return git_line(facts.receipts, "log", facts.ref or facts.run_id)


def _wake(facts: Facts) -> str:
    return "wait" if facts.healthy_runners else _RUN


def _because(facts: Facts) -> str:
    """What is wrong with each runner that is there."""
    told = (*facts.unable, *facts.deaf, *facts.silent)
    return f": {'; '.join(told[:3])}" if told else ""


def _second(moment: str | None) -> str:
    """A recorded time without its milliseconds."""
    return f"{moment[:19]}Z" if moment else ""


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _is_old(facts: Facts) -> bool:
    return facts.queued > 0 and facts.oldest > OLD_SECONDS and not facts.healthy_runners


def _is_full(facts: Facts) -> bool:
    return facts.free is not None and facts.free < FULL_BYTES and facts.needs_writing


def _is_deaf(facts: Facts) -> bool:
    return facts.deaf_executing or bool(facts.deaf and facts.queued and not facts.healthy_runners)


def _sleeps(facts: Facts) -> bool:
    return facts.due is not None


def _is_paused_below(facts: Facts) -> bool:
    return bool(facts.below) and all(each.paused for each in facts.below)


def _is_up(facts: Facts) -> bool:
    return facts.healthy_runners > 0


# Order matters. An end is final. What keeps a run from moving comes before what it would do if it moved; a
# question comes before work that goes on beside it, because the person is who an operator has to find.
TABLE: tuple[Rule, ...] = (
    Rule("completed", "the workflow has returned", lambda facts: facts.status == "completed", _completed),
    Rule("failed", "the workflow has raised", lambda facts: facts.status == "failed", _failed),
    Rule("cancelled", "it was cancelled", lambda facts: facts.status == "cancelled", _cancelled),
    Rule("running", "it is another workspace's", lambda facts: facts.elsewhere is not None, _elsewhere),
    Rule("waiting", "somebody has paused it", lambda facts: facts.paused is not None, _paused),
    Rule("stuck", "there is work, and the disk is full", _is_full, _full),
    Rule("stuck", "a runner says that it cannot move it", lambda facts: bool(facts.marks), _marked),
    Rule("stuck", "a call was claimed too often", lambda facts: facts.repeated is not None, _repeated),
    Rule("stuck", "a claimer died, or its lease ran out", lambda facts: bool(facts.lost), _lost),
    Rule("stuck", "its runner is deaf: heartbeats, no progress", _is_deaf, _deaf),
    Rule("stuck", "a runner cannot write", lambda facts: facts.refused is not None and facts.needs_writing, _refused),
    Rule("running", "its body does not come back", lambda facts: facts.busy is not None, _busy),
    Rule("waiting", "it asks a person", lambda facts: facts.question is not None, _waiting),
    Rule("waiting", "a child run asks a person", lambda facts: any(each.asks for each in facts.below), _waiting_below),
    Rule("running", "a runner executes a call of it", lambda facts: bool(facts.executing), _executing),
    Rule("stuck", "old work, and no healthy runner", _is_old, _old),
    Rule("queued", "work waits for a runner", lambda facts: facts.queued > 0, _queued),
    Rule("running", "it waits for a signal", lambda facts: bool(facts.signals), _signalled),
    Rule("waiting", "the child runs it waits for are paused", _is_paused_below, _paused_below),
    Rule("running", "it waits for a child run", lambda facts: bool(facts.children), _parent),
    Rule("running", "it sleeps, and a runner is up", lambda facts: _sleeps(facts) and _is_up(facts), _sleeping),
    Rule("queued", "it sleeps, and no runner is up", _sleeps, _sleeping),
    Rule("stuck", "nothing will move it", lambda facts: True, _forgotten),
)
