"""The seven states an operator sees, each with why and what to do next.

The receipts say only running, waiting or how a run ended. Whether a running one is queued, claimed or stuck is
an observation of the queue and of runners: it comes in as facts (`state_facts.py`) and can be made again at any time.
`state_rules.py` is the table of what follows from them.
"""

from __future__ import annotations

from typing import NamedTuple

from .state_facts import DEADLINE_PASSED, OLD_SECONDS, Asked, Below, Executing, Facts, Mark, is_deadline
from .state_rules import TABLE, State

__all__ = [
    "DEADLINE_PASSED",
    "OLD_SECONDS",
    "Asked",
    "Below",
    "Executing",
    "Facts",
    "Mark",
    "OperationalState",
    "State",
    "is_deadline",
    "operational_state",
]


class OperationalState(NamedTuple):
    """`state` is for programs, `label` for people; `next_action` is None when there is nothing to do."""

    state: State
    label: str
    reason: str
    next_action: str | None


def operational_state(facts: Facts) -> OperationalState:
    """What an operator is shown for these facts."""
    rule = next(rule for rule in TABLE if rule.applies(facts))
    reason, action = rule.says(facts)
    asked = facts.asked.of if facts.paused is None else None
    label = f"Waiting on {asked or facts.operator}" if rule.state == "waiting" else rule.state.capitalize()
    return OperationalState(rule.state, label, reason, action)
