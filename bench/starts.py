"""What a command costs before it does anything, in a workspace that has seen many runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median

from bench.rows import Aim, Missing, Row, number
from bench.scenery import make, run_name
from bench.sizes import Place
from bench.workspaces import PROGRAM, seconds, settle, turns

AT_MOST = 1.5
DAYS = 400

_BARE = [sys.executable, "-c", "import click, sqlite3"]


def starts(place: Place) -> Iterator[Row | Missing]:
    runs = place.sizes.indexed_runs
    root = place.room()
    make(root, runs, days=DAYS, packed=True)
    settle(root)
    # The index is made by whoever needs it first.
    seconds([PROGRAM, "list", "--limit", "1"], root)
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
