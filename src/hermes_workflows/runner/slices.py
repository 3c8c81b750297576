"""Stepping bodies in a thread of their own, under watch.

A body decides in microseconds. One that blocks is first reported, then stopped and discarded, and when it does not
even let go of its thread, the thread is left behind. An audit hook, active only inside slices, refuses files,
sockets and processes at the line that asks for them.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

from ..errors import HermesError, NotInAWorkflow

T = TypeVar("T")

# SEMANTICS §1: reported after 1 s, stopped after 10 s; a slice that holds the interpreter ends the process after 30 s.
SOFT_SECONDS = 1.0
HARD_SECONDS = 10.0
DEAD_MAN_SECONDS = 30.0
_GRACE_SECONDS = 2.0


class BodyStuck(BaseException):
    """Injected into a slice that does not end."""


class SliceStopped(HermesError):
    """A slice was stopped; whatever it returned is not to be believed."""

    code = "blocked"
    exit_code = 6


@dataclass
class _Job:
    work: Callable[[], Any]
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None


class Decider:
    """One thread that steps bodies. `run` blocks the caller, never longer than the hard limit and a grace."""

    def __init__(self, soft: float = SOFT_SECONDS, hard: float = HARD_SECONDS) -> None:
        self._soft = soft
        self._hard = hard
        self.busy: str | None = None
        install_audit_hook()
        self._start()

    def _start(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="hermes-decider", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` as one slice; raises what it raises, or SliceStopped."""
        job = _Job(work)
        self._jobs.put(job)
        if not job.done.wait(self._soft):
            self._watch(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def _watch(self, job: _Job) -> None:
        line = self._line()
        self.busy = f"a workflow body has been busy for over {self._soft:g} s at {line}"
        try:
            if not job.done.wait(self._hard - self._soft):
                self._stop(job)
        finally:
            self.busy = None

    def _stop(self, job: _Job) -> None:
        line = self._line()
        thread_id = self._thread.ident
        assert thread_id is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(BodyStuck))
        if not job.done.wait(_GRACE_SECONDS):
            # It sleeps in C or swallows everything: the thread is left behind, the runner goes on with another.
            self._start()
        # The injection may have landed in our own loop and look like an ordinary end: nothing of it counts.
        raise SliceStopped(
            f"the workflow body did not come back within {self._hard:g} s; it was at {line}",
            hint="work that takes time belongs in a @step or in bash()",
        )

    def _line(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown line"

    def close(self) -> None:
        self._jobs.put(None)


def _is_ours(module: str) -> bool:
    top = module.split(".")[0]
    return top in ("asyncio", "threading", "contextlib") or (
        top == __name__.split(".")[0] and not module.startswith("hermes_workflows.examples")
    )


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        _inside.active = True
        try:
            job.result = job.work()
        except BaseException as error:
            job.error = error
        finally:
            _inside.active = False
            job.done.set()


class DeadManSwitch:
    """Ends the process, with the stacks of all threads, when nobody re-arms it: some slice holds the interpreter."""

    def __init__(self, seconds: float = DEAD_MAN_SECONDS) -> None:
        self._seconds = seconds

    def arm(self) -> None:
        faulthandler.dump_traceback_later(self._seconds, exit=True)

    def disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()


# -- the audit hook ----------------------------------------------------------------------------------------------

_inside = threading.local()
_installed = threading.Lock()

# A closed list: events that name work with the world. Reading files is left alone.
_REFUSED = frozenset(
    {
        "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.link", "os.listdir", "os.mkdir", "os.posix_spawn",
        "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.spawn", "os.symlink", "os.system", "os.truncate",
        "os.unsetenv", "os.utime", "shutil.copyfile", "shutil.move", "shutil.rmtree", "smtplib.connect", "socket.bind",
        "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "sqlite3.connect", "subprocess.Popen",
        "tempfile.mkdtemp", "tempfile.mkstemp", "time.sleep", "urllib.Request", "webbrowser.open",
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
