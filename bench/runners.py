"""Several runner processes on one workspace: what a second core is worth, and what work is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.rows import Aim, Missing, Row, against_neighbours, number
from bench.sizes import Place
from bench.steps import measured
from bench.workspaces import new, opened, runner

RUNNERS = 4
AT_LEAST = 1.8
MEMORY_MB = 120


@dataclass(frozen=True)
class Worked:
    """`twice` is how many calls were executed more than once."""

    per_second: float
    twice: int


def many(place: Place) -> Iterator[Row | Missing]:
    runs, steps = place.sizes.runs, place.sizes.steps_a_run
    ones = [_worked(place, 1)]
    fours: list[Worked] = []
    for _ in range(place.sizes.rounds):
        fours.append(_worked(place, RUNNERS))
        ones.append(_worked(place, 1))
    ratios = against_neighbours([each.per_second for each in fours], [each.per_second for each in ones])
    what = f"{RUNNERS} runners of --concurrency 1, {runs} runs × {steps} steps"
    together, alone = (median(worked.per_second for worked in each) for each in (fours, ones))
    detail = f"{number(together)} steps/s against {number(alone)} steps/s"
    yield Row("runners", what, "one such runner", ratios, "×", Aim("at least", AT_LEAST), detail)
    twice = tuple(float(four.twice) for four in fours)
    yield Row("runners-twice", "the same: calls executed twice", "none", twice, "calls", Aim("at most", 0))


def _worked(place: Place, runners: int) -> Worked:
    """From the first receipt of a step to the last one: starting Python is another row's matter."""
    root = new(place.folder)
    names = [f"run-{number}" for number in range(place.sizes.runs)]
    with opened(root, create=True) as workspace:
        for name in names:
            workspace.start("workflows.py:counted", {"steps": place.sizes.steps_a_run}, run_id=name)
    with ExitStack() as stack:
        options = ["--concurrency", "1", "--idle-exit-after", "0.5"]
        started = [stack.enter_context(runner(root, f"bench-{number}", *options)) for number in range(runners)]
        assert [each.wait() for each in started] == [0] * runners
    return _of_receipts(root, names)


def _of_receipts(root: Path, names: list[str]) -> Worked:
    with opened(root) as workspace:
        times = [
            receipt.execution.finished_at.timestamp()
            for name in names
            for receipt in workspace.ledger.read(name)[1]
            if receipt.kind == "step" and receipt.execution.finished_at
        ]
    executed = (root / "executed").stat().st_size
    return Worked(len(times) / (max(times) - min(times)), executed - len(times))


def memory(place: Place) -> Iterator[Row | Missing]:
    runs, steps = place.sizes.live_runs, place.sizes.live_steps
    name, what = "memory", f"memory of a runner with {runs} live runs of {steps:,} receipts of 1 KB"
    most = measured(place, "kilobytes", steps, runs=runs)["memory_most"]
    if most is None:
        yield Missing(name, "this system does not tell through /proc")
    else:
        yield Row(name, what, "a fixed number", (most,), "MB", Aim("at most", MEMORY_MB), "the most, not the mean")
