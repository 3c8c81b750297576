"""What a command costs before it does anything, in a workspace that has seen many runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.rows import Aim, Missing, Row, number
from bench.scenery import BATCH, make, run_name
from bench.sizes import Place
from bench.workspaces import PROGRAM, opened, settle, turns
from hermes_workflows.store import peek
from hermes_workflows.store.queue_port import Change, Indexed

AT_MOST = 1.5
DAYS = 400
# As many as have refs of their own in a workspace that is kept; of all older ones these commands see the index only.
WITH_REFS = 1_000

_BARE = [sys.executable, "-c", "import click, sqlite3"]


def starts(place: Place) -> Iterator[Row | Missing]:
    runs = place.sizes.indexed_runs
    root = place.room()
    _fill(root, runs)
    middle = run_name(runs // 2)
    for name, command in (
        ("status", [PROGRAM, "status", "--id", middle]),
        ("list", [PROGRAM, "list", "--limit", "20"]),
        ("help", [PROGRAM, "--help"]),
    ):
        pairs = turns(command, _BARE, root, place.sizes.starts)
        ratios = tuple(ours / theirs for ours, theirs in pairs)
        detail = f"{number(median(ours for ours, _ in pairs) * 1000)} ms against"
        detail += f" {number(median(theirs for _, theirs in pairs) * 1000)} ms"
        what = f"`{' '.join(command[1:])}`, {runs:,} runs"
        yield Row(f"start-{name}", what, "`import click, sqlite3`", ratios, "×", Aim("at most", AT_MOST), detail)


def _fill(root: Path, runs: int) -> None:
    """Runs in git and in the index; beyond the newest, rows alone, which are copies of theirs under other names."""
    real = min(runs, WITH_REFS)
    make(root, real, days=DAYS, packed=True)
    settle(root)
    with opened(root) as workspace:
        workspace.refresh()
        known = [row for row in map(workspace.queue.indexed, map(run_name, range(real))) if row]
        for begin in range(real, runs, BATCH):
            rows = [_copied(known[at % real], at) for at in range(begin, min(begin + BATCH, runs))]
            workspace.queue.apply(Change(index=rows), "bench")
        # Without it the next look would compare every row with git, and forget the copies.
        workspace.queue.put_stamp(str(peek.stamp(workspace.paths.receipts)), workspace.queue.epoch())


def _copied(row: Indexed, number: int) -> Indexed:
    return replace(row, summary=replace(row.summary, run_id=run_name(number)), sealed=True)
