"""Calls that a run has recorded, as a runner would, for pages to show."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.contract.workspaces import Desk

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import CallReceipt, Execution, Failure, Usage


def ran(made: Desk, key: str, run_id: str = "wf", *, lasted: float = 60, **more: Any) -> None:
    """An agent's call that has just ended; `more` are fields of its receipt, or of its execution."""
    execution = {name: more.pop(name) for name in ("transcript", "attempt", "child") if name in more}
    fields: dict[str, Any] = {"kind": "agent", "status": "completed", "request": {"name": "writer"}, "output": "done"}
    if isinstance(more.get("error"), str):
        more |= {"error": Failure(type="Boom", message=more["error"]), "status": "failed", "output": None}
    receipt = CallReceipt(
        path=layout.step(key),
        key=key,
        fingerprint="fp1:sha256:" + "3" * 64,
        execution=Execution(
            started_at=made.now() - timedelta(seconds=lasted),
            finished_at=made.now(),
            duration_seconds=lasted,
            requested_after=0,
            usage=Usage(input_tokens=10, output_tokens=2, cost_usd=0.5),
            **execution,
        ),
        **(fields | more),
    )
    made.append(run_id, receipt)
