"""What is known about one run at one instant: the facts that `states.py` decides on.

Named tuples, no dataclasses: the fast `status` cannot afford to make such classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .summary import Status

# Queued work that nobody takes for this long, in seconds, with no healthy runner to be seen, is not about to move.
OLD_SECONDS = 60.0
# SEMANTICS §1: what was claimed this often and never finished takes its claimer down each time.
REPEATED_CLAIMS = 3
# A runner whose heartbeat is current while its loop has not come round for this long, in seconds, is deaf. A slice is
# ended after ten, so a body that blocks is no reason.
DEAF_SECONDS = 30.0
# With less room than this, in bytes, neither git nor SQLite can write what a step needs.
FULL_BYTES = 256 * 1024

DEADLINE_PASSED = "its deadline passed"


def is_deadline(reason: str, by: Mapping[str, str] | None) -> bool:
    """Whether it was its own deadline that asked a run to end, not a person who gave that reason."""
    return reason == "deadline" and (by is None or by == {"kind": "policy", "by": "deadline"})


class Mark(NamedTuple):
    """Why a runner says that a run is stuck."""

    reason: str
    hint: str


class Asked(NamedTuple):
    """Whom a question was put to, when, and until when it may be answered; `late` when that has passed."""

    of: str | None = None
    since: str | None = None
    until: str | None = None
    late: bool = False


class Executing(NamedTuple):
    """A call in a runner's hands: for how many seconds, and the last line it printed."""

    key: str
    runner: str
    seconds: float
    line: str = ""


class Below(NamedTuple):
    """A child run that is waited for: its state in words, and whom it or a child of its own waits for.

    `asks` are the run and the key of an open question; `paused` is the run whose pause keeps it, and nothing else does.
    """

    run_id: str
    label: str
    asks: tuple[str, str] | None = None
    paused: str | None = None


class Facts(NamedTuple):
    """What is known about one run at one instant.

    `queued` counts rows that a runner could claim now, `oldest` is the age in seconds of the oldest of them.
    `executing` names the calls in hand, `longest` is the one that has been so longest.
    `lost` names calls whose claimer is dead or late, as `lost_by` says, `repeated` one that was claimed too often
    without an end. `healthy_runners` are those that live and could move this run; `unable` says of the living ones
    why they could not, `deaf` and `silent` which of them do not work, and `silent` which do not say anything.
    `refused` is what a living runner could not write, `free` how many bytes the disk of the receipts has left.
    `receipts` is the repository and `ref` the run's place in it, for commands that a person can copy.
    `cancelled` is why and by whom the end was asked for, `paused` the same of a pause, with its time.
    `elsewhere` is the id of the workspace that a run belongs to, when it is not this one.
    `busy` says where a runner's body is that does not come back. `signals` are the names that are waited for.
    `failed_at` is `file:line` of the code that the run failed in.
    """

    run_id: str
    status: Status
    operator: str = "the operator"
    question: str | None = None
    asked: Asked = Asked()
    error: str | None = None
    failed_at: str | None = None
    cancel_requested: bool = False
    cancelled: str | None = None
    paused: str | None = None
    marks: tuple[Mark, ...] = ()
    queued: int = 0
    oldest: float = 0.0
    executing: tuple[str, ...] = ()
    longest: Executing | None = None
    busy: str | None = None
    lost: tuple[str, ...] = ()
    lost_by: str | None = None
    repeated: str | None = None
    healthy_runners: int = 0
    unable: tuple[str, ...] = ()
    deaf: tuple[str, ...] = ()
    deaf_executing: bool = False
    silent: tuple[str, ...] = ()
    refused: str | None = None
    free: int | None = None
    due: str | None = None
    receipts: str = ".hermes/workflows.git"
    ref: str = ""
    signals: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    below: tuple[Below, ...] = ()
    elsewhere: str | None = None

    @property
    def needs_writing(self) -> bool:
        """Whether somebody has, or is about to have, something to write for this run."""
        return bool(self.queued or self.executing or self.lost)
