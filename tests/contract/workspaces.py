"""A workspace on the in-memory twins, with a clock that stands still: everything but disk and processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.contract.queues import FrozenClock

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import (
    Author,
    Execution,
    Provenance,
    Receipt,
    ReviewReceipt,
    ReviewRequest,
    RunEnded,
    draft,
)
from hermes_workflows.registry import parse
from hermes_workflows.store.memory_ledger import MemoryLedger
from hermes_workflows.store.memory_queue import MemoryQueue
from hermes_workflows.store.ports import Entry
from hermes_workflows.workspace import Surroundings, Workspace

FLOW = """
from dataclasses import dataclass
from hermes_workflows import workflow

@dataclass
class Topic:
    topic: str
    risk: int = 1

@workflow
async def launch(inputs: Topic) -> str:
    return inputs.topic

@workflow
async def plain() -> None:
    return None
"""

ACTIONS = {
    "type": "object",
    "properties": {"action": {"enum": ["approve", "revise"]}, "feedback": {"type": "string"}},
    "required": ["action", "feedback"],
    "additionalProperties": False,
}
SHIP = {"action": "approve", "feedback": "Ship it."}


@dataclass
class Desk:
    """The workspace under test and short ways to what tests do with it most."""

    workspace: Workspace
    clock: FrozenClock
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    def start(self, run_id: str | None = "wf", **more: Any) -> str:
        given = more or {"topic": "docs"}
        return self.workspace.start("flow.py:launch", given, run_id=run_id).run_id

    def append(self, run_id: str, *receipts: Receipt) -> None:
        self.ledger.append([Entry(run_id, tuple(draft(receipt, Author("workflow")) for receipt in receipts))])

    def ask(
        self, key: str = "ok", run_id: str = "wf", expires: float | None = None, returns: dict[str, Any] = ACTIONS
    ) -> None:
        """What a runner records when the body asks; `expires` in seconds from now."""
        due = None if expires is None else self.now() + timedelta(seconds=expires)
        question = ReviewReceipt(
            path=layout.request(key),
            key=key,
            status="requested",
            fingerprint="fp1:sha256:" + "0" * 64,
            request=ReviewRequest(prompt="Ship it?", returns=returns),
            execution=Execution(started_at=self.now(), expires_at=due, requested_after=0),
        )
        self.append(run_id, question)

    def end(self, run_id: str = "wf", status: Any = "completed") -> None:
        ended = RunEnded(path=layout.RESULT, key="", status=status, execution=Execution(finished_at=self.now()))
        self.append(run_id, ended)

    def receipts(self, run_id: str = "wf") -> list[Receipt]:
        return self.ledger.read(run_id)[1]

    def queued(self) -> list[str]:
        return [row.work.run_id for row in self.workspace.queue.work() if row.work.kind == "workflow"]

    def empty_queue(self) -> None:
        """As if runners had done all there was to do."""
        from hermes_workflows.store.queue_port import Change, Claim

        self.workspace.runs()
        claimed = self.workspace.queue.apply(Change(claim=Claim(100)), "ada")
        self.workspace.queue.apply(Change(finish=claimed), "ada")

    def now(self) -> datetime:
        return self.clock.now()


def desk(root: Path, registry: str = "{}", environment: dict[str, str] | None = None) -> Desk:
    (root / "flow.py").write_text(FLOW)
    clock = FrozenClock()
    known = parse(registry, root / ".hermes" / "workflows.registry.json")
    ledger, queue = MemoryLedger(), MemoryQueue(clock=clock)
    around = Surroundings(clock, environment or {})
    return Desk(Workspace(known, known.dbs["default"], ledger, queue, around), clock, ledger)


def person(by: str = "ana", kind: Any = "manual", message_id: str | None = None, channel: str = "cli") -> Provenance:
    return Provenance(kind=kind, by=by, channel=channel, message_id=message_id)
