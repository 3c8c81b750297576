"""Between the runner's loop and the threads that execute calls: what they hand over, and who may go on with it.

The dispatchers are for one thread at a time, whoever holds `alone`. That is the loop, which takes what is handed over;
but in a burst, the thread that has the result of a step records it and goes on with the next one itself.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial

from ..store.queue_port import Lease
from .about import about
from .dispatch import Dispatcher
from .executors import execute
from .jobs import Job
from .pool import Pool
from .results import Attempted, Finished
from .slices import Decider, LeftBehind, SliceStopped

Event = tuple[Dispatcher, Finished | Attempted]


class Executing:
    """`size` calls at once. `may_go_on` says whether there may be bursts now; it is asked by whoever holds `alone`.

    Bodies are stepped by `decider`, in a burst in the thread that executes it.
    """

    def __init__(self, size: int, decider: Decider, may_go_on: Callable[[], bool]) -> None:
        self.alone = threading.Lock()
        self._decider = decider
        self._may_go_on = may_go_on
        self._pool = Pool(size)
        self._inbox: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._ended = False
        # Whether a thread goes on with a burst by itself; until it does not, the loop need not come round for it.
        self.is_in_a_burst = False

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has been handed over."""
        return self._inbox.empty()

    def start(self, dispatcher: Dispatcher, lease: Lease, job: Job) -> None:
        """Have a call executed by the next thread that is free."""
        self._pool.submit(lambda: self._execute(dispatcher, lease, job))

    def wake(self) -> None:
        """Have the loop look round; from any thread, and from handlers of signals."""
        self._inbox.put(None)

    def take(self, wait: float) -> list[Event]:
        """What was handed over by now, or within `wait` seconds."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            item = self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait()
            while True:
                if item is not None:
                    events.append(item)
                item = self._inbox.get_nowait()
        return events

    def check(self) -> None:
        """Raises what ended a thread in a burst, once: the loop would have ended with it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def end_bursts(self) -> None:
        """From now on every result is handed over, or left: the loop has ended. By whoever holds `alone`."""
        self._ended = True

    def close(self) -> None:
        self._pool.close()

    def _execute(self, dispatcher: Dispatcher, lease: Lease, job: Job) -> None:
        following: tuple[Lease, Job] | None = lease, job
        while following is not None:
            following = self._execute_one(dispatcher, *following)

    def _execute_one(self, dispatcher: Dispatcher, lease: Lease, job: Job) -> tuple[Lease, Job] | None:
        """Execute a call and hand over its result; in a burst, what the same thread is to execute next."""
        with about(job.run_id, job.call.key):
            executed, started, ended = execute(
                job, lambda attempt: self._inbox.put((dispatcher, Attempted(job, attempt)))
            )
        finished = Finished(job, lease, executed, started, ended)
        # Never waited for: whoever has it is at work, and takes this as well when he is done.
        if not self.alone.acquire(blocking=False):
            self.is_in_a_burst = False
            self._inbox.put((dispatcher, finished))
            return None
        try:
            following = self._go_on(dispatcher, finished)
        except LeftBehind:
            return None  # `alone` is somebody else's by now
        self.alone.release()
        return following

    def _go_on(self, dispatcher: Dispatcher, finished: Finished) -> tuple[Lease, Job] | None:
        if self._ended or not (self._may_go_on() and self.is_quiet and dispatcher.goes_on(finished)):
            self.is_in_a_burst = False
            self._inbox.put((dispatcher, finished))
            return None
        self._decider.lend(partial(self._leave_behind, dispatcher))
        try:
            following = dispatcher.go_on(finished)
        except LeftBehind:
            raise
        except BaseException as error:
            self._failure, following = error, None
        self._decider.take_back()
        self.is_in_a_burst = following is not None
        if following is None:
            self.wake()
        return following

    def _leave_behind(self, dispatcher: Dispatcher, run_id: str, stopped: SliceStopped) -> None:
        """Do the rest for a thread that a body does not let go of, and holds `alone`."""
        try:
            dispatcher.give_up(run_id, stopped)
        except BaseException as error:
            self._failure = error
        self._pool.one_more()
        self.is_in_a_burst = False
        self.alone.release()
        self.wake()
