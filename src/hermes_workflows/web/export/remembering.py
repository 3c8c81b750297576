"""A ledger that remembers the runs it has read last: an export shows a run on as many pages as the run has calls."""

from __future__ import annotations

from typing import Any, cast

from ...core.receipts import Receipt
from ...store.ports import Head, Ledger

# A run, and those that its pages compare it with.
_RUNS = 4


def remembering(ledger: Ledger) -> Ledger:
    """`ledger`, for as long as what it says of a run may stay what it said first."""
    return cast(Ledger, _Remembering(ledger))


class _Remembering:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, tuple[Head, list[Receipt]]] = {}

    def read(self, run_id: str, since: str | None = None) -> tuple[Head, list[Receipt]]:
        if since is not None:
            return self._ledger.read(run_id, since)
        # Read again it is the newest one once more.
        found = self._known.pop(run_id, None) or self._ledger.read(run_id)
        self._known[run_id] = found
        while len(self._known) > _RUNS:
            del self._known[next(iter(self._known))]
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)
