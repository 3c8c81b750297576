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
import time
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


class LeftBehind(BaseException):
    """Raised in a thread that was left behind in a slice, should it come back: another one has gone on in its place."""


LeaveBehind = Callable[[str, SliceStopped], None]
"""Goes on for a thread that is left behind in a slice of the run, in another thread."""


@dataclass
class _Here:
    """A slice in a thread that was lent. `stopped` is the line at which it was stopped; `left` that it did not help."""

    thread: int
    run_id: str
    begun: float
    stopped: str = ""
    left: bool = False


class Decider:
    """One thread that steps bodies. `run` blocks the caller, never longer than the hard limit and a grace.

    A caller that may be left behind itself can lend its own thread instead: a switch of threads less each way, which
    is a sixth of a step that does nothing.
    """

    def __init__(self, limits: SliceLimits | None = None) -> None:
        self._limits = limits or SliceLimits()
        self._guard = threading.Lock()
        self._lent: tuple[int, LeaveBehind] | None = None
        self._here: _Here | None = None
        self._slices_here = 0
        self._watcher: threading.Thread | None = None
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
        if (lent := self._lent) is not None and lent[0] == threading.get_ident():
            return self._run_here(work, run_id)
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

    # -- in a thread that is lent ----------------------------------------------------------------------------

    def lend(self, leave_behind: LeaveBehind) -> None:
        """Step bodies in this thread when it asks for that, until it takes itself back. One thread at a time."""
        self._lent = threading.get_ident(), leave_behind

    def take_back(self) -> None:
        """Not after LeftBehind: by then another thread may be lent."""
        self._lent = None

    def _run_here(self, work: Callable[[], T], run_id: str) -> T:
        here = _Here(threading.get_ident(), run_id, time.monotonic())
        with self._guard:
            self._here = here
            self._slices_here += 1
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._look_after, name="hermes-slices", daemon=True)
                self._watcher.start()
        result: Any = None
        error: BaseException | None = None
        self._switch.arm()
        _inside.active = True
        try:
            try:
                result = work()
            except BaseException as raised:
                error = raised
            self._end_here(here)
        except BodyStuck:
            # It came when the slice had just ended. It comes once.
            self._end_here(here)
        if here.left:
            raise LeftBehind
        if here.stopped:
            raise self._stopped_at(here.stopped, running=False)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _end_here(self, here: _Here) -> None:
        _inside.active = False
        with self._guard:
            if here.left:
                return
            self._here = self.busy = None
            self._switch.disarm()
            if here.stopped:
                # Still on its way, perhaps: nothing after the slice may meet it.
                _inject(here.thread, None)
                gc.enable()

    def _look_after(self) -> None:
        """Watch slices in threads that are lent, until there are none for a while."""
        seen = -1
        while True:
            time.sleep(min(self._limits.soft, self._limits.grace) / 4)
            if (leave_behind := self._look()) is not None:
                leave_behind()
            with self._guard:
                if self._here is None and seen == self._slices_here:
                    self._watcher = None
                    return
                seen = self._slices_here

    def _look(self) -> Callable[[], None] | None:
        limits = self._limits
        with self._guard:
            here = self._here
            seconds = time.monotonic() - here.begun if here else 0.0
            if here is None or seconds < limits.soft:
                return None
            line = self._line(here.thread)
            if seconds < limits.hard:
                self.busy = _busy(here.run_id, limits.soft, line)
            elif not here.stopped:
                here.stopped = line
                _inject(here.thread, BodyStuck)
            elif seconds >= limits.hard + limits.grace:
                here.left = True
                assert self._lent is not None  # its thread is in the slice, and has not taken itself back
                _, leave_behind = self._lent
                self._here = self.busy = self._lent = None
                self._switch.disarm()
                # Off during a slice, and this one may never come to its end.
                gc.enable()
                stopped = self._stopped_at(here.stopped, running=True)
                return lambda: leave_behind(here.run_id, stopped)
        return None

    # -- in the thread of its own ----------------------------------------------------------------------------

    def _watch(self, job: _Job, run_id: str) -> None:
        limits = self._limits
        self.busy = _busy(run_id, limits.soft, self._line(self._thread.ident))
        try:
            if not job.wait(limits.hard - limits.soft):
                self._stop(job)
        finally:
            self.busy = None

    def _stop(self, job: _Job) -> None:
        thread_id = self._thread.ident
        line = self._line(thread_id)
        assert thread_id is not None
        _inject(thread_id, BodyStuck)
        came_back = job.wait(self._limits.grace)
        # Another thread in any case: the injection may still be on its way when the slice ends by itself. A thread
        # that sleeps in C or swallows everything ends when it comes back.
        self._jobs.put(None)
        self._start()
        # Off during a slice, and this one may never come to its end.
        gc.enable()
        # The injection may have landed in our own loop and look like an ordinary end: nothing of it counts.
        raise self._stopped_at(line, running=not came_back)

    def _stopped_at(self, line: str, *, running: bool) -> SliceStopped:
        message = f"the workflow body did not come back within {self._limits.hard:g} s; it was at {line}"
        return SliceStopped(message, running=running)

    def _line(self, thread_id: int | None) -> str:
        """Where the author's code is: the standard library is only where it called into."""
        innermost = frame = sys._current_frames().get(thread_id or 0)
        while frame is not None and _is_not_the_authors(frame):
            frame = frame.f_back
        shown = frame or innermost
        return f"{shown.f_code.co_filename}:{shown.f_lineno}" if shown else "an unknown line"

    def close(self) -> None:
        self._jobs.put(None)


def _busy(run_id: str, seconds: float, line: str) -> Busy:
    return Busy(run_id, f"the body has been busy for over {seconds:g} s at {line}")


def _inject(thread_id: int, error: type[BaseException] | None) -> None:
    """Have a thread raise `error` at its next instruction; with None, what is on its way does not arrive."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), what)


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
