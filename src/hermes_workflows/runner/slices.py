"""Stepping bodies in a thread of their own, under watch.

A body decides in microseconds. One that blocks is first reported, then stopped and discarded, and when it does not
even let go of its thread, the thread is left behind. An audit hook, active only inside slices, refuses files,
sockets and processes at the line that asks for them.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import queue
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

from ..errors import HermesError, NotInAWorkflow
from .about import now_about

T = TypeVar("T")

_STDLIB = sysconfig.get_path("stdlib")


@dataclass(frozen=True)
class SliceLimits:
    """SEMANTICS §1, in seconds: a slice is reported after `soft`, stopped after `hard`, and what does not even let
    go of its thread is left behind `grace` later; one that holds the interpreter ends the process after `dead_man`.
    None for processes that are not ours to end, and whose alarm signal may be somebody else's.
    """

    soft: float = 1.0
    hard: float = 10.0
    grace: float = 2.0
    dead_man: float | None = 30.0


class BodyStuck(BaseException):
    """Injected into a slice that does not end."""


class SliceStopped(HermesError):
    """A slice was stopped; whatever it returned is not to be believed. `running` says that its thread still is."""

    code = "blocked"
    exit_code = 6

    def __init__(self, message: str, *, running: bool) -> None:
        super().__init__(message, hint="work that takes time belongs in a @step or in bash()")
        self.running = running


@dataclass(frozen=True)
class Busy:
    """A slice that takes long: whose, and where it is."""

    run_id: str
    since: str


class _Job:
    """Work for the other thread. A bare lock says when it is done: an Event costs a step ten times as much."""

    def __init__(self, work: Callable[[], Any], run_id: str) -> None:
        self.work = work
        self.run_id = run_id
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self) -> None:
        self._done.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done within that time; it must not be asked again after it was."""
        return self._done.acquire(timeout=seconds)


class Decider:
    """One thread that steps bodies. `run` blocks the caller, never longer than the hard limit and a grace."""

    def __init__(self, limits: SliceLimits | None = None) -> None:
        self._limits = limits or SliceLimits()
        self._switch = DeadManSwitch(self._limits.dead_man)
        self.busy: Busy | None = None
        install_audit_hook()
        self._start()

    def _start(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="hermes-decider", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T], run_id: str = "") -> T:
        """Do `work`, for that run, as one slice; raises what it raises, or SliceStopped."""
        job = _Job(work, run_id)
        self._switch.arm()
        try:
            self._jobs.put(job)
            if not job.wait(self._limits.soft):
                self._watch(job, run_id)
        finally:
            self._switch.disarm()
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def _watch(self, job: _Job, run_id: str) -> None:
        limits = self._limits
        self.busy = Busy(run_id, f"the body has been busy for over {limits.soft:g} s at {self._line()}")
        try:
            if not job.wait(limits.hard - limits.soft):
                self._stop(job)
        finally:
            self.busy = None

    def _stop(self, job: _Job) -> None:
        line = self._line()
        thread_id = self._thread.ident
        assert thread_id is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(BodyStuck))
        came_back = job.wait(self._limits.grace)
        # Another thread in any case: the injection may still be on its way when the slice ends by itself. A thread
        # that sleeps in C or swallows everything ends when it comes back.
        self._jobs.put(None)
        self._start()
        # Off during a slice, and this one may never come to its end.
        gc.enable()
        # The injection may have landed in our own loop and look like an ordinary end: nothing of it counts.
        raise SliceStopped(
            f"the workflow body did not come back within {self._limits.hard:g} s; it was at {line}",
            running=not came_back,
        )

    def _line(self) -> str:
        """Where the author's code is: the standard library is only where it called into."""
        innermost = frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and _is_not_the_authors(frame):
            frame = frame.f_back
        shown = frame or innermost
        return f"{shown.f_code.co_filename}:{shown.f_lineno}" if shown else "an unknown line"

    def close(self) -> None:
        self._jobs.put(None)


def _is_not_the_authors(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    file = frame.f_code.co_filename
    ours = module.split(".")[0] == __name__.split(".")[0] and not module.startswith("hermes_workflows.examples")
    return ours or file.startswith("<frozen") or (file.startswith(_STDLIB) and "site-packages" not in file)


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    try:
        while (job := jobs.get()) is not None:
            now_about(job.run_id)
            _inside.active = True
            try:
                job.result = job.work()
            except BaseException as error:
                job.error = error
            finally:
                _inside.active = False
                job.finish()
    except BodyStuck:
        # It came when the slice had just ended; another thread serves already.
        _inside.active = False


class DeadManSwitch:
    """Ends the process, with the stacks of all threads, when a slice holds the interpreter.

    A timer of the kernel and a handler in C: nothing else runs by then. Two calls of the system a slice, 1 µs each.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        if seconds is not None:
            # Chained to what the signal did before, which is to end the process.
            faulthandler.register(signal.SIGALRM, file=2, all_threads=True, chain=True)

    def arm(self) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def disarm(self) -> None:
        if self._seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


# -- the audit hook ----------------------------------------------------------------------------------------------

_inside = threading.local()
_installed = threading.Lock()

# A closed list: events that name work with the world. Reading files is left alone.
_REFUSED = frozenset(
    {
        "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.link", "os.listdir", "os.mkdir",
        "os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.spawn", "os.symlink",
        "os.system", "os.truncate", "os.unsetenv", "os.utime", "shutil.copyfile", "shutil.move",
        "shutil.rmtree", "smtplib.connect", "socket.bind", "socket.connect", "socket.getaddrinfo",
        "socket.gethostbyname", "sqlite3.connect", "subprocess.Popen", "tempfile.mkdtemp",
        "tempfile.mkstemp", "time.sleep", "urllib.Request", "webbrowser.open",
    }
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install_audit_hook() -> None:
    """Once per process; it cannot be removed, which is why only runner processes have it."""
    if _installed.acquire(blocking=False):
        sys.addaudithook(_refuse_impure)


def _refuse_impure(event: str, args: tuple[Any, ...]) -> None:
    if not getattr(_inside, "active", False):
        return
    if (event in _REFUSED or (event == "open" and _writes(args))) and not _is_importing(sys._getframe(1)):
        what = f"{event}({args[0]!r})" if args else event
        raise NotInAWorkflow(
            f"{what[:200]} inside a workflow body, which must decide the same when it is replayed",
            hint="put it into a @step or into bash()",
        )


def _writes(args: tuple[Any, ...]) -> bool:
    flags = args[2]
    return isinstance(flags, int) and bool(flags & _WRITING)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether the import system asks: it lists folders and writes byte code, which is no work of the body."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap_external":
            return True
        frame = frame.f_back
    return False
