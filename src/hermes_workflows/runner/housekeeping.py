"""Maintenance as a job of the runner: in a thread of its own, when there is much to pack and little to do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import HermesError, TemporarilyLocked
from ..store.maintenance import LOOSE_LIMIT, Housekeeper, clutter
from .records import log

if TYPE_CHECKING:
    from ..workspace import Workspace

# In seconds: packing frees thousands of files, which makes writing slow for a while, so a pause must look like one.
IDLE_SECONDS = 10.0
LOOK_SECONDS = 10.0
# A runner that is never idle packs all the same before the disk has no names left.
BUSY_LIMIT = 20 * LOOSE_LIMIT


class Housekeeping:
    """Looks now and then; of several runners the one that holds the lease does it, the others find it done."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._clock = workspace.clock
        self._look_at = self._clock.elapsed() + LOOK_SECONDS
        self._thread: threading.Thread | None = None
        self._housekeeper = Housekeeper(workspace.paths.receipts)

    def look(self, idle: float) -> None:
        """`idle`: for how many seconds nothing has been done."""
        now = self._clock.elapsed()
        if now < self._look_at or (self._thread is not None and self._thread.is_alive()):
            return
        self._look_at = now + LOOK_SECONDS
        if clutter(self._workspace.paths.receipts) >= (LOOSE_LIMIT if idle >= IDLE_SECONDS else BUSY_LIMIT):
            self._thread = threading.Thread(target=self._maintain, name="hermes-maintenance", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End what is going on: the runner leaves, and what is not packed stays loose."""
        self._housekeeper.stop()
        if self._thread is not None:
            self._thread.join()

    def _maintain(self) -> None:
        try:
            done = self._workspace.maintain(self._housekeeper)
        except TemporarilyLocked:
            return
        except (HermesError, OSError) as error:
            if not self._housekeeper.stopped:
                log.warning("maintenance: %s", error)
            return
        log.info("maintenance: %d bytes became %d", done.before.size, done.after.size)
        for failed in done.failed:
            log.warning("maintenance: %s", failed)
