"""The lease queue and the status index, as the rest of the project sees them. Disposable: never read to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ..core.summary import RunSummary
from .wanted import EVERY, Wanted, WantedReviews

Kind = Literal["workflow", "step", "agent", "bash", "child", "artifact", "timer", "notify"]
Limits = tuple[tuple[str, int], ...]

DECIDING: tuple[Kind, ...] = ("workflow", "timer", "child")
"""The kinds that need no executor."""


@dataclass(frozen=True)
class Work:
    """Something a runner can do: advance a run (key "") or execute one of its calls.

    Never the request and never a decision: whoever claims it asks the receipts.
    `visible_at` is wall time in seconds since 1970 before which nobody may claim it (timers, retries);
    `name` is whom a limit may name: the agent of an agent call.
    """

    run_id: str
    kind: Kind
    key: str = ""
    fingerprint: str = ""
    visible_at: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Lease:
    """A claimed row. `token` fences the row only; receipts are fenced by git.

    `claims` counts how often the row was claimed without being finished or released, this time included.
    `lost` says, for people, which claimers died in it or no longer answered; those that a restart of the machine
    took along are not among them.
    """

    work: Work
    token: str
    claims: int
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """What a runner would take now: at most `limit` rows of these kinds (all when empty).

    `limits` say how many rows may be leased at once, by all runners together: of a kind (`bash`), or of one agent
    (`agent:writer`). Of the calls whose claimers were lost several times a runner gets one at a time.
    `then` is what it would take as well, in the same transaction, once it has `limit` rows.
    """

    limit: int
    kinds: tuple[Kind, ...] = ()
    run_id: str | None = None
    limits: Limits = ()
    then: Claim | None = None

    @property
    def most(self) -> int:
        """The rows it may get altogether."""
        return self.limit + (self.then.most if self.then else 0)


@dataclass(frozen=True)
class Indexed:
    """A run's row in the index: its summary, where it stands in git, and its reviews that changed."""

    summary: RunSummary
    tip: str
    folder: str
    sealed: bool = False
    reviews: tuple[ReviewRow, ...] = ()


class Known(NamedTuple):
    """Where a run stands, as its row says."""

    tip: str
    sealed: bool
    seq: int


@dataclass(frozen=True)
class ReviewRow:
    """One line of the inbox, open or answered, exactly as the two receipts say."""

    run_id: str
    key: str
    status: str
    prompt: str = ""
    assignee: str | None = None
    requested_at: str | None = None
    expires_at: str | None = None
    answered_at: str | None = None
    answer: Any = None
    provenance: Any = None


@dataclass(frozen=True)
class Counts:
    """How many runs of a workflow there are, and how many of them ended in which way."""

    workflow: str
    runs: int
    completed: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True)
class Took:
    """From when to when a run went on, and what it used."""

    started_at: str
    finished_at: str | None
    usage: Mapping[str, Any]


@dataclass(frozen=True)
class InboxPage:
    """Questions with the workflows of their runs, the oldest first, and how many there are on all pages.

    `workflows` and `people` are those of all questions of the same status.
    """

    rows: Sequence[tuple[ReviewRow, str]]
    total: int
    workflows: Sequence[str]
    people: Sequence[str]


# Of a mark that says what somebody wants; every other kind is trouble.
PAUSED = "paused"


@dataclass(frozen=True)
class Stuck:
    """Why a run does not move, as one runner observed it; made again after a rebuild."""

    run_id: str
    kind: str
    reason: str
    hint: str
    key: str = ""
    code: str = ""
    since: str = ""
    runner: str = ""


@dataclass(frozen=True)
class RunnerRow:
    """A heartbeat. `elapsed` is CLOCK_BOOTTIME seconds of boot `boot_id` when it was last written.

    `silent` is for how many seconds the runner's loop has not come round, as the heartbeat's own thread counted them.
    `agents` are the names it has somebody for, `*` for all. `said` are the last lines of what executes, by the texts
    that `executing` has for it. `only` are the kinds of calls it executes (all when empty), `draining` says that it
    takes nothing new.
    """

    runner_id: str
    host: str
    pid: int
    pid_started: str
    boot_id: str
    elapsed: float
    started_at: str
    heartbeat_at: str
    lease_seconds: float
    concurrency: int
    executing: tuple[str, ...] = ()
    database: str = ""
    python: str = ""
    agents: tuple[str, ...] = ()
    silent: float = 0.0
    said: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    draining: bool = False


@dataclass(frozen=True)
class WorkRow:
    """A queue row as operators see it."""

    work: Work
    status: Literal["queued", "leased", "expired", "withdrawn"]
    runner: str | None
    claims: int
    offered_at: str
    claimed_at: str | None


@dataclass(frozen=True)
class Change:
    """One transaction. Applied in the order of the fields, then the claim is served."""

    enter: Sequence[Lease] = ()
    finish: Sequence[Lease] = ()
    release: Sequence[Lease] = ()
    offer: Sequence[Work] = ()
    withdraw: Sequence[tuple[str, str]] = ()
    index: Sequence[Indexed] = ()
    stuck: Sequence[Stuck] = ()
    unstuck: Sequence[str] = ()
    claim: Claim | None = None


class Queue(Protocol):
    """Thread-safe; any number of processes on one machine."""

    def apply(self, change: Change, runner: str) -> list[Lease]:
        """Do all of it in one transaction and return what was claimed.

        *enter* puts a call there as leased that its holder began without a row, since it holds the run's last one;
        a row that somebody else has claimed stays his.
        *finish* deletes the row when the token still holds; a workflow row that was offered again meanwhile
        goes back to the queue instead. *release* returns a row to the queue and takes its claim count back.
        *offer* inserts; an existing row stays as it is, except that a leased workflow row is marked for another
        turn and a withdrawn row becomes queued again. *withdraw* deletes an unleased row and marks a leased
        one, whose holder then kills the work. A claim takes free or expired rows that are visible, oldest
        first, fairly between runs; rows of runs that are stuck are not claimable.
        """

    def renew(self, leases: Sequence[Lease], seconds: float) -> dict[str, Literal["held", "withdrawn", "lost"]]:
        """Extend leases; the answer, by token, says which are still ours and which calls to kill."""

    def heartbeat(self, row: RunnerRow) -> None: ...
    def goodbye(self, runner_id: str) -> None: ...
    def runners(self) -> list[RunnerRow]: ...
    def drain(self, runner_id: str | None = None) -> None:
        """Ask runners that have a heartbeat here, all of them or those of one name, to take nothing new and end.

        The wish stands in their rows (`draining`) and outlives their heartbeats, until they say goodbye.
        """

    def indexed(self, run_id: str) -> Indexed | None: ...
    def list_indexed(self, wanted: Wanted = EVERY, *, limit: int = 50, offset: int = 0) -> list[Indexed]:
        """Runs, the newest first."""

    def counts(self) -> list[Counts]:
        """By the names of workflows, in their order."""

    def lately(self, workflow: str, limit: int) -> list[Took]:
        """The newest runs of a workflow."""

    def reviews(self, *, run_id: str | None = None, status: str | None = None) -> list[ReviewRow]: ...
    def inbox(self, wanted: WantedReviews, *, limit: int, offset: int = 0) -> InboxPage: ...
    def open_questions(self) -> list[tuple[str, str]]:
        """Run and key of each question that nobody has answered, the oldest first."""

    def stuck(self, run_id: str | None = None) -> list[Stuck]: ...
    def work(self, run_id: str | None = None) -> list[WorkRow]: ...
    def unqueued(self) -> list[tuple[str, str]]:
        """Unfinished runs, with their tips, that no row would move but one that ends their waiting, and no mark is of.

        Those that wait for nothing but an answer are among them.
        """

    def forget(self, run_id: str) -> None:
        """Remove every row of a run (its ref vanished)."""

    def rewind(self, run_id: str) -> None:
        """Remove what the index says of a run that stands further back now.

        Its work stays: whoever holds its body counts on that, and what nobody wants any more is seen when it is served.
        """

    def changed(self) -> bool:
        """Whether another connection has written since the last call (SQLite's data_version)."""

    def epoch(self) -> object:
        """Changes when the rows were made anew: those of calls, of which receipts do not know, are gone then."""

    def next_visible(self) -> float | None:
        """Wall time of the earliest row that is not yet visible."""

    def close(self) -> None: ...
