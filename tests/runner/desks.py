"""A runner on the in-memory twins: workflows from a file, a clock that stands still, processes that die."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from tests.contract.queues import FrozenClock

from hermes_workflows.core.receipts import Provenance, Receipt
from hermes_workflows.core.states import OperationalState
from hermes_workflows.core.summary import RunSummary
from hermes_workflows.registry import parse
from hermes_workflows.runner.slices import SliceLimits
from hermes_workflows.runner.worker import Runner, RunnerOptions, RunnerReport
from hermes_workflows.settings import AgentSettings
from hermes_workflows.store import index
from hermes_workflows.store.liveness import Process, this_host
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Adopted, Appended, Entry, Outcome
from hermes_workflows.store.queue_port import Change, Lease
from hermes_workflows.store.sqlite_queue import SqliteQueue
from hermes_workflows.workspace import Surroundings, Workspace

DEADLINE = 20.0
# No pid is this high.
GONE = Process(this_host(), 1 << 30, "1")
HEAD = """
import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from hermes_workflows import agent, ask, bash, goal, parallel, pipeline, workflow
from hermes_workflows.authoring import Retry, log, step

HERE = Path(__file__).parent


def effect(line: str) -> None:
    with (HERE / "effects").open("a") as file:
        file.write(line + "\\n")
"""
QUICK = SliceLimits(soft=0.05, hard=0.3, grace=0.2)


class RunningClock(FrozenClock):
    """The machine's own time, where pauses of real time are the subject."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def elapsed(self) -> float:
        return time.monotonic()

    def advance(self, seconds: float) -> None:
        pass


class Killed(BaseException):
    """The process is no more; nothing of it writes any longer."""


@dataclass
class Fate:
    """How many writes a process still makes. `after` says whether the last one arrives."""

    writes: int = 10**9
    after: bool = False
    dead: bool = False
    made: int = 0

    def before_write(self) -> None:
        if self.dead or (self.made >= self.writes and not self.after):
            self.dead = True
            raise Killed
        self.made += 1

    def after_write(self) -> None:
        if self.after and self.made > self.writes:
            self.dead = True
            raise Killed


class MortalLedger(MemoryLedger):
    """One process's view of a ledger, until it dies."""

    def __init__(self, shared: MemoryLedger, fate: Fate) -> None:
        self.__dict__.update(shared.__dict__)
        self._fate = fate

    def create(self, entry: Entry, day: str, adopted: Adopted | None = None) -> Appended:
        self._fate.before_write()
        made = super().create(entry, day, adopted)
        self._fate.after_write()
        return made

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        self._fate.before_write()
        made = super().append(entries)
        self._fate.after_write()
        return made


class MortalQueue(MemoryQueue):
    """One process's handle on a queue, until it dies: the dead say no goodbye."""

    def __init__(self, handle: MemoryQueue, fate: Fate) -> None:
        self.__dict__.update(handle.__dict__)
        self.fate = fate

    def apply(self, change: Change, runner: str) -> list[Lease]:
        self.fate.before_write()
        leases = super().apply(change, runner)
        self.fate.after_write()
        return leases

    def renew(self, leases: Sequence[Lease], seconds: float) -> Any:
        return {} if self.fate.dead else super().renew(leases, seconds)

    def heartbeat(self, row: Any) -> None:
        if not self.fate.dead:
            super().heartbeat(row)

    def goodbye(self, runner_id: str) -> None:
        if not self.fate.dead:
            super().goodbye(runner_id)


@dataclass
class Desk:
    """A workspace, what lasts of it (ledger, rows, files), and short ways to what tests do most."""

    root: Path
    clock: FrozenClock = field(default_factory=FrozenClock)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    environment: Mapping[str, str] = field(default_factory=dict)
    registry: str = "{}"
    on_disk: bool = False
    queue: MemoryQueue = field(init=False)
    workspace: Workspace = field(init=False)
    opened: list[SqliteQueue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = MemoryQueue(clock=self.clock)
        self.workspace = self.process()

    def process(self, fate: Fate | None = None) -> Workspace:
        """The workspace as another process has it open, which may have an end set to it."""
        registry = parse(self.registry, self.root / ".hermes" / "workflows.registry.json")
        ledger: MemoryLedger = self.ledger
        queue: Any = self._sqlite(registry.dbs["default"].sqlite) if self.on_disk else self.queue.reopen()
        if fate is not None:
            ledger = MortalLedger(self.ledger, fate)
            queue = MortalQueue(queue, fate)
        around = Surroundings(self.clock, self.environment)
        return Workspace(registry, registry.dbs["default"], ledger, queue, around)

    def _sqlite(self, path: Path) -> SqliteQueue:
        path.parent.mkdir(exist_ok=True)
        queue = SqliteQueue.open(
            path, clock=self.clock, rebuild=lambda: index.all_indexed(self.ledger), home=self.ledger.home
        )
        self.opened.append(queue)
        return queue

    def close(self) -> None:
        """What was opened on disk."""
        for queue in self.opened:
            queue.close()

    def write(self, code: str, name: str = "flow.py") -> None:
        (self.root / name).write_text(HEAD + code)
        # Sources are looked at twenty times a second.
        self.clock.advance(1.0)

    def start(self, run_id: str = "wf", given: Any = None, ref: str = "flow.py:flow") -> None:
        self.workspace.start(ref, given, run_id=run_id)

    def runner(self, worker: str = "ada", on: Workspace | None = None, **options: Any) -> Runner:
        # A runner of a test dies, and its process, which is the test's own, lives on.
        chosen = RunnerOptions(worker, **{"idle_exit_after": 0.0, "process": GONE, **options})
        return Runner([on or self.workspace], chosen)

    def work(self, worker: str = "ada", on: Workspace | None = None, **options: Any) -> RunnerReport:
        """Run until nothing is left to do."""
        return self.runner(worker, on, **options).run()

    @contextmanager
    def working(self, worker: str = "ada", **options: Any) -> Iterator[Runner]:
        """A runner in a thread of its own, until the block ends."""
        runner = self.runner(worker, self.process(), **{"idle_exit_after": None, **options})
        thread = threading.Thread(target=runner.run)
        thread.start()
        try:
            yield runner
        finally:
            runner.request_stop()
            runner.request_stop()
            thread.join(DEADLINE)
            assert not thread.is_alive()

    def run(self, code: str, given: Any = None, **options: Any) -> RunSummary:
        """A workflow from its text to where it rests."""
        self.write(code)
        self.start(given=given)
        self.work(**options)
        return self.summary()

    def summary(self, run_id: str = "wf") -> RunSummary:
        return self.workspace.summary(run_id)

    def state(self, run_id: str = "wf") -> OperationalState:
        return self.workspace.state(run_id)

    def receipts(self, run_id: str = "wf") -> list[Receipt]:
        return self.ledger.read(run_id)[1]

    def receipt(self, path: str, run_id: str = "wf") -> Receipt:
        return next(receipt for receipt in self.receipts(run_id) if receipt.path == path)

    def paths(self, run_id: str = "wf") -> list[str]:
        return [receipt.path for receipt in self.receipts(run_id)]

    def effects(self) -> list[str]:
        file = self.root / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def marks(self, run_id: str = "wf") -> list[str]:
        return [mark.kind for mark in self.queue.stuck(run_id)]

    def rows(self, run_id: str = "wf") -> list[str]:
        return [f"{row.work.kind} {row.work.key}".strip() for row in self.queue.work(run_id)]

    def answer(self, key: str, payload: Any, run_id: str = "wf") -> None:
        self.workspace.answer(run_id, key, payload, somebody())

    def cancel(self, run_id: str = "wf", **more: Any) -> None:
        self.workspace.control(run_id, "cancel", reason="enough", by=somebody(), **more)

    def lose_index(self) -> None:
        """As if somebody had deleted the SQLite file while nothing runs."""
        self.queue = MemoryQueue(
            clock=self.clock, rebuild=lambda: index.all_indexed(self.ledger), home=self.ledger.home
        )
        self.workspace = self.process()


L = TypeVar("L", bound=MemoryLedger)


def seen_as(kind: type[L], ledger: MemoryLedger) -> L:
    """Another process's view of a ledger: one that counts, or refuses."""
    view = kind.__new__(kind)
    view.__dict__.update(ledger.__dict__)
    return view


def somebody() -> Provenance:
    return Provenance(kind="test", by="ana", channel="tests")


def until(found: Callable[[], Any], what: str = "it never came") -> Any:
    """What `found` gives, as soon as it gives something."""
    deadline = time.monotonic() + DEADLINE
    while not (value := found()):
        assert time.monotonic() < deadline, what
        time.sleep(0.002)
    return value


def scripted_agent(root: Path, code: str) -> dict[str, AgentSettings]:
    """An agent whose answers are written in Python: `request` is what it was asked, `say(value)` answers."""
    import sys

    script = root / "agent.py"
    script.write_text(
        "import json, sys\n"
        "from pathlib import Path\n"
        "HERE = Path(__file__).parent\n"
        "request = json.loads(sys.stdin.read())\n"
        "def say(value, **usage):\n"
        "    print(json.dumps({'schema': 'hermes.agent-response/1', 'output': value, 'usage': usage or None}))\n" + code
    )
    return {"*": AgentSettings("command", (sys.executable, "-S", "-E", str(script)))}


def shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
