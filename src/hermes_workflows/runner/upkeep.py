"""What a runner does for its database beside the work: wakes what nobody woke, revives, seals."""

from __future__ import annotations

from ..errors import HermesError
from ..settings import Agents
from .about import about
from .housekeeping import Housekeeping
from .polling import Polling
from .records import Records, log
from .revival import Reviver
from .unqueued import Unqueued

# Finished runs are sealed when nothing has happened for this long, in seconds: sealing takes a lock others wait for.
SEAL_SECONDS = 5.0
# Comparing index and ledger reads every ref. It may take this share of the time.
_COMPARING_SHARE = 0.05


class Upkeep:
    def __init__(self, records: Records, agents: Agents) -> None:
        self._records = records
        self._reviver = Reviver(records, agents)
        self._unqueued = Unqueued(records)
        self._clock = records.workspace.clock
        self._compare_at = 0.0
        self._seal_at: float | None = self._clock.elapsed() + SEAL_SECONDS
        self.polling = Polling(records.workspace)
        self._housekeeping = Housekeeping(records.workspace)

    def sweep(self) -> None:
        """Lift marks, end cancelled runs that are stuck, and queue runs whose news stand in git only, or nothing of."""
        self.polling.look()
        try:
            self._compare()
            self._reviver.look()
            self._unqueued.look()
        except HermesError as error:
            # The next sweep tries again; the work of this database says by itself what is wrong with it.
            log.warning("%s: %s", self._records.workspace.paths.sqlite, error.message)

    def _compare(self) -> None:
        """Whoever answered, cancelled or started may have died, or been unable to write, between git and SQLite."""
        begin = self._clock.elapsed()
        if begin < self._compare_at:
            return
        # What this process knows comes first, else it would be read from the ledger again.
        if self._records.pending:
            self._records.apply(None)
        for run_id in self._records.workspace.refresh().put_back:
            with about(run_id):
                log.warning("somebody had moved its ref; it was put back, and `verify %s` shows where", run_id)
        self._compare_at = begin + (self._clock.elapsed() - begin) / _COMPARING_SHARE

    def maintain(self, idle: float) -> None:
        """Have git pack what is loose, when it is worth it; `idle` in seconds."""
        self._housekeeping.look(idle)

    def close(self) -> None:
        self._housekeeping.close()

    def seal(self, *, now: bool) -> None:
        """Seal finished runs when there may be some: `now`, or when it has been quiet for a while."""
        if self._records.ended_runs:
            self._records.ended_runs = False
            self._seal_at = self._clock.elapsed() + SEAL_SECONDS
        if self._seal_at is None or (not now and self._clock.elapsed() < self._seal_at):
            return
        self._seal_at = None
        workspace = self._records.workspace
        try:
            workspace.ledger.seal(keep=workspace.registry.keep_runs)
        except HermesError as error:
            log.warning("finished runs could not be sealed: %s", error.message)
