"""What one handle on a queue knows about itself: the leases it gave out, to whom, and as which process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .liveness import Process
from .queue_port import Change, Lease, RunnerRow
from .room import is_suspect

SHOWN_SECONDS = 3600.0


@dataclass
class Held:
    process: Process = field(default_factory=Process.current)
    heartbeats: dict[str, RunnerRow] = field(default_factory=dict)
    leases: dict[str, tuple[Lease, str]] = field(default_factory=dict)

    def beats(self, row: RunnerRow) -> bool:
        """Note a heartbeat; says whether it is the first of its runner through this handle."""
        first = row.runner_id not in self.heartbeats
        self.heartbeats[row.runner_id] = row
        return first

    def process_of(self, runner: str) -> Process:
        """The process its last heartbeat here named, else this one."""
        row = self.heartbeats.get(runner)
        return Process.of(row) if row else self.process

    def tokens(self, runner: str) -> set[str]:
        return {token for token, (_, holder) in self.leases.items() if holder == runner}

    def suspects(self, runner: str, change: Change) -> bool:
        """Whether the runner holds, and keeps, a call that may have ended the processes of its last claimers."""
        ending = {lease.token for lease in (*change.finish, *change.release)}
        kept = (lease for lease, holder in self.leases.values() if holder == runner and lease.token not in ending)
        return any(map(is_suspect, kept))

    def take(self, leases: Iterable[Lease], runner: str) -> None:
        self.leases.update((lease.token, (lease, runner)) for lease in leases)

    def drop(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self.leases.pop(token, None)


def is_past(old: RunnerRow, new: RunnerRow) -> bool:
    """Whether the row of a dead process is of no more use once `new` has started.

    A dead runner stays visible until its successor beats; one that has none, for an hour.
    """
    late = old.boot_id != new.boot_id or new.elapsed - old.elapsed > SHOWN_SECONDS
    return Process.of(old).gone() and (late or old.runner_id == new.runner_id)
