"""Whether the process behind a lease or a heartbeat still exists on this machine.

A process is named by host, pid and the moment it started: a pid alone comes back after a restart, and a worker id
is often the same as before the crash.
Light on purpose: the fast `status` imports this, and a dataclass costs it half a millisecond.
"""

from __future__ import annotations

import json
import os
from functools import cache
from sqlite3 import Row
from typing import TYPE_CHECKING, Literal, NamedTuple

from .database import DatabaseGone

if TYPE_CHECKING:
    from .queue_port import RunnerRow

_MOST_PIDS = 1 << 31
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"


Standing = Literal["queued", "leased", "expired", "withdrawn"]


class Process(NamedTuple):
    host: str
    pid: int
    pid_started: str

    @classmethod
    def current(cls) -> Process:
        return cls(this_host(), os.getpid(), process_started(os.getpid()) or "")

    @classmethod
    def of(cls, row: RunnerRow) -> Process:
        return cls(row.host, row.pid, row.pid_started)

    def to_text(self) -> str:
        return _text_of(self)

    @classmethod
    def from_text(cls, text: str) -> Process:
        """The inverse of `to_text`. Raises ValueError for anything else."""
        try:
            host, pid, started = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("no process") from None
        # A pid becomes part of a path.
        if (
            type(pid) is not int
            or not 0 < pid < _MOST_PIDS
            or not isinstance(host, str)
            or not isinstance(started, str)
        ):
            raise ValueError("no process")
        return cls(host, pid, started)

    @classmethod
    def of_holder(cls, text: str) -> Process:
        """Who has a lease, as its row says it. Raises DatabaseGone for damage that SQLite cannot see."""
        try:
            return cls.from_text(text)
        except ValueError as error:
            raise DatabaseGone(f"a damaged row: its holder is {error}") from None

    def gone(self) -> bool:
        """True when it is certain that the process is over; another host's processes never are."""
        if self.host != this_host():
            return False
        started = process_started(self.pid)
        return started is None or (bool(started and self.pid_started) and started != self.pid_started)


@cache  # a claim asks for it, and a process seldom knows more than itself
def _text_of(process: Process) -> str:
    return json.dumps(process)


def standing(row: Row, elapsed: float, boot_id: str) -> Standing:
    """How a queue row looks to an operator: expired is what the next claim would give to somebody else."""
    if row["withdrawn"]:
        return "withdrawn"
    if row["token"] is None:
        return "queued"
    late = row["state"] != "leased" or row["expires_at"] <= elapsed or row["boot_id"] != boot_id
    return "expired" if late or Process.of_holder(row["holder"]).gone() else "leased"


def new_token() -> str:
    """Random, so that nobody holds a lease by guessing or by counting."""
    return os.urandom(8).hex()


@cache
def this_host() -> str:
    """The name of this machine, with its pid namespace when that is a container's own."""
    name = os.uname().nodename
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return name
    return name if namespace == _INITIAL_PID_NAMESPACE else f"{name}/{namespace}"


def process_started(pid: int) -> str | None:
    """When process `pid` started, in the kernel's own unit; "" where that cannot be known, None when it is over."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The command's name stands in parentheses and may hold spaces and parentheses itself.
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return "" if _answers(pid) else None
    state, started = fields[0], fields[19]
    # A zombie has ended; only its parent has not looked yet.
    return None if state in (b"Z", b"X") else started.decode()


def _answers(pid: int) -> bool:
    """Also where /proc hides other users' processes, or this one has no file left to look there with."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
