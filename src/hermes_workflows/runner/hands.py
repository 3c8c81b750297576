"""More hands for work that this process could do alone: copies of it take parts in turn and hand back what they made.

A copy is a fork, which needs nothing imported or opened again. It is only made of a process of one thread, and on
Linux; elsewhere, and where there is one processor, the work is done here. Whatever a copy does not deliver, because it
was killed or stopped or something failed, is done here as well: so failures are told by this process and nobody else.

`ProcessPoolExecutor` needs 6 to 9 % more time for an index of 100,000 receipts on two processors (2.68 and 2.75 s, with
two processes or with one beside this; 2.52 s so), and still leaves it to us what becomes of those that die or stop.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import pickle
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NoReturn, TypeVar

P = TypeVar("P")
R = TypeVar("R")

# Fewer parts for each are done before a copy has begun.
_FEWEST = 4
# With more of them, whoever puts together what they made is what is waited for.
_MOST_COPIES = 3
# So many have room in any pipe. A ticket is for one part, or for several where there are more.
_MOST_TICKETS = 1024
_TICKET = struct.Struct("=L")
_HEADER = struct.Struct("=LQ")
# What a copy has made waits in its pipe while this process is busy with a part of its own.
_PIPE_BYTES = 1 << 20
# Seconds of silence after which a copy is looked at.
_SILENCE = 0.5
_ENDING = (signal.SIGINT, signal.SIGTERM)


def several(work: Callable[[P], R], parts: Sequence[P], carry: Callable[[R], R]) -> Iterable[R]:
    """`work` of each of `parts`, in any order; what a copy did has gone through `carry` there, and must be picklable.

    What `work` reads from must bear to be read by two processes, one of which is a fork of the other.
    """
    copies = min(_processors() - 1, _MOST_COPIES, len(parts) // _FEWEST - 1)
    if copies < 1 or not _is_alone():
        return map(work, parts)
    return _shared(work, parts, carry, copies)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _is_alone() -> bool:
    """Whether there is no other thread, one of whose locks a copy would wait for in vain."""
    try:
        return threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _shared(work: Callable[[P], R], parts: Sequence[P], carry: Callable[[R], R], copies: int) -> Iterator[R]:
    count = min(len(parts), _MOST_TICKETS)
    tickets = _tickets(count)
    # What there is now is not looked through for garbage any more: that would give each copy its own pages of it.
    gc.freeze()
    made: list[_Copy[R]] = []
    missing = set(range(count))
    try:
        # Where there may be no more processes, or files, there is one of them less.
        with contextlib.suppress(OSError):
            for _ in range(copies):
                made.append(_Copy(lambda number: [carry(work(part)) for part in parts[number::count]], tickets))
        while ticket := os.read(tickets, _TICKET.size):
            (number,) = _TICKET.unpack(ticket)
            missing.discard(number)
            yield from map(work, parts[number::count])
            yield from _delivered(made, missing, wait=False)
        yield from _delivered(made, missing, wait=True)
        for number in sorted(missing):
            yield from map(work, parts[number::count])
    finally:
        gc.unfreeze()
        os.close(tickets)
        for copy in made:
            copy.end()


def _tickets(count: int) -> int:
    """A pipe with each number once, for whoever reads it next: the kernel never gives two readers one of them."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(map(_TICKET.pack, range(count))))
    os.close(writing)
    return reading


def _delivered(copies: Iterable[_Copy[R]], missing: set[int], *, wait: bool) -> Iterator[R]:
    for copy in copies:
        for number, made in copy.delivered(wait=wait):
            missing.discard(number)
            yield from made


class _Copy(Generic[R]):
    """A fork that does what tickets say, and how to get what it made."""

    def __init__(self, do: Callable[[int], list[R]], tickets: int) -> None:
        self._pipe, writing = os.pipe()
        self._told = bytearray()
        with contextlib.suppress(OSError):
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        # Not between a fork and its first step: it would be taken for an end of this process, by both of them.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._process = os.fork()
            if self._process == 0:
                _be_one(do, tickets, writing)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(writing)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def delivered(self, *, wait: bool) -> Iterator[tuple[int, list[R]]]:
        """What it has made by now, or all that it makes until it ends or is stopped."""
        while self._has_told(wait=wait) and (some := os.read(self._pipe, _PIPE_BYTES)):
            self._told += some
            yield from self._whole()

    def _has_told(self, *, wait: bool) -> bool:
        while not select.select([self._pipe], [], [], _SILENCE if wait else 0)[0]:
            if not wait or self._is_stopped():
                return False
        return True

    def _is_stopped(self) -> bool:
        """By a signal: nobody knows whether it will ever go on."""
        return os.waitid(os.P_PID, self._process, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None

    def _whole(self) -> Iterator[tuple[int, list[R]]]:
        """What has come of it in full. The rest stays: it comes in pieces, and may be stopped between two of them."""
        while len(self._told) >= _HEADER.size:
            number, size = _HEADER.unpack_from(self._told)
            end = _HEADER.size + size
            if len(self._told) < end:
                return
            made = pickle.loads(self._told[_HEADER.size : end])
            del self._told[:end]
            yield number, made

    def end(self) -> None:
        os.close(self._pipe)
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def _be_one(do: Callable[[int], list[R]], tickets: int, pipe: int) -> NoReturn:
    """What belongs to the other process, its output and its exit, is not ours to touch."""
    try:
        for each in _ENDING:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        with open(pipe, "wb") as file:
            while ticket := os.read(tickets, _TICKET.size):
                (number,) = _TICKET.unpack(ticket)
                data = pickle.dumps(do(number), pickle.HIGHEST_PROTOCOL)
                file.write(_HEADER.pack(number, len(data)) + data)
                file.flush()
    finally:
        os._exit(0)
