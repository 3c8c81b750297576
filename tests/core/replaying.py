"""Replays recorded histories in a process of its own: `python -m tests.core.replaying < histories > traces`."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.core.programs import interpreted

from hermes_workflows.core.history import fold
from hermes_workflows.core.live import Decision, LiveRun
from hermes_workflows.core.receipts import Author, Receipt, draft, load

Trace = list[Any]


def as_text(receipts: list[Receipt]) -> list[list[str]]:
    """Receipts as the files they are."""
    return [[each.path, draft(each, Author("test")).render(each.seq).decode()] for each in receipts]


def trace_of(files: list[list[str]]) -> Trace:
    """What the body decides after each receipt."""
    history = fold([load(path, text.encode(), _no_blobs) for path, text in files])
    live = LiveRun("run", interpreted, history.started)
    for note in history.notes:
        live.take(note)
    trace = [_shown(live.start())]
    for receipt in history.deliveries:
        decision = live.take(receipt)
        assert decision is not None
        trace.append(_shown(decision))
    assert live.evict() == []
    return trace


def _shown(decision: Decision) -> list[Any]:
    end = [decision.end.status, decision.end.output] if decision.end else None
    calls = (decision.requested, decision.cancelled)
    return [*([[each.key, each.fingerprint] for each in some] for some in calls), end, bool(decision.stuck)]


def _no_blobs(sha256: str) -> bytes:
    raise AssertionError(f"no blob {sha256} was written")


if __name__ == "__main__":
    json.dump([trace_of(files) for files in json.load(sys.stdin)], sys.stdout)
