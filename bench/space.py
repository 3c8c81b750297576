"""What receipts take on disk, after the maintenance that idle runners do."""

from __future__ import annotations

from collections.abc import Iterator

from bench.rows import Aim, Missing, Row, number
from bench.scenery import git
from bench.sizes import Place
from bench.workspaces import finished, opened

AT_MOST = 2.0
RUNS = 10


def space(place: Place) -> Iterator[Row | Missing]:
    steps = place.sizes.kilobytes // RUNS
    names = [f"run-{number}" for number in range(RUNS)]
    root = finished(place.folder, "kilobytes", steps, names)
    with opened(root) as workspace:
        done = workspace.maintain()
        receipts = sum(len(workspace.ledger.read(name)[1]) for name in names)
    listed = git(root, "ls-tree", "-r", "-l", "ledger", "runs/").splitlines()
    sizes = [int(line.split()[3]) for line in listed if "/steps/" in line]
    detail = f"a receipt has {number(sum(sizes) / len(sizes) / 1000)} KB as JSON;"
    detail += f" {number(done.before.size / receipts / 1000)} KB before maintenance"
    what = f"disk a receipt, {RUNS} runs of {steps} receipts of 1 KB, after `maintenance run`"
    kilobytes = done.after.size / receipts / 1000
    yield Row("space", what, "a fixed number", (kilobytes,), "KB", Aim("at most", AT_MOST), detail)
