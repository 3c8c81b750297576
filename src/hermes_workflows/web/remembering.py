"""A ledger that remembers the runs it has read last: reading 10,000 receipts takes seconds, and one page asks twice.

What is remembered is of one commit, and a commit never says anything else. A run that has moved is read from there on.
"""

from __future__ import annotations

import threading
from typing import Any, Final, cast

from ..core.receipts import Receipt
from ..errors import HermesError
from ..store.ports import Head, Ledger

# A run, and those that its pages compare it with; receipts in all, but for those of the run that was read last.
_RUNS: Final = 4
_RECEIPTS: Final = 25_000

_Known = tuple[Head, list[Receipt]]


def remembering(ledger: Ledger, *, still: bool = False) -> Ledger:
    """`ledger`, quicker; `still` is for who wants a run to stay what it was when it was read first."""
    return cast(Ledger, _Remembering(ledger, still))


class _Remembering:
    """Thread-safe: two threads may read the same run at once, and either one's is remembered."""

    def __init__(self, ledger: Ledger, still: bool) -> None:
        self._ledger = ledger
        self._still = still
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def read(self, run_id: str, since: str | None = None) -> _Known:
        if since is not None:
            return self._ledger.read(run_id, since)
        with self._lock:
            known = self._known.get(run_id)
        head, receipts = known if known and self._still else self._now(run_id, known)
        with self._lock:
            # Read again it is the newest one once more.
            self._known.pop(run_id, None)
            self._known[run_id] = head, receipts
            while len(self._known) > 1 and self._is_too_much():
                del self._known[next(iter(self._known))]
        return head, list(receipts)

    def _now(self, run_id: str, known: _Known | None) -> _Known:
        if known is None:
            return self._ledger.read(run_id)
        try:
            head, added = self._ledger.read(run_id, known[0].tip)
        except HermesError:
            # It does not go on from there any more, or is gone: the whole of it says what is wrong.
            return self._ledger.read(run_id)
        return head, [*known[1], *added]

    def _is_too_much(self) -> bool:
        return len(self._known) > _RUNS or sum(len(receipts) for _, receipts in self._known.values()) > _RECEIPTS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
