"""How soon a waiting runner notices an answer, and what waiting costs it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.rows import Aim, Missing, Row, number
from bench.sizes import Place
from bench.workspaces import new, opened, runner
from hermes_workflows.core.receipts import Provenance
from hermes_workflows.workspace import Workspace

P50_MS, P99_MS = 30, 150
IDLE_PERCENT = 0.5

_PATIENCE = 60.0
# What a runner does on its first rounds is no part of being idle.
_SETTLING = 5.0


def answers(place: Place) -> Iterator[Row | Missing]:
    """From an answer to the beginning of the next call, as the call itself sees it.

    What is to be reached counts from the moment at which whoever answers goes on: stricter than the end of
    `review respond`, whose process takes its time to leave. The whole way is shown as well.
    """
    count = place.sizes.answers
    root = new(place.folder)
    with opened(root, create=True) as workspace:
        workspace.start("workflows.py:asked", {"steps": count}, run_id="bench")
        with runner(root, "bench"):
            given, answered = zip(*(_answer(workspace, number) for number in range(1, count + 1)), strict=True)
            _until(lambda: workspace.summary("bench").ended)
        begun = [receipt.output for receipt in workspace.ledger.read("bench")[1] if receipt.kind == "step"]
    what = f"an answer recorded → the next call begins, {count} times"
    yield from _waits("answer", what, [later - earlier for earlier, later in zip(answered, begun, strict=True)])
    what = "the same, from the call that gives the answer"
    whole = [later - earlier for earlier, later in zip(given, begun, strict=True)]
    yield from _waits("answer-whole", what, whole, aims=(None, None))


def _waits(name: str, what: str, seconds: Sequence[float], aims: Sequence[int | None] = (P50_MS, P99_MS)) -> list[Row]:
    waits = [1000 * each for each in seconds]
    tenth = max(len(waits) // 10, 1)
    detail = f"{number(min(waits))} to {number(max(waits))} ms; the first tenth {number(median(waits[:tenth]))} ms,"
    detail += f" the last {number(median(waits[-tenth:]))} ms"
    last = sorted(waits)[min(len(waits) - 1, round(0.99 * len(waits)))]
    shown = (("p50", median(waits), aims[0], detail), ("p99", last, aims[1], ""))
    return [
        Row(f"{name}-{short}", f"{what}: {short}", "a fixed number", (value,), "ms", Aim("at most", aim), told)
        if aim
        else Row(f"{name}-{short}", f"{what}: {short}", "nothing is aimed at", (value,), "ms", detail=told)
        for short, value, aim, told in shown
    ]


def _answer(workspace: Workspace, number: int) -> tuple[float, float]:
    """Answer the question that is open, at a moment that has nothing to do with the runner's own; from when to when."""
    key = "ask" if number == 1 else f"ask-{number}"
    _until(lambda: any(row.key == key for row in workspace.reviews(run_id="bench")))
    time.sleep(random.Random(number).uniform(0.02, 0.08))
    begin = time.time()
    workspace.answer("bench", key, True, Provenance(kind="test", by="bench", channel="bench"))
    return begin, time.time()


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the runner of the benchmark does not come along")
        time.sleep(0.005)


def idle(place: Place) -> Iterator[Row | Missing]:
    root = new(place.folder)
    with opened(root, create=True) as workspace:
        workspace.start("workflows.py:asked", {"steps": 1}, run_id="bench")
        with runner(root, "bench") as waiting:
            _until(lambda: workspace.reviews(run_id="bench"))
            time.sleep(min(_SETTLING, 2 * place.sizes.idle))
            before, begin = _cpu_seconds(waiting.pid), time.monotonic()
            time.sleep(place.sizes.idle)
            after, passed = _cpu_seconds(waiting.pid), time.monotonic() - begin
    if before is None or after is None:
        yield Missing("idle", "this system does not tell through /proc")
        return
    what = "a runner that waits for a person: share of a core"
    share, aim = (after - before) / passed * 100, Aim("at most", IDLE_PERCENT)
    yield Row("idle", what, "a fixed number", (share,), "%", aim, f"over {passed:.0f} s")


def _cpu_seconds(pid: int) -> float | None:
    """What all threads of a process have had of a processor, in nanoseconds by the scheduler's own count."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        spent = [int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) for thread in threads]
    except (OSError, ValueError):
        return None
    return sum(spent) / 1e9
