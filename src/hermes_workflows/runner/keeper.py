"""Signs of life, from a thread of its own: leases are renewed and heartbeats written while everything else works."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.clock import Clock
from ..core.divergence import PYTHON
from ..core.timestamps import render_time
from ..errors import HermesError
from ..store.liveness import Process, process_started, this_host
from ..store.queue_port import Lease, RunnerRow
from .dispatch import shown
from .records import log

# In seconds: how often to look whether calls were withdrawn, and whether there is something new to tell.
TICK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 5.0
_LINE_SECONDS = 2.0


@dataclass
class Kept:
    """One database's leases, as the keeper sees them: `leases`, `said` and `notes` ask the dispatcher."""

    database: str
    renew: Callable[[Sequence[Lease], float], Mapping[str, str]]
    heartbeat: Callable[[RunnerRow], None]
    goodbye: Callable[[str], None]
    leases: Callable[[], Sequence[Lease]]
    answers: Callable[[Mapping[str, str]], None]
    said: Callable[[], Mapping[str, str]] = dict
    notes: Callable[[], Sequence[str]] = tuple
    agents: tuple[str, ...] = ()
    runners: Callable[[], Sequence[RunnerRow]] = tuple
    withdrawn: threading.Event = field(default_factory=threading.Event)


class Silence:
    """For how long a loop has not come round.

    Added up look by look: while the whole process was suspended nobody looked, and its loop is not to blame.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._rounds = -1
        self._looked_at = 0.0

    def look(self, rounds: int, now: float) -> None:
        since, self._looked_at = now - self._looked_at, now
        self.seconds = self.seconds + min(since, 2 * TICK_SECONDS) if rounds == self._rounds else 0.0
        self._rounds = rounds


@dataclass(frozen=True)
class Loop:
    """The runner's loop, as the keeper sees it: what it has to tell, how often it came round, whether it ends.

    `drain` asks it to finish what executes, and to take nothing new. `alive` hears about once a second for how many
    seconds it has not come round.
    """

    notes: Callable[[], Sequence[str]]
    rounds: Callable[[], int]
    draining: Callable[[], bool]
    drain: Callable[[], None]
    alive: Callable[[float], None]


class Keeper:
    """Renews and reports until it is closed."""

    def __init__(
        self,
        runner_id: str,
        clock: Clock,
        lease_seconds: float,
        concurrency: int,
        only: Sequence[str],
        kept: Sequence[Kept],
        loop: Loop,
    ) -> None:
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._kept = kept
        self._loop = loop
        self._told: Sequence[str] = ()
        self._said: Sequence[str] = ()
        self._silence = Silence()
        self._ended = threading.Event()
        self._row = RunnerRow(
            runner_id=runner_id,
            host=this_host(),
            pid=os.getpid(),
            pid_started=process_started(os.getpid()) or "",
            boot_id=clock.boot_id,
            elapsed=clock.elapsed(),
            started_at=render_time(clock.now()),
            heartbeat_at=render_time(clock.now()),
            lease_seconds=lease_seconds,
            concurrency=concurrency,
            python=PYTHON,
            only=tuple(only),
        )
        self._thread = threading.Thread(target=self._keep, name="hermes-keeper", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for kept in self._kept:
            self._guarded(lambda kept=kept: kept.goodbye(self._row.runner_id))  # type: ignore[misc]

    def _keep(self) -> None:
        renewed = beaten = self._clock.elapsed()
        while not self._ended.wait(min(TICK_SECONDS, self._lease_seconds / 3)):
            now = self._clock.elapsed()
            self._silence.look(self._loop.rounds(), now)
            self._loop.alive(self._silence.seconds)
            if now - renewed >= self._lease_seconds / 3 or any(kept.withdrawn.is_set() for kept in self._kept):
                renewed = now
                self._renew()
            if now - beaten >= self._patience():
                beaten = now
                self._beat()

    def _renew(self) -> None:
        for kept in self._kept:
            kept.withdrawn.clear()
            self._guarded(lambda kept=kept: self._look_for_a_wish(kept.runners()))  # type: ignore[misc]
            leases = kept.leases()
            if leases:
                self._guarded(lambda kept=kept, leases=leases: kept.answers(kept.renew(leases, self._lease_seconds)))  # type: ignore[misc]

    def _look_for_a_wish(self, rows: Sequence[RunnerRow]) -> None:
        """Whether somebody wants this runner to end: it stands in its row, and survives its heartbeats."""
        mine = Process.of(self._row)
        if any(row.draining and row.runner_id == self._row.runner_id and Process.of(row) == mine for row in rows):
            self._loop.drain()

    def _beat(self) -> None:
        notes, self._told, self._said = self._loop.notes(), self._news(), self._lines()
        for kept in self._kept:
            executing = [shown(lease) for lease in kept.leases()]
            row = replace(
                self._row,
                elapsed=self._clock.elapsed(),
                heartbeat_at=render_time(self._clock.now()),
                executing=(*executing, *notes, *kept.notes()),
                database=kept.database,
                agents=kept.agents,
                silent=self._silence.seconds,
                said=kept.said(),
                draining=self._loop.draining(),
            )
            self._guarded(lambda kept=kept, row=row: kept.heartbeat(row))  # type: ignore[misc]

    def _patience(self) -> float:
        """How old a heartbeat may become, in seconds: what is new is told at once, a line that was printed soon."""
        if self._news() != self._told:
            return 0.0
        longest = _LINE_SECONDS if self._lines() != self._said else _HEARTBEAT_SECONDS
        return min(longest, self._lease_seconds / 3)

    def _lines(self) -> Sequence[str]:
        return [line for kept in self._kept for line in kept.said().values()]

    def _news(self) -> Sequence[str]:
        """What is told at once, and not only with the next heartbeat."""
        draining = ["draining"] if self._loop.draining() else []
        return [*draining, *self._loop.notes(), *(note for kept in self._kept for note in kept.notes())]

    def _guarded(self, work: Callable[[], None]) -> None:
        # The next tick tries again; a keeper that dies would let every lease of this process expire.
        try:
            work()
        except HermesError as error:
            log.warning("no sign of life could be written: %s", error.message)
        except Exception:
            log.exception("no sign of life could be written")
