"""What one handle on a queue knows about itself: the leases it gave out, to whom, and as which process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .liveness import Process
from .queue_port import Lease, RunnerRow


@dataclass
class Held:
    process: Process = field(default_factory=Process.current)
    heartbeats: dict[str, RunnerRow] = field(default_factory=dict)
    leases: dict[str, tuple[Lease, str]] = field(default_factory=dict)

    def process_of(self, runner: str) -> Process:
        """The process its last heartbeat here named, else this one."""
        row = self.heartbeats.get(runner)
        return Process.of(row) if row else self.process

    def tokens(self, runner: str) -> set[str]:
        return {token for token, (_, holder) in self.leases.items() if holder == runner}

    def take(self, leases: Iterable[Lease], runner: str) -> None:
        self.leases.update((lease.token, (lease, runner)) for lease in leases)

    def drop(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self.leases.pop(token, None)
