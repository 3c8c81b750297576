"""One burst of ours (`ahead`): what git lacks of a run, and how an append adds to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .adding import Addition
from .ahead_file import WANTED, AheadFile
from .durability import Disk
from .objects import Batch

if TYPE_CHECKING:
    from .ahead import Ahead

_LANDS_FROM = 2 << 20
"""Bytes that are put into git at once, before they are due: they are in memory three times meanwhile."""

LARGEST = 16 << 20
"""Bytes that one receipt may add, and that a burst's file may hold, or git may lack of it."""

_LONGEST_PAUSE = 2.0


@dataclass
class Burst:
    """`old` and `tip` are commits (40 hex digits): where git has the run, and where it stands. `due` is monotonic.

    `batch` are the objects that git has not, of `waiting` bytes. `begun` says that the file has records, `taken` that
    somebody has taken it from us, by force. Git has refused it until `not_before` (monotonic), with pauses that grow.
    """

    run_id: str
    old: str
    tip: str
    file: AheadFile
    batch: Batch
    due: float
    begun: bool = False
    taken: bool = False
    waiting: int = 0
    not_before: float = 0.0
    pause: float = 0.0

    def is_due(self, now: float) -> bool:
        if now < self.not_before:
            return False
        return self.due <= now or self.waiting >= _LANDS_FROM or self.is_wanted

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits until git has it."""
        return os.access(self.file.path + WANTED, os.F_OK)

    @property
    def is_full(self) -> bool:
        return self.file.size >= LARGEST or self.waiting >= LARGEST

    def tried(self, now: float, lands_within: float, *, put: bool) -> None:
        """It is due again `lands_within` seconds from `now`, or later when git has refused it."""
        self.due = now + lands_within
        self.pause = 0.0 if put else min(max(2 * self.pause, lands_within), _LONGEST_PAUSE)
        self.not_before = now + self.pause


class Recording:
    """One append to a burst, under the run's lock, or while it goes on.

    What is added is on its way to the disk while its trees are made. It counts once it is durable; unless it counts,
    it is taken back. For whoever holds the `guard` of `ahead`.
    """

    def __init__(self, ahead: Ahead, disk: Disk, run_id: str, batch: Batch) -> None:
        self._ahead = ahead
        self._disk = disk
        self._run_id = run_id
        self._batch = batch
        self._burst: Burst | None = None
        self._mark = (0, b"")
        self._refused = False

    def __enter__(self) -> Recording:
        return self

    def note(self, addition: Addition) -> None:
        """Write what a commit adds. Raises OSError."""
        if self._burst is None:
            self._burst = self._ahead.burst(self._run_id) or self._ahead.begin(self._run_id, addition.parent)
            if self._burst:
                self._mark = self._burst.file.mark
        # What a record may not be is not read again.
        self._refused = self._refused or self._burst is None or addition.size >= LARGEST
        if self._burst and not self._refused:
            file = self._burst.file
            position, _ = file.mark
            file.append(addition)
            self._disk.start_content(file.descriptor, position, file.size - position)

    def counts(self, tip: str) -> bool:
        """Make everything that was noted durable, which has led to the commit `tip`. Raises OSError.

        False, and nothing recorded, for more than a burst takes, and when the run went on elsewhere while this process
        was suspended.
        """
        burst = self._burst
        if burst is None or self._refused:
            return False
        self._disk.sync_content(burst.file.descriptor)
        if not burst.begun:
            self._disk.sync_folder(os.path.dirname(burst.file.path))
        if not burst.file.is_ours():
            # We were suspended for so long that somebody else has taken the burst. It may have died before git had it,
            # so what was acknowledged is put there once more, by whoever lands it now.
            burst.taken = True
            return False
        burst.begun, burst.tip = True, tip
        burst.batch.objects.update(self._batch.objects)
        burst.waiting += self._batch.size
        self._mark = burst.file.mark
        return True

    def __exit__(self, *error: object) -> None:
        if (burst := self._burst) is not None:
            if burst.file.mark != self._mark:
                burst.file.take_back(self._mark)
            if not burst.begun:
                self._ahead.done(burst)
