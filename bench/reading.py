"""Reading receipts again, against git's own program that reads the same: deciding a run anew, and the whole index."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.rows import Aim, Missing, Row, number
from bench.scenery import git, make, pack
from bench.sizes import Place
from bench.workspaces import PROGRAM, finished, settle, turns

AT_MOST = 2.0

_TRAILERS = "--format=%H%n%(trailers:only,unfold)"


def replay(place: Place) -> Iterator[Row | Missing]:
    steps = place.sizes.replayed
    root = finished(place.folder, "sequential", steps)
    pack(root)
    blobs = root / "blobs"
    blobs.write_text("".join(f"{blob}\n" for blob in _receipts(root, "refs/runs/bench")))
    theirs = [sys.executable, str(Path(__file__).with_name("cat_file.py")), ".hermes/workflows.git", str(blobs)]
    pairs = turns([PROGRAM, "replay", "bench"], theirs, root, place.sizes.rounds)
    what = f"`replay` of {steps:,} receipts, packed, by a new process"
    yield _row("replay", what, "`git cat-file --batch` and json.loads", pairs)


def _receipts(root: Path, ref: str) -> list[str]:
    """The blobs of the receipts that a commit has."""
    lines = git(root, "ls-tree", "-r", ref, "runs/").splitlines()
    return [line.split()[2] for line in lines if line.endswith(".json")]


def rebuild(place: Place) -> Iterator[Row | Missing]:
    runs, steps = place.sizes.ledger_runs, 8
    root = place.room()
    make(root, runs, steps=steps, days=place.sizes.ledger_days, packed=True)
    settle(root)
    theirs = ["git", "-C", ".hermes/workflows.git", "log", _TRAILERS, "ledger", "--glob=refs/runs/*"]
    pairs = turns([PROGRAM, "index", "rebuild"], theirs, root, place.sizes.rounds)
    receipts = runs * (steps + 2)
    what = f"`index rebuild`, {receipts:,} receipts in {runs:,} runs over {place.sizes.ledger_days} days, sealed"
    yield _row("rebuild", what, "`git log` with their trailers", pairs)


def _row(name: str, what: str, against: str, pairs: list[tuple[float, float]]) -> Row:
    ratios = tuple(ours / theirs for ours, theirs in pairs)
    ours, theirs = map(median, zip(*pairs, strict=True))
    detail = f"{number(ours)} s against {number(theirs)} s"
    return Row(name, what, against, ratios, "×", Aim("at most", AT_MOST), detail)
