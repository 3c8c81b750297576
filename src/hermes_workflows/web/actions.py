"""What people do with a run beside answering: each action as a value, with the command that does the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..core.plain import command_line
from ..core.summary import RunSummary
from ..errors import NotFound
from .rendering import segment

Verb = Literal["cancel", "pause", "resume", "fork", "retry"]


@dataclass(frozen=True)
class Action:
    """`about` says what it does. It asks for a reason, or for the id of a new run with `new`."""

    verb: Verb
    label: str
    about: str
    new: bool = False


ACTIONS: Final[Mapping[str, Action]] = {
    each.verb: each
    for each in (
        Action("cancel", "Cancel", "What executes is stopped, the workflow cleans up, and the run ends as cancelled."),
        Action(
            "pause", "Pause", "Nothing more is decided or started until somebody resumes it; what executes finishes."
        ),
        Action("resume", "Resume", "A paused run goes on."),
        Action(
            "fork",
            "Fork",
            "A new run begins with what this one has recorded and goes on from there under the present code. "
            "Later steps run again, and people are asked again.",
            new=True,
        ),
        Action(
            "retry",
            "Retry",
            "A stuck run goes on in place; of a failed or cancelled one a new run takes up what it has recorded.",
            new=True,
        ),
    )
}


@dataclass(frozen=True)
class Offer:
    """An action as a link beside a run; `command` does the same."""

    label: str
    href: str
    command: str


def action_of(verb: str) -> Action:
    try:
        return ACTIONS[verb]
    except KeyError:
        raise NotFound(f"{verb!r} is nothing that is done with a run", hint=f"there are {', '.join(ACTIONS)}") from None


def offers(run: str, summary: RunSummary, state: str, *, past: bool) -> tuple[Offer, ...]:
    """What can be done with a run that stands so; from a moment that has passed one can only go on in a new run."""
    verbs: list[Verb] = []
    if not past and not summary.ended:
        verbs += ["resume" if summary.paused else "pause", "cancel"]
    if not past and (state == "stuck" or summary.status in ("failed", "cancelled")):
        verbs.append("retry")
    return tuple(offer(each, run) for each in (*verbs, "fork"))


def offer(verb: str, run: str) -> Offer:
    return Offer(ACTIONS[verb].label, f"/actions/{verb}/{segment(run)}", command(verb, run))


def command(verb: str, run: str, new: str = "", reason: str = "") -> str:
    """The same from a terminal, as it is to be typed."""
    words = [verb, run]
    words += ["--id", new or "NEW"] if verb == "fork" else ["--id", new] if new else []
    words += ["--reason", reason] if reason else []
    return command_line(*words)
