"""Runners' processes: what each has in memory, and loses when it dies."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.model.rows import Lease


@dataclass
class Hand:
    """A call that an owner executes."""

    lease: Lease
    attempt: int
    stopped: bool = False


@dataclass
class Body:
    """A run that a process has in memory: what it has put into the queue, and how many receipts it had seen then.

    One that is made again from receipts offers all that is open, and gives up what has no result.
    """

    seen: int
    offered: set[str] = field(default_factory=set)
    gave_up: bool = False


@dataclass
class Owner:
    """A runner's process."""

    name: str
    bodies: dict[str, Body] = field(default_factory=dict)
    leave_by: dict[str, float] = field(default_factory=dict)
    hands: dict[int, Hand] = field(default_factory=dict)

    def drop(self, run_id: str) -> None:
        self.bodies.pop(run_id, None)
        self.leave_by.pop(run_id, None)

    def takes_over(self, lease: Lease) -> Hand | None:
        """What it executes for that call already, which goes on under this lease."""
        known = (each for each in self.hands.values() if each.lease.name == lease.name and not each.stopped)
        hand = next(known, None)
        return self.hands.pop(hand.lease.token) if hand else None

    def stop(self, run_id: str, key: str | None = None) -> None:
        for hand in self.hands.values():
            if hand.lease.name[0] == run_id and key in (None, hand.lease.name[1]):
                hand.stopped = True
