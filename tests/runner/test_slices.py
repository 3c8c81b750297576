"""Slices: watched, stopped, left behind, and the end of a process whose interpreter one of them holds."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.runner.desks import QUICK, until

from hermes_workflows.errors import NotInAWorkflow
from hermes_workflows.runner.slices import Decider, LeftBehind, SliceStopped


@pytest.fixture
def own() -> Iterator[Decider]:
    """Slices in a thread of its own."""
    made = Decider(QUICK)
    yield made
    made.close()


@pytest.fixture(params=["in a thread of its own", "in a thread that is lent"])
def decider(own: Decider, request: pytest.FixtureRequest) -> Iterator[Decider]:
    if request.param.endswith("lent"):
        own.lend(lambda run_id, stopped: pytest.fail("a thread that ends its slice is not left behind"))
    yield own
    own.take_back()


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_slice_gives_what_its_work_gives(decider: Decider) -> None:
    assert decider.run(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        decider.run(lambda: 1 / 0)


def test_a_slow_slice_is_told_of_with_its_run_and_line_and_not_stopped(decider: Decider) -> None:
    seen: list[str] = []
    watcher = threading.Thread(target=lambda: seen.append(str(until(lambda: decider.busy))))
    watcher.start()
    decider.run(lambda: _spin(0.2), "wf")
    watcher.join()
    assert "wf" in seen[0]
    assert "test_slices.py" in seen[0]
    assert decider.busy is None


@pytest.mark.untraced
def test_a_slice_that_does_not_end_is_stopped_and_the_next_one_runs(decider: Decider) -> None:
    with pytest.raises(SliceStopped, match=r"test_slices\.py") as stopped:
        decider.run(lambda: _spin(20))
    assert not stopped.value.running
    assert decider.run(lambda: "well") == "well"


@pytest.mark.untraced
def test_a_slice_that_holds_its_thread_is_left_behind(own: Decider) -> None:
    free = threading.Event()
    with pytest.raises(SliceStopped) as stopped:
        own.run(lambda: free.wait(20))
    assert stopped.value.running
    assert own.run(lambda: "well") == "well"
    free.set()


def test_a_slice_that_swallows_everything_is_stopped_or_left_behind(own: Decider) -> None:
    over = threading.Event()

    def swallow() -> None:
        while not over.is_set():
            with suppress(BaseException):
                _spin(0.05)

    with pytest.raises(SliceStopped):
        own.run(swallow)
    over.set()
    assert own.run(lambda: "well") == "well"


@pytest.mark.untraced
def test_a_thread_that_is_lent_and_does_not_come_back_is_left_behind_and_harms_nobody_later(own: Decider) -> None:
    free, left, came = threading.Event(), [], []

    def lent() -> None:
        own.lend(lambda run_id, stopped: left.append((run_id, stopped.running)))
        try:
            own.run(lambda: free.wait(20), "wf")
        except BaseException as error:
            came.append(type(error))

    thread = threading.Thread(target=lent)
    thread.start()
    until(lambda: left)
    assert left == [("wf", True)]
    assert own.busy is None
    assert own.run(lambda: "well") == "well"
    free.set()
    thread.join()
    assert came == [LeftBehind]
    assert own.run(lambda: "well") == "well"


@pytest.mark.untraced
def test_the_collector_is_on_again_after_a_slice_that_was_stopped(decider: Decider) -> None:
    def uncollected() -> None:
        gc.disable()
        _spin(20)

    with pytest.raises(SliceStopped):
        decider.run(uncollected)
    assert gc.isenabled()


@pytest.mark.untraced
def test_a_slice_that_ends_at_the_very_limit_harms_no_other(decider: Decider) -> None:
    for _ in range(8):
        with suppress(SliceStopped):
            decider.run(lambda: _spin(QUICK.hard))
        assert decider.run(lambda: "well") == "well"


def test_work_is_refused_inside_slices_only(decider: Decider, tmp_path: Path) -> None:
    file = f"{tmp_path}/file"
    with pytest.raises(NotInAWorkflow, match="open") as refused:
        decider.run(lambda: open(file, "w").close())
    assert "@step" in str(refused.value.hint)
    with open(file, "w"):
        pass
    decider.run(lambda: open(file).close())


GREEDY = """
import sys
from hermes_workflows.runner.slices import Decider, SliceLimits
decider = Decider(SliceLimits(soft=0.05, hard=0.1, grace=0.1, dead_man=0.5))
{work}
print("still here")
"""


def _in_a_process(work: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", GREEDY.format(work=work)],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_slice_that_holds_the_interpreter_ends_the_process_with_its_stacks() -> None:
    ended = _in_a_process("decider.run(lambda: sum(range(10**12)))")
    assert ended.returncode == -signal.SIGALRM
    assert 'File "<string>", line 5 in <lambda>' in ended.stderr
    assert "still here" not in ended.stdout


def test_a_process_that_is_stopped_between_slices_is_not_taken_for_a_dead_one() -> None:
    wait = "import time; decider.run(lambda: 1); time.sleep(1.2)"
    ended = _in_a_process(wait)
    assert (ended.returncode, ended.stdout) == (0, "still here\n"), ended.stderr


def test_a_step_that_holds_the_interpreter_is_no_slice() -> None:
    ended = _in_a_process("decider.run(lambda: 1); sum(range(6 * 10**7))")
    assert (ended.returncode, ended.stdout) == (0, "still here\n"), ended.stderr
