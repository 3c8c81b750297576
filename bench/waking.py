"""How soon a waiting runner notices an answer, and what waiting costs it."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.rows import Aim, Missing, Row, number
from bench.sizes import Place
from bench.workspaces import PROGRAM, new, opened
from hermes_workflows.core.receipts import Provenance
from hermes_workflows.workspace import Workspace

P50_MS, P99_MS = 30, 150
IDLE_PERCENT = 0.5

_PATIENCE = 60.0
# What a runner does on its first rounds is no part of being idle.
_SETTLING = 5.0


@contextmanager
def _runner(root: Path) -> Iterator[int]:
    command = [PROGRAM, "runner", "run", "--worker-id", "bench"]
    runner = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield runner.pid
    finally:
        runner.terminate()
        runner.wait()


def answers(place: Place) -> Iterator[Row | Missing]:
    """From an answer that is recorded to the beginning of the next call, as the call itself sees it.

    Stricter than from the end of `review respond`, whose process takes its time to leave.
    """
    count = place.sizes.answers
    root = new(place.folder)
    with opened(root, create=True) as workspace:
        workspace.start("workflows.py:asked", {"steps": count}, run_id="bench")
        with _runner(root):
            answered = [_answer(workspace, number) for number in range(1, count + 1)]
            _until(lambda: workspace.summary("bench").ended)
        begun = [receipt.output for receipt in workspace.ledger.read("bench")[1] if receipt.kind == "step"]
    waits = sorted((later - earlier) * 1000 for earlier, later in zip(answered, begun, strict=True))
    what, against = f"an answer recorded → the next call begins, {count} times", "a fixed number"
    middle, last = waits[len(waits) // 2], waits[min(len(waits) - 1, round(0.99 * len(waits)))]
    detail = f"{number(waits[0])} to {number(waits[-1])} ms"
    yield Row("answer-p50", f"{what}: p50", against, (middle,), "ms", Aim("at most", P50_MS), detail)
    yield Row("answer-p99", f"{what}: p99", against, (last,), "ms", Aim("at most", P99_MS), detail)


def _answer(workspace: Workspace, number: int) -> float:
    """Answer the question that is open, at a moment that has nothing to do with the runner's own; when it was done."""
    key = "ask" if number == 1 else f"ask-{number}"
    _until(lambda: any(row.key == key for row in workspace.reviews(run_id="bench")))
    time.sleep(random.Random(number).uniform(0.02, 0.08))
    workspace.answer("bench", key, True, Provenance(kind="test", by="bench", channel="bench"))
    return time.time()


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
        with _runner(root) as pid:
            _until(lambda: workspace.reviews(run_id="bench"))
            time.sleep(min(_SETTLING, 2 * place.sizes.idle))
            before, begin = _cpu_seconds(pid), time.monotonic()
            time.sleep(place.sizes.idle)
            after, passed = _cpu_seconds(pid), time.monotonic() - begin
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
