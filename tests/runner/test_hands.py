"""Parts of one work done by several processes: all are done, whatever becomes of the others, and failures are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.contract.ledgers import (
    DAY,
    end_draft,
    git,
    open_git,
    record,
    request_draft,
    response_draft,
    start,
    step_draft,
)

from hermes_workflows.store.git_ledger import GitLedger

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process does everything")

# As on a machine of two processors; a fork wants a process without the threads that tests have.
BEGIN = """
import json, os, signal, sys, threading
from hermes_workflows.runner import hands

hands._processors = lambda: 2
one = os.getpid()
reading, writing = os.pipe()
begun, begins = os.pipe()

def several(work, count):
    return hands.several(work, range(count), lambda made: made)

def met(wanted=1):
    # The copy goes on when a part is done here, too; the end of that one waits until the copy has taken so many.
    if os.getpid() != one:
        os.write(writing, b".")
        os.read(begun, 1)
    elif not met.taken:
        os.write(begins, 1000 * b".")
    while os.getpid() == one and len(met.taken) < wanted:
        met.taken += os.read(reading, 1)

met.taken = b""
"""


def told_by(folder: Path, program: str) -> Any:
    """What a program prints as JSON; its other output is an error."""
    command = [sys.executable, "-c", BEGIN + dedent(program)]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, cwd=folder, env=path, capture_output=True, text=True, timeout=60, check=False, start_new_session=True
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100, 5000])
def test_every_part_is_done_once(tmp_path: Path, count: int) -> None:
    program = f"print(json.dumps(sorted(several(lambda part: part, {count}))))"
    assert told_by(tmp_path, program) == list(range(count))


def test_two_processes_do_it_and_what_is_large_comes_over(tmp_path: Path) -> None:
    program = """
        def work(part):
            met()
            return os.getpid(), part * 1_000_000 * "x"

        done = list(several(work, 10))
        print(json.dumps([len({process for process, _ in done}), sorted(len(text) for _, text in done)]))
    """
    assert told_by(tmp_path, program) == [2, [part * 1_000_000 for part in range(10)]]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "raise MemoryError", "sys.exit(3)"])
def test_what_a_copy_does_not_deliver_is_done_here(tmp_path: Path, end: str) -> None:
    program = f"""
        def work(part):
            met()
            if os.getpid() != one:
                {end}
            return part

        print(json.dumps(sorted(several(work, 20))))
    """
    assert told_by(tmp_path, program) == list(range(20))


@pytest.mark.parametrize("told", ["", "os.write(hands.telling, hands._HEADER.pack(part, 100) + b'x')"])
def test_what_a_copy_was_stopped_at_is_done_here(tmp_path: Path, told: str) -> None:
    program = f"""
        be_one = hands._be_one

        def telling(do, tickets, pipe):
            hands.telling = pipe
            be_one(do, tickets, pipe)

        hands._be_one = telling

        def work(part):
            met()
            if os.getpid() != one:
                {told}
                os.kill(os.getpid(), signal.SIGSTOP)
            return part

        print(json.dumps(sorted(several(work, 20))))
    """
    assert told_by(tmp_path, program) == list(range(20))


def test_a_part_that_fails_fails_here(tmp_path: Path) -> None:
    program = """
        def work(part):
            met()
            if part == 9:
                raise ValueError(os.getpid() == one)
            return part

        try:
            list(several(work, 20))
        except ValueError as error:
            print(json.dumps(error.args))
    """
    assert told_by(tmp_path, program) == [True]


def test_nobody_and_no_pipe_is_left_when_the_rest_is_not_wanted(tmp_path: Path) -> None:
    program = """
        before = os.listdir("/proc/self/fd")
        parts = several(lambda part: part, 1000)
        next(parts)
        parts.close()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print(json.dumps(os.listdir("/proc/self/fd") == before))
    """
    assert told_by(tmp_path, program) is True


def test_where_no_process_may_be_made_one_does_all(tmp_path: Path) -> None:
    program = """
        def none():
            raise BlockingIOError

        os.fork = none
        before = os.listdir("/proc/self/fd")
        done = list(several(lambda part: part, 100))
        print(json.dumps([done == list(range(100)), os.listdir("/proc/self/fd") == before]))
    """
    assert told_by(tmp_path, program) == [True, True]


def test_whoever_is_interrupted_ends_the_copies_too(tmp_path: Path) -> None:
    program = """
        def work(part):
            met()
            if os.getpid() == one:
                os.killpg(0, signal.SIGINT)

        try:
            list(several(work, 100))
        except KeyboardInterrupt:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                print(json.dumps("nobody is left"))
    """
    assert told_by(tmp_path, program) == "nobody is left"


@pytest.mark.parametrize(
    "alone", ["threading.Thread(target=os.read, args=(reading, 1)).start()", "hands._processors = lambda: 1"]
)
def test_beside_another_thread_and_on_one_processor_no_copy_is_made(tmp_path: Path, alone: str) -> None:
    program = f"""
        {alone}
        print(json.dumps(list(several(lambda part: os.getpid(), 100)) == 100 * [one]))
        os.write(writing, b".")
    """
    assert told_by(tmp_path, program) is True


def test_an_index_that_several_have_made_is_that_of_one(tmp_path: Path) -> None:
    with closing(open_git(tmp_path)) as ledger:
        for number in range(12):
            a_run(ledger, number)
        damaged = git(ledger, "rev-parse", f"refs/runs/run-4:runs/{DAY}/run-4/steps/a.json").strip()
        (ledger.path / "objects" / damaged[:2] / damaged[2:]).write_bytes(zlib.compress(b"blob 2\0{}"))
        git(ledger, "update-ref", "refs/runs/run-7", "refs/runs/run-8")
        # Runs of this workspace: only theirs ask here, and are queued.
        git(ledger, "config", "hermes.workspace", "home")
    program = """
        from pathlib import Path
        from tests.contract.ledgers import open_git
        from tests.contract.queues import FrozenClock
        from hermes_workflows.store import index
        from hermes_workflows.store.sqlite_queue import SqliteQueue

        index._BATCH = 1
        ledger = open_git(Path())

        def share(work, parts, carry):
            def meeting(part):
                met()
                return work(part)
            return hands.several(meeting, parts, carry) if hands._processors() > 1 else map(work, parts)

        def everything(name):
            queue = SqliteQueue.open(Path(name), clock=FrozenClock(), rebuild=lambda: index.all_indexed(ledger, share))
            first = said(queue)
            again = index.rebuild(ledger, queue, share)
            assert said(queue) == first
            return [first, sorted(again.unreadable.items()), again.changed]

        def said(queue):
            work = sorted(row.work.run_id for row in queue.work())
            assert queue.reviews() and work
            return list(map(repr, (queue.list_indexed(), queue.reviews(), sorted(queue.tips().items()), work)))

        several_made = everything("several")
        hands._processors = lambda: 1
        one_made = everything("one")
        assert several_made == one_made
        print(json.dumps(one_made[1:]))
    """
    unreadable, changed = told_by(tmp_path, program)
    assert changed == 10
    assert [run for run, _ in unreadable] == ["run-4", "run-7"]


def a_run(ledger: GitLedger, number: int) -> None:
    """One that has failed, waits for a person, was answered or goes on."""
    name, asked = f"run-{number}", request_draft("ok")
    start(ledger, name)
    record(ledger, name, step_draft("a", {"bytes": b"\0", "n": 10**number}, usage={"input_tokens": number}))
    if number % 4:
        record(ledger, name, asked)
    if number % 4 == 2:
        record(ledger, name, response_draft("ok", asked))
    if number % 4 == 3:
        record(ledger, name, end_draft("failed"))
